import { isDeepStrictEqual } from "node:util";
import { type Cluster, HttpMethod, KubeConfig, RequestContext, type User } from "@kubernetes/client-node";
import { Agent, type Dispatcher, ProxyAgent } from "undici";
import { invariant } from "../../runtime/assert.ts";
import { type JsonObject, stringAt } from "../../runtime/json.ts";
import { withoutTrailing } from "../../runtime/scan-text.ts";
import { type AllowedHosts, DEFAULT_CLUSTER_HOSTS, parseAllowedHosts } from "./allowed-hosts.ts";
import { guardedConnector, guardedLookup, HostRefused } from "./guarded-connector.ts";
import { pickContext } from "./kubeconfig.ts";
import { readLocalFile } from "./kubeconfig-files.ts";

export type KubeClientOptions = {
  /** YAML or JSON text. */
  readonly kubeconfig: string;
  readonly connectionsMax: number;
  readonly requestTimeoutMs: number;
  /** The addresses that connections may lead to. Omitted: all but link-local ones and their like. */
  readonly hosts?: AllowedHosts;
  /** Runs code that reads an answer, which blocks this thread meanwhile. Omitted: it is called. */
  readonly runCode?: RunCode;
  /** Called with an answer whose reading took so long together, without the pauses in between. */
  readonly onSlowAnswer?: (tookMs: number) => void;
};

export type RunCode = <T>(code: () => T) => T;

type PrivateParts = { createDispatcher: (cluster: unknown, agentOptions: Record<string, unknown>) => Dispatcher };

/** How long a token from a file is used. As long as Kubernetes' own clients do, since its content changes. */
const TOKEN_FILE_MS = 60_000;

/**
 * The connections to one API server, and the headers that sign its calls.
 *
 * client-node makes a new dispatcher, and with it a new connection, for every call. This class keeps one, and replaces
 * it only when the credentials change. `createDispatcher` is private in the types, so it is defined on the object.
 * client-node's own reader of kubeconfigs is not used: it takes members of any type, and reads files that they name.
 */
export class ConnectionPool {
  readonly #config = new KubeConfig();
  readonly #base: URL;
  readonly #tokenFile: string | undefined;
  #token: { readonly text: string; readonly readMs: number } | null = null;
  #remembered: { readonly options: Record<string, unknown>; readonly dispatcher: Dispatcher } | null = null;

  /** Throws if the kubeconfig or its proxy is refused. */
  constructor(options: KubeClientOptions) {
    const config = this.#config;
    // The text was judged with the server's own setting when it was decrypted.
    const picked = pickContext(options.kubeconfig, { context: "", allowLocal: true });
    if (picked.kind === "refused") throw new Error(picked.problems.join("; "));
    const cluster = clusterOf(picked.cluster);
    config.loadFromOptions({
      clusters: [cluster],
      users: [userOf(picked.user)],
      contexts: [{ name: "context", cluster: "cluster", user: "user" }],
      currentContext: "context",
    });
    this.#base = new URL(cluster.server);
    this.#tokenFile = stringAt(picked.user, "tokenFile");
    const hosts = options.hosts ?? parseAllowedHosts(DEFAULT_CLUSTER_HOSTS);
    const proxy = stringAt(picked.cluster, "proxy-url");
    if (proxy !== undefined) judgeProxy({ proxy: new URL(proxy), target: this.#base }, hosts);
    const create: PrivateParts["createDispatcher"] = (_cluster, agentOptions) => {
      const remembered = this.#remembered;
      if (remembered !== null && isDeepStrictEqual(remembered.options, agentOptions)) return remembered.dispatcher;
      void remembered?.dispatcher.close();
      const { connectionsMax: connections, requestTimeoutMs: timeoutMs } = options;
      const dispatcher =
        proxy === undefined
          ? new Agent({ connect: guardedConnector(agentOptions, { hosts, timeoutMs }), connections, allowH2: false })
          : new ProxyAgent({
              uri: proxy,
              connections,
              connectTimeout: timeoutMs,
              requestTls: agentOptions,
              proxyTls: { lookup: guardedLookup(hosts) },
            });
      this.#remembered = { options: agentOptions, dispatcher };
      return dispatcher;
    };
    Object.defineProperty(config, "createDispatcher", { value: create });
  }

  async authenticated(request: { readonly method: keyof typeof HttpMethod }): Promise<{
    readonly dispatcher: Dispatcher;
    readonly headers: Readonly<Record<string, string>>;
    readonly base: URL;
  }> {
    const context = new RequestContext(this.#base.origin, HttpMethod[request.method]);
    await this.#config.applySecurityAuthentication(context);
    if (this.#tokenFile !== undefined)
      context.setHeaderParam("Authorization", `Bearer ${await this.#tokenOf(this.#tokenFile)}`);
    const dispatcher = context.getDispatcher();
    invariant(dispatcher !== undefined, "a dispatcher was set");
    return { dispatcher, headers: context.getHeaders(), base: this.#base };
  }

  async close(): Promise<void> {
    await this.#remembered?.dispatcher.destroy();
  }

  async #tokenOf(file: string): Promise<string> {
    if (this.#token === null || performance.now() - this.#token.readMs > TOKEN_FILE_MS) {
      this.#token = { text: (await readLocalFile(file)).trim(), readMs: performance.now() };
    }
    return this.#token.text;
  }
}

/** A proxy looks up the target's name itself, so only the name, or the address that stands there, can be judged. */
function judgeProxy({ proxy, target }: { readonly proxy: URL; readonly target: URL }, hosts: AllowedHosts): void {
  for (const url of [proxy, target]) {
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const isName = /[a-z]/i.test(host) && !host.includes(":");
    const isAllowed = isName ? url === proxy || hosts.allowsName(host) : hosts.refusal(host, host) === null;
    if (!isAllowed) throw new HostRefused(host, hosts.refusal(host, isName ? "192.0.2.1" : host));
  }
}

/** The cluster in client-node's form, from members that `pickContext` has checked. */
function clusterOf(picked: JsonObject): Cluster {
  const [caData, tlsServerName] = [stringAt(picked, "certificate-authority-data"), stringAt(picked, "tls-server-name")];
  return {
    name: "cluster",
    server: withoutTrailing(stringAt(picked, "server") ?? "", "/"),
    skipTLSVerify: picked["insecure-skip-tls-verify"] === true,
    ...(caData === undefined ? {} : { caData }),
    ...(tlsServerName === undefined ? {} : { tlsServerName }),
  };
}

/** The user in client-node's form. Files of certificates and keys were replaced by their content before. */
function userOf(picked: JsonObject): User {
  const members = {
    token: stringAt(picked, "token"),
    username: stringAt(picked, "username"),
    password: stringAt(picked, "password"),
    certData: stringAt(picked, "client-certificate-data"),
    keyData: stringAt(picked, "client-key-data"),
    exec: picked["exec"],
  };
  return { name: "user", ...Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) };
}
