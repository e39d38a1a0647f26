/** Services that know their callers, in processes of their own, for the benches of floods and of authentication. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ChannelSecurity, type ClientTls, PLAIN } from "../../../src/cli/rpc/channel.ts";
import { connect, type GangwayClient } from "../../../src/cli/rpc/client.ts";
import { NamespaceService } from "../../../src/gen/gangway/v1/namespace_service_pb.ts";
import { QueueService } from "../../../src/gen/gangway/v1/queue_service_pb.ts";
import { ResourceManager } from "../../../src/gen/gangway/v1/resource_manager_pb.ts";
import type { Certificates } from "../../support/certificates.ts";
import { addDatabase } from "../../support/data-folder.ts";
import { signingKey, TestIssuer } from "../../support/issuer.ts";
import { MainProcess } from "../../support/main-process.ts";
import { RedisServer } from "../../support/redis-server.ts";
import { ServeChild } from "../../support/serve-process.ts";
import { scratchServerDb } from "./scratch-db.ts";

/** A pool with room for every token of a bench. */
export const POOL = "bench:pool";
export const QUEUE = "bench";
const POOL_QUOTA = 1_000_000n;
/** Longer than a bench takes. */
const TOKEN_SECONDS = 4 * 3600;

/** Where services keep what they have. Null: each has an embedded database, and counts tokens itself. */
export type Stores = { readonly url: string; readonly redis: string } | null;

/** A database and a Redis of the bench's own; `postgres` is the server of the database. */
export async function startStores(parts: AsyncDisposableStack, postgres: string | null): Promise<Stores> {
  if (postgres === null) return null;
  const { url } = await scratchServerDb(parts, postgres);
  const redis = await RedisServer.start();
  parts.defer(() => redis.stop());
  return { url, redis: redis.url };
}

/** An issuer, and the callers that it names: each may do everything in the namespace of its name, and `root` all. */
export async function startIssuer(parts: AsyncDisposableStack) {
  const issuer = await TestIssuer.start(await signingKey("bench"));
  parts.defer(() => issuer.close());
  return {
    url: issuer.url,
    token: (sub: string) => issuer.sign({ sub, exp: Math.floor(Date.now() / 1000) + TOKEN_SECONDS }),
  };
}

type KnownOptions = {
  readonly stores: Stores;
  /** Null: the service knows nobody. */
  readonly issuer: string | null;
  /** The subjects that may do everything in the namespace of their tenant. */
  readonly tenants: readonly { readonly subject: string; readonly namespace: string }[];
  /** What `GANGWAY_LIMITS_FILE` has. Null: the limits that every installation has. */
  readonly limits: object | null;
  /** Null: calls are not encrypted. `asks`: the certificates of clients are asked for. */
  readonly tls?: { readonly certificates: Certificates; readonly asks: boolean } | null;
};

/** Starts a service with these callers. It ends with the parts. */
export async function startKnown(parts: AsyncDisposableStack, options: KnownOptions): Promise<MainProcess> {
  const folder = mkdtempSync(join(tmpdir(), "gangway-bench-"));
  parts.defer(() => rmSync(folder, { recursive: true, force: true }));
  const env = { GANGWAY_LOG_LEVEL: "warn", NAMESPACES: "open", ...settingsIn(folder, options) };
  const { stores } = options;
  if (stores === null) addDatabase(join(folder, "data"));
  const child =
    stores === null
      ? new MainProcess(["up", "--no-examples", "--listen", "127.0.0.1:0", "--data", join(folder, "data")], env)
      : new ServeChild("api", { ...env, DATABASE_URL: stores.url, REDIS_URL: stores.redis });
  parts.defer(async () => {
    await child.end("SIGTERM");
  });
  await (child instanceof ServeChild ? child.serving() : child.printed("listening on"));
  return child;
}

function settingsIn(folder: string, { issuer, tenants, limits, tls = null }: KnownOptions) {
  const file = (name: string, content: object) => {
    const path = join(folder, name);
    writeFileSync(path, JSON.stringify(content));
    return path;
  };
  const bindings = tenants.flatMap(({ subject, namespace }, at) =>
    [{ namespace }, { queue: QUEUE }, { poolPrefix: "bench" }].map((scope, place) => {
      return { name: `tenant-${at}-${place}`, subject, role: "submitter", scope };
    }),
  );
  const root = { name: "root", subject: "login:root", role: "admin" };
  const issuers = [{ issuer, audiences: ["gangway"], subjectPrefix: "login:" }];
  return {
    ...(limits === null ? {} : { GANGWAY_LIMITS_FILE: file("limits.yaml", limits) }),
    ...(issuer === null && tls?.asks !== true
      ? {}
      : { GANGWAY_ACCESS_FILE: file("access.yaml", { bindings: [root, ...bindings] }) }),
    ...(issuer === null ? {} : { GANGWAY_AUTHENTICATION_FILE: file("authentication.yaml", { issuers, robots: true }) }),
    ...(tls === null ? {} : tlsSettings(tls)),
  };
}

function tlsSettings({ certificates, asks }: NonNullable<NonNullable<KnownOptions["tls"]>>) {
  const { certFile, keyFile } = certificates.sign(`server-${asks}`, "DNS:localhost,IP:127.0.0.1");
  return {
    GANGWAY_TLS_CERT_FILE: certFile,
    GANGWAY_TLS_KEY_FILE: keyFile,
    ...(asks ? { GANGWAY_TLS_CLIENT_CA_FILE: certificates.caFile } : {}),
  };
}

/** A client with this token, or with this certificate. It closes with the parts. */
export function knownClient(
  parts: AsyncDisposableStack,
  { address }: MainProcess,
  shown: { readonly token?: string; readonly tls?: ClientTls } = {},
): GangwayClient {
  const { token, tls = null } = shown;
  const security: ChannelSecurity = { ...PLAIN, tls, token: token === undefined ? null : async () => token };
  const closing = new AbortController();
  const client = connect(address ?? "", closing.signal, security);
  parts.defer(() => {
    closing.abort();
    client.close();
  });
  return client;
}

/** Makes the namespaces, the queue and the pool that the tenants use. */
export async function makePlaces(root: GangwayClient, namespaces: readonly string[]): Promise<void> {
  await root.call(QueueService.method.createQueue, { queue: { name: QUEUE } });
  for (const name of namespaces) {
    await root.call(NamespaceService.method.createNamespace, { namespace: { name, defaultQueue: QUEUE } });
  }
  await root.call(ResourceManager.method.registerResourceQuota, { resourceNamespace: POOL, quota: POOL_QUOTA });
}

/** A job of a master and three workers that is suspended, so that what calls cost is measured, not what jobs cost. */
export function suspendedJob(namespace: string, name: string) {
  const container = { name: "pytorch", image: "example.com/train:1", command: ["python", "train.py"] };
  const limits = { cpu: "8", memory: "64Gi", "nvidia.com/gpu": "1" };
  const template = { spec: { containers: [{ ...container, resources: { limits } }] } };
  const replicaSpecs = { Master: { replicas: 1, template }, Worker: { replicas: 3, template } };
  const runPolicy = { suspend: true, schedulingPolicy: { queue: QUEUE } };
  return { job: { metadata: { name, namespace }, spec: { kind: "PyTorchJob", replicaSpecs, runPolicy } } };
}
