/** Nodes and running jobs as tables, in full and in the other formats. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { ClusterRecord } from "../../src/core/admin/cluster.ts";
import type { Admission } from "../../src/core/job/status.ts";
import type { CapacityEntry } from "../../src/core/plan/model/capacity-entry.ts";
import type { NodeTrouble } from "../../src/core/plan/model/snapshot.ts";
import { startFixture } from "../api/fixture.ts";
import { pytorchManifest, type Ran, run, type World } from "./harness.ts";

const GPU = "nvidia.com/gpu";

function cluster(name: string, more: Partial<ClusterRecord> = {}): ClusterRecord {
  const flavors = [{ name: "gpu/h100", resource: GPU, nodeLabels: { model: "h100" } }];
  const flags = { cordoned: false, simulated: false, reachable: true, uid: null, gangScheduler: "none" } as const;
  return {
    name,
    labels: {},
    flavors,
    ...flags,
    observedMs: 5_000,
    version: 1,
    createTimeMs: 1,
    capacity: null,
    ...more,
  };
}

type More = {
  readonly job?: string;
  readonly trouble?: NodeTrouble;
  readonly labels?: Readonly<Record<string, string>>;
};

function node(name: string, held: number | null, { job, trouble, labels = {} }: More = {}): CapacityEntry {
  const gpus = held === null ? {} : { [GPU]: 8_000 };
  const free = held === null ? {} : { [GPU]: (8 - held) * 1_000 };
  const taints = [{ key: "gpu", value: "yes", effect: "NoSchedule" }];
  return {
    kind: "node",
    name,
    node: {
      name,
      labels: { model: "h100", ...labels },
      taints,
      unschedulable: trouble !== undefined,
      allocatable: { cpu: 8_000, ...gpus },
      free: { cpu: 8_000, ...free },
      ...(trouble === undefined ? {} : { trouble }),
    },
    members: job === undefined ? [] : [{ jobUid: job, admission: 1, role: "worker", index: 1 }],
  };
}

const BROKEN: NodeTrouble = {
  cordoned: true,
  notReady: { reason: "KubeletNotReady", message: "no \u001b[31m network" },
};

/** Two clusters, one of which does not answer; the worker of `gpt` with two GPUs is on a node of the first. */
async function served(t: TestContext) {
  const { api, store } = await startFixture(t);
  const world: World = {
    address: api.address,
    files: { "gpt.yaml": withGpus("gpt"), "small.yaml": pytorchManifest("small") },
  };
  const gangway = (line: string, more: World = {}): Promise<Ran> => run(line.split(" "), { ...world, ...more });
  for (const file of ["gpt.yaml", "small.yaml"]) assert.equal((await gangway(`submit ${file}`)).exitCode, 0);
  const job = store.jobs.get("default/gpt")?.job.uid ?? assert.fail("no job");
  store.clusters.set("east", cluster("east"));
  store.clusters.set("sim", cluster("sim", { simulated: true, cordoned: true, reachable: false }));
  store.nodeEntries.set("east", [
    node("gpu-0", 6, { job }),
    node("gpu-1", 0, { trouble: BROKEN }),
    node("cpu-0", null, { labels: { zone: "a", note: "\u001b]0;owned\u0007" } }),
  ]);
  store.nodeEntries.set("sim", [node("gpu-0", 8)]);
  return { gangway, store };
}

function withGpus(name: string): string {
  const resources = `resources: {limits: {${GPU}: 2}}`;
  return pytorchManifest(name).replaceAll("image: example.com/train}", `image: example.com/train, ${resources}}`);
}

test("nodes shows the GPUs, the state and the holders of every node", async (t) => {
  const { gangway } = await served(t);
  const { exitCode, stdout, stderr } = await gangway("nodes");
  assert.equal(exitCode, 0);
  assert.deepEqual(stdout.split("\n"), [
    "NAME   CLUSTER          FLAVOR    HELD  FREE  GPUS  STATE                                  JOBS",
    "cpu-0  east             -            -     -     -  ready                                  -",
    "gpu-0  east             gpu/h100     6     2     8  ready                                  gpt 2, other pods 4",
    "gpu-1  east             gpu/h100     0     8     8  not ready (KubeletNotReady), cordoned  -",
    "gpu-0  sim (simulated)  gpu/h100     8     0     8  ready, cluster cordoned                other pods 8",
    "",
  ]);
  assert.match(stderr, /^cluster sim does not answer: its nodes are shown as last seen, and changed .+ ago\n$/);
});

