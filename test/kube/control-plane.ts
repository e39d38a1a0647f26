/** Starts and stops control planes on free loopback ports, each in a temporary directory of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createKubeClient, type KubeClient } from "../../src/adapters/cluster/client.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { controlPlaneBinary } from "./build.ts";

export type ControlPlane = {
  readonly url: string;
  /** The certificate that its clients trust, as PEM. */
  readonly certificate: string;
  /** A kubeconfig for a bearer token. Omitted: for the administrator. */
  readonly kubeconfig: (token?: string) => string;
  /** Calls as the administrator. */
  readonly client: KubeClient;
  /**
   * Restarts the API server on the same port and data. All watches end, and it forgets older versions.
   */
  readonly restartApiServer: () => Promise<void>;
  /** The two halves of a restart, for tests that act in between. */
  readonly stopApiServer: () => Promise<void>;
  readonly startApiServer: () => Promise<void>;
  /** Makes etcd forget all revisions before the present one. */
  readonly compact: () => Promise<void>;
  readonly stop: () => Promise<void>;
};

export type ControlPlaneOptions = {
  /** KWOK `Stage` objects as YAML documents, beside its own. */
  readonly stages?: string;
  /** Lines of kube-apiserver's token file (`token,user,uid,"group,group"`) beside the administrator's. */
  readonly tokens?: readonly string[];
  /** Admission plugins beside those that are on by default. */
  readonly admission?: readonly string[];
  /** Controllers instead of `CONTROLLERS`, without the `-controller` of their names. */
  readonly controllers?: readonly string[];
};

const ADMIN = "admin";
const READY_MS_MAX = 240_000;
const STOP_MS_MAX = 10_000;
const ATTEMPTS_MAX = 3;

/**
 * Resolves once the API server is ready and scheduler, garbage collector and KWOK have been started. A port that was
 * free may be taken before a part listens on it: then all is tried again with others.
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(options);
    } catch (error) {
      if (attempt === ATTEMPTS_MAX || !String(error).includes("address already in use")) throw error;
    }
  }
}

async function startOnce(options: ControlPlaneOptions): Promise<ControlPlane> {
  const directory = mkdtempSync(join(tmpdir(), "gangway-kube-"));
  const [api = 0, etcd = 0, peer = 0, scheduler = 0, controllers = 0, kwok = 0] = await freePorts(6);
  const url = `https://127.0.0.1:${api}`;
  const parts = new Parts(directory);
  writeKeys(directory, options.tokens ?? []);
  parts.start("etcd", etcdFlags({ directory, etcd, peer }));
  const certificate = () => readFileSync(join(directory, "apiserver.crt"), "utf8");
  const kubeconfig = (token = ADMIN) => kubeconfigText(url, certificate(), token);
  const startApiServer = async () => {
    parts.start("apiserver", apiServerFlags({ directory, api, etcd }, options.admission ?? []));
    // The server makes the file before it writes it.
    const made = () => existsSync(join(directory, "apiserver.crt")) && certificate().includes("END CERTIFICATE");
    await parts.until("apiserver", async () => made() && isReady(kubeconfig()));
  };
  try {
    await startApiServer();
    const path = join(directory, "kubeconfig");
    writeFileSync(path, kubeconfig());
    writeFileSync(join(directory, "scheduler.yaml"), schedulerConfig(path));
    const stages = [readFileSync(await parts.output("stages"), "utf8"), options.stages ?? ""].join("\n---\n");
    writeFileSync(join(directory, "stages.yaml"), stages);
    parts.start("scheduler", ["--config", "scheduler.yaml", ...served(scheduler)]);
    parts.start("controller-manager", controllerFlags(path, controllers, options.controllers ?? CONTROLLERS));
    parts.start("kwok", kwokFlags(path, kwok));
  } catch (error) {
    await parts.stopAll();
    rmSync(directory, { recursive: true, force: true });
    throw error;
  }
  const client = createKubeClient({ kubeconfig: kubeconfig(), connectionsMax: 64, requestTimeoutMs: 15_000 });
  const account = { method: "GET", path: "/api/v1/namespaces/default/serviceaccounts/default" } as const;
  await parts.until("controller-manager", async () => (await client.request(account)).kind === "ok");
  return {
    url,
    certificate: certificate(),
    kubeconfig,
    client,
    startApiServer,
    stopApiServer: () => parts.stop("apiserver"),
    async restartApiServer() {
      await parts.stop("apiserver");
      await startApiServer();
    },
    compact: () => compact(`http://127.0.0.1:${etcd}`),
    async stop() {
      await client.close();
      await parts.stopAll();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** The processes of one plane; each is ended by its own id. */
