/** A cluster that falls silent, on a whole service: what leaves it, what waits for it, and its return. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { after, before, test } from "node:test";
import type { SimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import type { RunningService } from "../../src/cli/service/up.ts";
import { startEmbedded } from "../../src/compose/embedded.ts";
import { readConfig } from "../../src/config/config.ts";
import { LABEL } from "../../src/core/job/labels.ts";
import { objectAt } from "../../src/runtime/json.ts";
import { clientOf, gpuNodes, startProxy, startSim, type Treatment, until } from "../cluster/harness.ts";
import { newDataFolder } from "../support/data-folder.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { run } from "./harness.ts";
import { longJob } from "./long-job.ts";

const FLAVOR = "gpu/h100=nvidia.com/gpu:nvidia.com/gpu.product=h100";
const data = newDataFolder("gangway-lost-cluster-");
const files: Record<string, string> = {};
const sims: Record<string, SimCluster> = {};
const proxies: Record<string, Awaited<ReturnType<typeof startProxy>>> = {};
type Asked = { readonly method: string; readonly path: string };

/** How the cluster east treats calls now. */
let treat: (asked: Asked) => Treatment = () => "pass";
/** Pods are created, but neither the answers nor the watch tell of it. */
const hidesPods = ({ method, path }: Asked): Treatment => {
  if (!path.endsWith("/pods")) return "pass";
  return method === "POST" ? "lose" : "cut";
};
let service: RunningService;

const gangway = (line: string) => run(line.split(" "), { address: service.address, files });
const ok = async (line: string): Promise<string> => {
  const ran = await gangway(line);
  assert.equal(ran.exitCode, 0, `gangway ${line}: ${ran.stderr}${ran.stdout}`);
  return ran.stdout;
};
const jobNow = async (name: string) => JSON.parse(await ok(`get ${name} -o json`));
const clusterOf = async (name: string): Promise<string> => (await jobNow(name)).status.admission?.cluster ?? "";
const phaseOf = async (name: string): Promise<string> => (await jobNow(name)).status.phase;
const stateOf = async (name: string): Promise<string> => JSON.parse(await ok(`cluster get ${name} -o json`)).state;

before(async () => {
  for (const [at, name] of ["east", "west"].entries()) {
    const sim = await startSim(gpuNodes(1), 21 + at);
    sims[name] = sim;
    proxies[name] = await startProxy(sim.url, (asked) => (name === "east" ? treat(asked) : "pass"));
    files[`${name}.yaml`] = proxies[name].kubeconfig;
  }
  for (const name of ["runs", "starts", "moves", "waits"])
    files[`${name}.yaml`] = longJob(name, { replicas: 2, gpus: 2 });
  const config = readConfig(data, {
    GANGWAY_CREDENTIALS_KEY: randomBytes(32).toString("base64"),
    GANGWAY_CLUSTER_LOST_SECONDS: "20",
    GANGWAY_CLUSTER_MOVE_SECONDS: "20",
    GANGWAY_LOG_LEVEL: "silent",
  });
  const options = { exit: false, examples: false, listen: "127.0.0.1:0", data, insecure: false, simulate: false };
  service = await startEmbedded(options, config, OWN_KINDS);
  await ok("queue update default --on-cluster-lost wait");
  assert.match(await ok("queue list -o wide"), /default .* --on-cluster-lost wait/);
  for (const name of ["east", "west"]) {
    await ok(`cluster add ${name} --kubeconfig ${name}.yaml --flavor ${FLAVOR}`);
    await until(
      async () => (await ok(`cluster list`)).match(new RegExp(`${name} +ready`)) !== null,
      `${name} is ready`,
    );
  }
});

after(async () => {
  await service.close();
  for (const proxy of Object.values(proxies)) await proxy.close();
  for (const sim of Object.values(sims)) await sim.close();
  rmSync(data, { recursive: true, force: true });
});

async function tokensHeld(): Promise<number> {
  const pool = JSON.parse(await ok("quota get gpu/h100 -o json"));
  return Number(pool.used ?? pool.pool?.used ?? 0);
}

/** The pods of a job that are in a cluster. */
async function podsIn(cluster: string, job: string): Promise<readonly string[]> {
  const client = clientOf(sims[cluster]?.kubeconfig() ?? "");
  const listed = await client.request({ method: "GET", path: "/api/v1/namespaces/default/pods" });
  await client.close();
  assert.ok(listed.kind === "ok");
  const items = (listed.object as { items: { metadata: { name: string; deletionTimestamp?: string } }[] }).items;
  const own = items.filter(({ metadata }) => metadata.name.startsWith(`${job}-`) && !metadata.deletionTimestamp);
  return own.map(({ metadata }) => metadata.name);
}

/** Copies a pod as one of a job that is gone, as a call that comes late would make it. */
async function lateCreate(
  cluster: string,
  job: string,
  as: string,
  more: Readonly<Record<string, string>>,
): Promise<void> {
  const client = clientOf(sims[cluster]?.kubeconfig() ?? "");
  const path = "/api/v1/namespaces/default/pods";
  const found = await client.request({ method: "GET", path: `${path}/${job}-worker-0` });
  assert.ok(found.kind === "ok");
  const metadata = objectAt(found.object, "metadata");
  const labels = { ...objectAt(metadata, "labels"), [LABEL.jobUid]: GONE, ...more };
  const spec = { ...objectAt(found.object, "spec"), nodeName: null };
  const body = { apiVersion: "v1", kind: "Pod", metadata: { name: `${as}-worker-0`, labels }, spec };
  const made = await client.request({ method: "POST", path, body });
  await client.close();
  assert.equal(made.kind, "ok", JSON.stringify(made));
}