/** Command lines, and the names of the nodes that they print, in order. */
const selections: Readonly<Record<string, readonly string[]>> = {
  "nodes -o name": ["cpu-0", "gpu-0", "gpu-1", "gpu-0"],
  "node -o name --cluster east": ["cpu-0", "gpu-0", "gpu-1"],
  "get nodes -o name": ["cpu-0", "gpu-0", "gpu-1", "gpu-0"],
  "get no -o name --cluster sim": ["gpu-0"],
  "list nodes -o name --state ready": ["cpu-0", "gpu-0", "gpu-0"],
  "nodes -o name --state NotReady,leaving": ["gpu-1"],
  "nodes -o name --flavor gpu/h100": ["gpu-0", "gpu-1", "gpu-0"],
  "nodes -o name -l zone=a": ["cpu-0"],
  "nodes -o name -l model,zone!=a --cluster east": ["gpu-0", "gpu-1"],
  "nodes -o name --sort-by .metadata.name": ["cpu-0", "gpu-0", "gpu-0", "gpu-1"],
  "nodes -o name --sort-by held": ["gpu-0", "gpu-0", "gpu-1", "cpu-0"],
  "nodes -o name --sort-by={.free} --limit 2": ["gpu-1", "gpu-0"],
  "top nodes -o name": ["gpu-0", "gpu-0", "gpu-1", "cpu-0"],
  "top node -o name --sort-by free": ["gpu-1", "gpu-0", "gpu-0", "cpu-0"],
  "nodes node/gpu-1,cpu-0 -o name": ["cpu-0", "gpu-1"],
  "get node gpu-1 -o name": ["gpu-1"],
  "get nodes/gpu-0 -o name --cluster sim": ["gpu-0"],
};
test("nodes are selected and ordered as in kubectl", async (t) => {
  const { gangway } = await served(t);
  for (const [line, names] of Object.entries(selections)) {
    const { exitCode, stdout } = await gangway(line);
    assert.deepEqual([exitCode, stdout], [0, names.map((name) => `node/${name}\n`).join("")], line);
  }
  assert.match((await gangway("nodes --limit 2")).stderr, /only the first 2 of 4 nodes are shown; use --limit/);
  const { stdout } = await gangway("nodes --no-headers -o custom-columns=N:.name,FREE:.gpus[0].free");
  assert.match(stdout, /cpu-0 +<none>\ngpu-0 +2\n/);
});