class Parts {
  readonly #directory: string;
  readonly #running = new Map<string, ChildProcess>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  start(part: string, flags: readonly string[]): void {
    const log = openSync(join(this.#directory, `${part}.log`), "a");
    const child = spawn(controlPlaneBinary(), [part, ...flags], {
      cwd: this.#directory,
      stdio: ["ignore", log, log],
      env: { PATH: process.env["PATH"], HOME: this.#directory },
    });
    closeSync(log);
    this.#running.set(part, child);
    endWith(child);
  }

  /** Runs a part to its end; returns the file that it wrote. */
  async output(part: string): Promise<string> {
    this.start(part, []);
    const child = this.#running.get(part);
    if (child !== undefined && child.exitCode === null) await once(child, "exit");
    this.#running.delete(part);
    return join(this.#directory, `${part}.log`);
  }

  /** Waits until a condition holds. Throws if the part ends first. */
  async until(part: string, holds: () => Promise<boolean>): Promise<void> {
    const endMs = performance.now() + READY_MS_MAX;
    while (!(await holds())) {
      const ended = this.#running.get(part)?.exitCode !== null;
      if (ended || performance.now() > endMs) throw new Error(`${part} is not ready: ${this.#lastLines(part)}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async stop(part: string): Promise<void> {
    const child = this.#running.get(part);
    this.#running.delete(part);
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGTERM");
    const late = setTimeout(() => child.kill("SIGKILL"), part === "apiserver" ? 1_000 : STOP_MS_MAX);
    await gone;
    clearTimeout(late);
  }

  async stopAll(): Promise<void> {
    const clients = [...this.#running.keys()].filter((part) => part !== "etcd");
    await Promise.all(clients.map((part) => this.stop(part)));
    await this.stop("etcd");
  }

  #lastLines(part: string): string {
    return readFileSync(join(this.#directory, `${part}.log`), "utf8")
      .split("\n")
      .slice(-8)
      .join("\n");
  }
}

const children = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});

/** Ends all parts also if a test ends early. */
function endWith(child: ChildProcess): void {
  children.add(child);
  child.once("exit", () => children.delete(child));
}

/** Holds all ports at the same time, so that they differ. */
async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(async (server) => {
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      const address = server.address();
      return typeof address === "object" ? (address?.port ?? 0) : 0;
    }),
  );
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

function writeKeys(directory: string, tokens: readonly string[]): void {
  const { privateKey, publicKey } = generateKeyPairSync("ec", {
    namedCurve: "P-256",
    privateKeyEncoding: { type: "sec1", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
  writeFileSync(join(directory, "accounts.key"), privateKey, { mode: 0o600 });
  writeFileSync(join(directory, "accounts.pub"), publicKey);
  const lines = [`${ADMIN},admin,admin,"system:masters"`, ...tokens];
  writeFileSync(join(directory, "tokens.csv"), `${lines.join("\n")}\n`, { mode: 0o600 });
}

type Ports = { readonly directory: string; readonly api: number; readonly etcd: number; readonly peer: number };

function etcdFlags({ directory, etcd, peer }: Pick<Ports, "directory" | "etcd" | "peer">): readonly string[] {
  const [client, peers] = [`http://127.0.0.1:${etcd}`, `http://127.0.0.1:${peer}`];
  return [
    ...["--name=default", `--data-dir=${join(directory, "etcd")}`, "--log-level=warn", "--unsafe-no-fsync"],
    ...[`--listen-client-urls=${client}`, `--advertise-client-urls=${client}`],
    ...[`--listen-peer-urls=${peers}`, `--initial-advertise-peer-urls=${peers}`, `--initial-cluster=default=${peers}`],
  ];
}

/** The server creates its certificate in the plane's directory at the first start. */
function apiServerFlags(
  { directory, api, etcd }: Pick<Ports, "directory" | "api" | "etcd">,
  admission: readonly string[],
): readonly string[] {
  return [
    ...[`--etcd-servers=http://127.0.0.1:${etcd}`, "--bind-address=127.0.0.1", `--secure-port=${api}`],
    ...[`--cert-dir=${directory}`, "--token-auth-file=tokens.csv", "--authorization-mode=RBAC"],
    ...["--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=accounts.pub"],
    ...["--service-account-signing-key-file=accounts.key", "--service-cluster-ip-range=10.96.0.0/16"],
    ...["--endpoint-reconciler-type=none", "--profiling=false", "--shutdown-delay-duration=0s"],
    // Clusters allow privileged containers, and leave it to admission who may have them.
    "--allow-privileged=true",
    // This plugin taints new nodes, and no controller here would remove the taint.
    "--disable-admission-plugins=TaintNodesByCondition",
    ...(admission.length > 0 ? [`--enable-admission-plugins=${admission.join(",")}`] : []),
  ];
}

function served(port: number): readonly string[] {
  return ["--bind-address=127.0.0.1", `--secure-port=${port}`, "--authentication-skip-lookup"];
}

function schedulerConfig(kubeconfig: string): string {
  return JSON.stringify({
    apiVersion: "kubescheduler.config.k8s.io/v1",
    kind: "KubeSchedulerConfiguration",
    parallelism: 2,
    leaderElection: { leaderElect: false },
    clientConnection: { kubeconfig, qps: 5000, burst: 5000, contentType: "application/vnd.kubernetes.protobuf" },
  });
}

/** The controllers of every plane. */
export const CONTROLLERS: readonly string[] = [
  "garbage-collector",
  "namespace",
  "pod-garbage-collector",
  "resourcequota",
  "serviceaccount",
  "root-ca-certificate-publisher",
];

function controllerFlags(kubeconfig: string, port: number, names: readonly string[]): readonly string[] {
  const controllers = names.map((name) => `${name}-controller`).join(",");
  const trust = "--root-ca-file=apiserver.crt";
  return ["--kubeconfig", kubeconfig, `--controllers=${controllers}`, "--leader-elect=false", trust, ...served(port)];
}

function kwokFlags(kubeconfig: string, port: number): readonly string[] {
  return [
    ...["--kubeconfig", kubeconfig, "--manage-all-nodes=true", "--config", "stages.yaml", "--node-ip=127.0.0.1"],
    ...[`--server-address=127.0.0.1:${port}`, "--node-lease-duration-seconds=40", "--cidr=10.0.0.0/16"],
  ];
}

function kubeconfigText(server: string, certificate: string, token: string): string {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      { name: "plane", cluster: { server, "certificate-authority-data": Buffer.from(certificate).toString("base64") } },
    ],
    users: [{ name: "user", user: { token } }],
    contexts: [{ name: "plane", context: { cluster: "plane", user: "user" } }],
    "current-context": "plane",
  };
  return JSON.stringify(config satisfies JsonObject);
}

async function isReady(kubeconfig: string): Promise<boolean> {
  const client = createKubeClient({ kubeconfig, connectionsMax: 1, requestTimeoutMs: 2_000 });
  try {
    return (await client.request({ method: "GET", path: "/readyz" })).kind === "ok";
  } finally {
    await client.close();
  }
}

async function compact(etcd: string): Promise<void> {
  const call = async (path: string, body: JsonObject) => {
    const response = await fetch(`${etcd}${path}`, { method: "POST", body: JSON.stringify(body) });
    return (await response.json()) as { header?: { revision?: string } };
  };
  const { header } = await call("/v3/kv/range", { key: Buffer.from("/none").toString("base64") });
  await call("/v3/kv/compaction", { revision: header?.revision ?? "0", physical: true });
}
