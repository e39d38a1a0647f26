/**
 * Runs every suite that this machine can run. Names each suite that it left out, and what would enable it. Arguments go
 * to node's test runner; names of files among them replace the list of all files.
 */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { hasRealCluster, hasStores, pythonWithGrpc } from "./docs/needs.ts";
import { controlPlaneBuilt } from "./kube/build.ts";
import { hasOpenssl } from "./support/certificates.ts";
import { dropTemplates, postgresServer } from "./support/postgres.ts";
import { hasPostgresPrograms } from "./support/postgres-process.ts";
import { hasRedisServer } from "./support/redis-server.ts";
import { otelSdkIsInstalled } from "./telemetry/otel-sdk-installed.ts";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);

const postgres = await postgresServer();

/** Suites that need something besides Node and npm. */
const conditional: readonly { readonly name: string; readonly available: () => boolean; readonly enable: string }[] = [
  {
    name: "SQL on a PostgreSQL server: the store, races between transactions, notifications, histories",
    available: () => postgres !== null,
    enable: "start PostgreSQL on 127.0.0.1:5432 (user postgres, no password), or set TEST_DATABASE_URL",
  },
  {
    name: "several processes that are killed; tokens under many callers while Redis fails",
    available: () => postgres !== null && spawnSync("redis-server", ["--version"]).status === 0,
    enable: "start PostgreSQL as above, and put redis-server 6.2 or later on the PATH",
  },
  {
    name: "conformance cases from elsewhere",
    available: () => process.env["GANGWAY_CONFORMANCE"] !== undefined,
    enable: "set GANGWAY_CONFORMANCE to a folder of cases",
  },
  {
    name: "counters in Redis: alone, behind sentinels, as a Redis Cluster",
    available: () => spawnSync("redis-server", ["--version"]).status === 0,
    enable: "put redis-server 6.2 or later on the PATH",
  },
  {
    name: "Redis over TLS",
    available: () => hasRedisServer() && hasOpenssl(),
    enable: "put redis-server with TLS, and openssl, on the PATH",
  },
  {
    name: "crashes of PostgreSQL and Redis under several processes",
    available: () => hasPostgresPrograms() && hasRedisServer(),
    enable: "put initdb, postgres and redis-server on the PATH",
  },
  {
    name: "the command line started by an older node",
    available: () => Number(pathNodeMajor()) < 24,
    enable: "put a node older than 24 on the PATH",
  },
  {
    name: "export to an OpenTelemetry collector",
    available: otelSdkIsInstalled,
    enable: "install @opentelemetry/sdk-node",
  },
  {
    name: "the cluster adapter, the main job and the failure table on real Kubernetes API servers",
    available: controlPlaneBuilt,
    enable: "npm run kube:build, which needs Go and some minutes",
  },
  {
    name: "the commands of docs/operating.md, on PostgreSQL and Redis",
    available: () => hasStores(postgres),
    enable: "start PostgreSQL as above, and put redis-server, psql, pg_dump and pg_restore on the PATH",
  },
  {
    name: "the commands of docs/clusters.md that need a real cluster",
    available: hasRealCluster,
    enable: "npm run kube:build, and put kubectl on the PATH",
  },
  {
    name: "the client in Python of docs/api.md",
    available: () => pythonWithGrpc() !== null,
    enable: "install grpcio and protobuf for python3 (on Debian: python3-grpcio)",
  },
];

const args = process.argv.slice(2);
const named = args.filter((arg) => arg.endsWith(".test.ts"));
const files = named.length > 0 ? named : testFiles();
const flags = args.filter((arg) => !named.includes(arg));
/** A test that takes longer fails, so that a run always ends. */
const TEST_MS_MAX = 600_000;
/** A run that takes longer is ended: a test that failed can leave something open that keeps its file running. */
const RUN_MS_MAX = 2_400_000;
const limits = ["--test-concurrency=2", `--test-timeout=${TEST_MS_MAX}`];
const run = spawnSync(process.execPath, ["--test", ...limits, ...flags, ...files], {
  cwd: root,
  stdio: "inherit",
  timeout: RUN_MS_MAX,
});
if (run.error !== undefined) console.log(`the run was ended: ${run.error.message}`);
for (const suite of conditional.filter((suite) => !suite.available())) {
  console.log(`left out: ${suite.name} (to run it, ${suite.enable})`);
}
const server = await postgresServer();
if (server !== null) await dropTemplates(server);
process.exitCode = run.status ?? 1;

function testFiles(): readonly string[] {
  return readdirSync(here, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".test.ts"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort();
}

/** The major version of the node that a plain shell finds. npm puts its folders first on the PATH; they are skipped. */
function pathNodeMajor(): string {
  const path = (process.env["PATH"] ?? "")
    .split(":")
    .filter((part) => !part.includes("node_modules"))
    .join(":");
  return (
    spawnSync("node", ["-p", "process.versions.node.split('.')[0]"], { encoding: "utf8", env: { PATH: path } })
      .stdout || "99"
  );
}