test("a node by its name is shown in full, and get shows it as a row", async (t) => {
  const { gangway } = await served(t);
  for (const line of [
    "nodes gpu-0 --cluster east",
    "describe node gpu-0 --cluster east",
    "explain node/gpu-0 --cluster east",
  ]) {
    const { exitCode, stdout } = await gangway(line);
    assert.equal(exitCode, 0, line);
    assert.match(
      stdout,
      /^Node: +gpu-0\nCluster: +east\nState: +ready\nFlavors: +gpu\/h100\nGPUs: +6 held, 2 free, of 8\n/,
    );
    assert.match(stdout, /\nLabels: +model=h100\nTaints: +gpu=yes:NoSchedule\n/);
    assert.match(stdout, /\nRESOURCE +HELD +FREE +ALLOCATABLE\ncpu +0 +8 +8\nnvidia.com\/gpu +6 +2 +8\n/);
    assert.match(stdout, /\nJOB +QUEUE +BY +POD +GPUS +REQUESTS\n/);
    assert.match(stdout, /\ngpt +default +anonymous +gpt-worker-1 +2 +2 nvidia.com\/gpu\nother pods .*4/);
  }
  const broken = (await gangway("nodes gpu-1")).stdout;
  assert.match(broken, /State: +not ready \(KubeletNotReady\), cordoned\nMessage: +no \\u001b\[31m network\n/);
  assert.match(broken, /No job holds this node\./);
  assert.match((await gangway("get node gpu-1 --no-headers")).stdout, /^gpu-1 +east +gpu\/h100 +0 +8 +8 +not ready/);
  assert.equal(JSON.parse((await gangway("nodes gpu-1 -o json")).stdout).reason, "KubeletNotReady");
  assert.equal((await gangway("nodes gpu-0 -o jsonpath={.nodes[*].cluster}")).stdout, "east sim");
  assert.match((await gangway("nodes gpu-1 -o yaml")).stdout, /^name: gpu-1\n/);
});

const failures: Readonly<Record<string, readonly [number, RegExp]>> = {
  "nodes gpu-2": [3, /^error: node gpu-2 does not exist; did you mean gpu-[01]\?\n$/],
  "nodes gpu-1 --cluster sim": [3, /^error: node gpu-1 does not exist in cluster sim; did you mean gpu-0\?\n$/],
  "nodes gpu-0 --state leaving": [3, /node gpu-0 does not pass the options that select nodes/],
  "nodes --cluster none": [3, /cluster none does not exist/],
  "nodes --state broken": [2, /There is no state broken. Allowed are ready, not-ready, cordoned, leaving/],
  "nodes --sort-by constructor": [2, /Allowed are name, metadata.name, cluster, held, gpus, free/],
  "nodes a/b": [2, /a node must be NAME or node\/NAME, not a\/b/],
  nodez: [2, /did you mean "gangway nodes"\?/],
  "delete node gpu-0": [2, /node is none; nothing was changed/],
  "drain gpu-0": [2, /nodes are drained with kubectl/],
  "top nodez": [2, /unknown command 'nodez'; did you mean "gangway top nodes"\?/],
  "top jobs --sort-by size": [2, /Allowed are gpus, held, age, name, priority, queue, cluster, flavor, pods/],
  "top jobs --phase waiting": [2, /only admitted, starting, running and restarting jobs hold GPUs/],
};
test("a wrong name or option is an error that helps", async (t) => {
  const { gangway } = await served(t);
  for (const [line, [exitCode, said]] of Object.entries(failures)) {
    const ran = await gangway(line);
    assert.deepEqual([ran.exitCode, ran.stdout], [exitCode, ""], line);
    assert.match(ran.stderr, said, line);
  }
});

test("in a terminal no line is wider than it, and no text of others controls it", async (t) => {
  const { gangway, store } = await served(t);
  const long = `gpu-${"x".repeat(120)}`;
  const entries = store.nodeEntries.get("east") ?? [];
  store.nodeEntries.set("east", [...entries, node(long, 1, { labels: { [`l${"y".repeat(150)}`]: "z z z" } })]);
  for (const line of ["nodes", "top nodes", `nodes ${long}`, "nodes gpu-0", "nodes cpu-0", "top jobs"]) {
    for (const columns of [80, 40]) {
      const { stdout } = await gangway(line, { isTty: true, columns });
      assert.doesNotMatch(stdout, /(?!\n)\p{Cc}/u, line);
      for (const text of stdout.split("\n")) assert.ok(text.length <= columns, `${line}: ${text}`);
    }
  }
  const { stdout, stderr } = await gangway("nodes", { isTty: true });
  assert.match(stdout, /\n(gpu-0) +sim\* /);
  assert.match(stderr, /\* simulated cluster: no program runs there/);
});

test("top nodes shows the fullest nodes first, and says that this is no measured use", async (t) => {
  const { gangway } = await served(t);
  const { stdout, stderr } = await gangway("top nodes");
  assert.match(stdout, /^NAME +CLUSTER +FLAVOR +HELD +HELD% +FREE +GPUS +PODS +STATE\n/);
  assert.match(stdout, /\ngpu-0 +sim \(simulated\) +gpu\/h100 +8 +100% +0 +8 +0 +ready/);
  assert.match(stderr, /held GPUs are reserved; how busy they are is not measured/);
  assert.equal((await gangway("top nodes -o json")).stderr.includes("reserved"), false);
});

test("top jobs shows what running jobs hold, and leaves out others", async (t) => {
  const { gangway, store } = await served(t);
  const none = await gangway("top jobs");
  assert.deepEqual([none.exitCode, none.stdout, none.stderr], [0, "", "no running jobs\n"]);
  for (const [name, active] of [
    ["gpt", 2],
    ["small", 3],
  ] as const) {
    const { job } = store.jobs.get(`default/${name}`) ?? assert.fail("no job");
    const admission = { number: 1, cluster: "east", admitTimeMs: 1, members: { Master: 1, Worker: 2 }, state: "live" };
    const rest = { flavors: {}, flavorLabels: {}, tokensReleasedMs: null, goneMs: null, belowMinSinceMs: null };
    const replicaStatuses = { Worker: { active, succeeded: 0, failed: 0 } };
    const status = { ...job.status, phase: "RUNNING" as const, replicaStatuses };
    store.put({ ...job, status, admissions: [{ ...admission, ...rest } as Admission] });
  }
  const { exitCode, stdout, stderr } = await gangway("top jobs");
  assert.equal(exitCode, 0);
  assert.match(stdout, /^NAME +GPUS +FLAVOR +PODS +AGE +CLUSTER +BY +QUEUE\n/);
  assert.match(stdout, /\ngpt +\d+ .* 2\/3 .* east +anonymous +default\n/);
  assert.match(stderr, /held GPUs are reserved; how busy they are is not measured/);
  assert.equal((await gangway("top jobs --sort-by pods -o name")).stdout, "pytorchjob/small\npytorchjob/gpt\n");
  assert.match((await gangway("top jobs -A --no-headers")).stdout, /^default +(gpt|small) /);
  assert.equal((await gangway("top job --sort-by name -o name --queue none")).stdout, "");
});
