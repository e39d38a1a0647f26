/**
 * Runs every suite that this machine can run. Names each suite that it left out, and what would enable it. Arguments
 * are files to run instead of all, and `--test-name-pattern PATTERN`.
 */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { bringDeveloperPackages } from "../deploy/developer-packages.ts";
import { installedBrowser } from "./console/browser/installed-browser.ts";
import {
  hasMypy,
  hasProtoc,
  hasPython,
  hasRealCluster,
  hasStores,
  pythonOfClient,
  pythonWithGrpc,
} from "./docs/needs.ts";
import { controlPlaneBuilt } from "./kube/build.ts";
import { objectServerBuilt } from "./objects/build.ts";
import { hasOpenssl } from "./support/certificates.ts";
import { pgbouncerProgram } from "./support/pgbouncer.ts";
import { dropTemplates, postgresServer } from "./support/postgres.ts";
import { hasPostgresPrograms } from "./support/postgres-process.ts";
import { hasRedisServer } from "./support/redis-server.ts";
import { runFiles } from "./support/run-files.ts";
import { sharedFolder } from "./support/shared-folder.ts";
import { otelSdkIsInstalled } from "./telemetry/otel-sdk-installed.ts";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);

await bringDeveloperPackages();
// npm sets these for every script, because it leaves out what only developers need. No test runs in production.
for (const name of ["NODE_ENV", "npm_config_omit"]) delete process.env[name];

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
    enable: "set GANGWAY_CONFORMANCE to folders of cases, with : between them",
  },
  {
    name: "Jobs, JobSets and TrainJobs of other projects, as they are",
    available: () => process.env["GANGWAY_MANIFESTS_2026"] !== undefined,
    enable: "set GANGWAY_MANIFESTS_2026 to a folder of manifests",
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
    name: "PostgreSQL behind PgBouncer",
    available: () => postgres !== null && pgbouncerProgram() !== null,
    enable: "start PostgreSQL as above, and put pgbouncer on the PATH (Debian's package is pgbouncer)",
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
    name: "the benches of starts, many jobs, floods and authentication",
    available: () => process.env["GANGWAY_LONG_BENCHES"] !== undefined,
    enable: "set GANGWAY_LONG_BENCHES=1; they take minutes, so CI leaves them out",
  },
  {
    name: "whether the walks of Flyte's exported names have them all",
    available: () => process.env["GANGWAY_FLYTE_PAGES"] !== undefined,
    enable: "set GANGWAY_FLYTE_PAGES to a folder with the pages of Flyte's Go packages, as text",
  },
  {
    name: "objects, and the example of a plugin, on a real server with the protocol of S3",
    available: objectServerBuilt,
    enable: "npm run objects:build, which needs Go and some minutes",
  },
  {
    name: "whether protoc takes the protos for clients",
    available: hasProtoc,
    enable: "put protoc on the PATH (Debian's packages are protobuf-compiler and libprotobuf-dev)",
  },
  {
    name: "the checkpoints in Python of docs/checkpoints.md",
    available: hasPython,
    enable: "put python3 on the PATH",
  },
  {
    name: "the console in a browser: journeys, states, axe, layout",
    available: () => installedBrowser() !== null,
    enable: "put chromium on the PATH (Debian's package is chromium)",
  },
  {
    name: "the client in Python of docs/api.md",
    available: () => pythonWithGrpc() !== null,
    enable: "install grpcio and protobuf for python3 (on Debian: python3-grpcio)",
  },
  {
    name: "the package for Python of clients/python",
    available: () => pythonOfClient() !== null,
    enable: "install grpcio, protobuf and PyYAML for python3 (on Debian: python3-grpcio python3-protobuf python3-yaml)",
  },
  {
    name: "the types of clients/python",
    available: hasMypy,
    enable: "install mypy for the same python3 (on Debian: python3-mypy)",
  },
];

/** These take the longest, so they start first: what starts last then ends soon. `npm test` prints the times. */
const STARTED_FIRST = [
  "test/tools/simulation/clock-histories.test.ts",
  "test/tools/bench/bench.test.ts",
  "test/tools/simulation/histories.test.ts",
  "test/tools/losses/lost-scenario.test.ts",
  "test/processes/conserve.test.ts",
  "test/processes/quota-faults.test.ts",
  "test/docs/commands.test.ts",
  "test/console/browser/looks.test.ts",
  "test/api/web/through-http.test.ts",
  "test/kube/policies.test.ts",
  "test/counters/redis-histories.property.test.ts",
  "test/processes/set-aside.test.ts",
  "test/store/db/upgrade.test.ts",
  "test/processes/processes.test.ts",
  "test/processes/nominee.test.ts",
  "test/kube/register.test.ts",
  "test/kube/adapter-real.test.ts",
  "test/processes/restarts.test.ts",
  "test/processes/key-rotation.test.ts",
  "test/tools/chaos/kills.test.ts",
  "test/kube/main-job.test.ts",
  "test/kube/failures.test.ts",
  "test/worker/worker.test.ts",
  "test/kube/rbac.test.ts",
  "test/deploy/plugins.test.ts",
  "test/telemetry/traces.test.ts",
];
/** A test that takes longer fails, so that a run always ends. */
const TEST_MS_MAX = 900_000;
/** A file that takes longer is ended: a test that failed can leave something open that keeps its file running. */
const FILE_MS_MAX = 1_200_000;
/** A run that takes longer is ended. */
const RUN_MS_MAX = 4_000_000;
/** Files run while others wait for timers and servers. More would need more connections than PostgreSQL allows. */
const FILES_AT_ONCE = Math.min(4, 2 * availableParallelism());
const SLOWEST_SHOWN = 15;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { "test-name-pattern": { type: "string", multiple: true, default: [] } },
});
process.chdir(root);
const end = new AbortController();
// A process group may get the signal twice. The second one must not end the summary.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => end.abort(new Error(signal)));
const ran = await runFiles(
  {
    files: positionals.length > 0 ? positionals : testFiles(),
    filesAtOnce: FILES_AT_ONCE,
    testNamePatterns: values["test-name-pattern"],
    limits: { testMs: TEST_MS_MAX, fileMs: FILE_MS_MAX, runMs: RUN_MS_MAX },
    env: {
      // Half of the time of a short file is to read and compile its modules.
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? join(sharedFolder(), "compiled"),
      // A service that a test starts takes no port that others may have.
      GANGWAY_CONSOLE_LISTEN: "off",
    },
  },
  end.signal,
);
if (positionals.length === 0) {
  console.log("the slowest files:");
  for (const { file, ms } of ran.durations.slice(0, SLOWEST_SHOWN))
    console.log(`  ${file} ${(ms / 1000).toFixed(1)} s`);
}
if (ran.interrupted.length > 0) {
  console.log("tests that were still running when their file was ended:");
  for (const test of ran.interrupted) console.log(`  ${test}`);
}
for (const suite of conditional.filter((suite) => !suite.available())) {
  console.log(`left out: ${suite.name} (to run it, ${suite.enable})`);
}
const server = await postgresServer();
if (server !== null) await dropTemplates(server);
process.exitCode = ran.passed ? 0 : 1;

function testFiles(): readonly string[] {
  return readdirSync(here, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".test.ts"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort((a, b) => placeOf(a) - placeOf(b) || a.localeCompare(b));
}

function placeOf(file: string): number {
  const place = STARTED_FIRST.indexOf(file);
  return place < 0 ? STARTED_FIRST.length : place;
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