const GONE = "01900000-0000-7000-8000-00000000ffff";

test("a gang that never ran leaves a silent cluster, one that runs waits, and nothing is left on return", async () => {
  await ok("cluster cordon west");
  await ok("submit -f runs.yaml");
  await until(async () => (await phaseOf("runs")).endsWith("RUNNING"), "it runs");
  treat = hidesPods;
  proxies["east"]?.cutAll();
  await ok("submit -f starts.yaml");
  await until(async () => (await podsIn("east", "starts")).length > 0, "its first pod is there");
  treat = () => "cut";
  proxies["east"]?.cutAll();
  await ok("cluster uncordon west");
  await until(async () => (await stateOf("east")).endsWith("LOST"), "the cluster counts as lost");
  await until(async () => (await clusterOf("starts")) === "west", "the gang that never ran goes elsewhere");
  await until(async () => (await podsIn("west", "starts")).length === 2, "its pods are there");
  assert.equal(await clusterOf("runs"), "east", "its queue says so, though its namespace says move");
  assert.match(await ok("cluster list"), /east +lost for /);
  assert.match(await ok("explain runs"), /ClusterLost/);
  assert.match(await ok("events starts"), /ClusterLost/);

  await lateCreate("east", "runs", "late", {});
  await lateCreate("east", "runs", "theirs", { [LABEL.installation]: "another" });
  treat = () => "pass";
  proxies["east"]?.cutAll();
  await until(async () => (await stateOf("east")).endsWith("ACTIVE"), "the cluster is back");
  assert.deepEqual(await podsIn("east", "starts"), [], "what was left has been deleted before");
  assert.deepEqual(await podsIn("east", "late"), [], "also of a job that nobody knows");
  assert.equal((await podsIn("east", "theirs")).length, 1, "nothing of another installation is touched");
  assert.deepEqual([await clusterOf("starts"), await clusterOf("runs")], ["west", "east"]);
  assert.equal((await podsIn("east", "runs")).length, 2, "the gang that ran runs on");
  assert.equal(await tokensHeld(), 8);
  for (const name of ["runs", "starts"]) await ok(`delete ${name}`);
  await until(async () => (await tokensHeld()) === 0, "all tokens are free");
});

test("a gang that ran runs elsewhere once it fits there, keeps its tokens, and leaves nothing on return", async () => {
  await ok("cluster cordon west");
  await ok("submit -f moves.yaml --move-after 20s");
  await ok("queue update default --on-cluster-lost move");
  await ok("submit -f waits.yaml --move-after 0s");
  for (const name of ["moves", "waits"]) {
    await until(async () => (await phaseOf(name)).endsWith("RUNNING"), `${name} runs`);
  }
  treat = () => "cut";
  proxies["east"]?.cutAll();
  await until(async () => (await stateOf("east")).endsWith("LOST"), "the cluster counts as lost");
  const asked =
    /the gang runs elsewhere once it fits there; at present no other cluster takes it: .*west: it is cordoned/;
  await until(async () => asked.test(await ok("explain moves")), "it is to move");
  assert.deepEqual([await clusterOf("moves"), await tokensHeld()], ["east", 8], "it fits nowhere yet");
  assert.equal(await ok("cluster declare-lost east --dry-run"), "0 gangs would leave, 2 would stay\n");
  const given = "2 gangs would leave, 0 would stay\n  default/moves\n  default/waits\n";
  assert.equal(await ok("cluster remove east --forget --dry-run"), given);
  assert.deepEqual([await stateOf("east"), await tokensHeld()], ["CLUSTER_STATE_LOST", 8], "dry runs change nothing");
  await ok("cluster uncordon west");
  await until(async () => (await clusterOf("moves")) === "west", "it moves");
  await until(async () => (await phaseOf("moves")).endsWith("RUNNING"), "it runs there");
  assert.deepEqual([await clusterOf("waits"), await tokensHeld()], ["east", 8]);
  assert.match(await ok("queue tree"), /gpu\/h100 8\/\d+ \(4 lost\)/);
  assert.match(await ok("events moves"), /JobClusterLost/);

  treat = () => "pass";
  proxies["east"]?.cutAll();
  await until(async () => (await stateOf("east")).endsWith("ACTIVE"), "the cluster is back");
  assert.deepEqual(await podsIn("east", "moves"), [], "what was left has been deleted before");
  assert.equal((await podsIn("east", "waits")).length, 2);
  assert.deepEqual([await phaseOf("moves"), await phaseOf("waits")], Array(2).fill("JOB_PHASE_RUNNING"));
  for (const name of ["moves", "waits"]) await ok(`delete ${name}`);
  await until(async () => (await tokensHeld()) === 0, "all tokens are free");
});

test("an operator declares a silent cluster lost; one that answers is not", async () => {
  const refused = await gangway("cluster declare-lost east --confirm east");
  assert.equal(refused.exitCode, 3);
  assert.match(refused.stderr, /cluster east answers, so it is not lost/);
  const unconfirmed = await gangway("cluster declare-lost east");
  assert.equal(unconfirmed.exitCode, 2);
  assert.match(unconfirmed.stderr, /cluster declare-lost east --confirm east/);
  assert.match(
    (await gangway("cluster declare-lost nowhere --confirm nowhere")).stderr,
    /cluster nowhere does not exist/,
  );
});
