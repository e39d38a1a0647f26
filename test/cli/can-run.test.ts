import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { startFixture } from "../api/fixture.ts";
import { queueRecord } from "../api/memory-store.ts";
import { amounts, cluster, flavor, node, nodes } from "../core/plan/plan-world.ts";
import { run, type World } from "./harness.ts";

/** A job of workers with eight GPUs each. */
const manifest = (name: string, workers: number, limits = "") => `apiVersion: gangway.dev/v1
kind: Job
metadata: {name: ${name}}
spec:
  replicaSpecs:
    Worker:
      replicas: ${workers}
      template: {spec: {containers: [{name: main, image: i, resources: {limits: {nvidia.com/gpu: 8${limits}}}}]}}
`;
const files = {
  "gpt.yaml": manifest("gpt", 2),
  "four.yaml": manifest("four", 4),
  "memory.yaml": manifest("memory", 1, ", memory: 2Ti"),
  "huge.yaml": manifest("huge", 9),
  "both.yaml": `${manifest("gpt", 2)}---\n${manifest("huge", 9)}`,
  "wrong.yaml": manifest("wrong", 1).replace("image: i", "image: i, ports: 5"),
  "typo.yaml": manifest("typo", 1).replace("image: i", "image: i, imagePullPolcy: Always"),
};

/** `east` has two nodes free, `north` none of its four, `west` has other GPUs, and `south` is cordoned. */
async function served(t: TestContext) {
  const fixture = await startFixture(t);
  const { store } = fixture;
  const quotas = [{ flavor: "gpu/h100", resource: "nvidia.com/gpu", nominal: 64 }];
  store.queues.set("default", { ...queueRecord("default"), quotas });
  const record = {
    uid: null,
    simulated: false,
    observedMs: 1,
    version: 1,
    createTimeMs: 1,
    gangScheduler: "none",
  } as const;
  const small = node("s-0", "h100", { allocatable: amounts(8), free: amounts(3) });
  for (const one of [
    cluster("east", { nodes: nodes(2, "h100") }),
    cluster("north", { nodes: [...nodes(3, "h100", { free: amounts(0) }), small] }),
    cluster("west", { nodes: nodes(2, "a100"), flavors: [flavor("a100")] }),
    cluster("south", { nodes: nodes(4, "h100"), cordoned: true }),
  ]) {
    store.clusters.set(one.name, { ...one, ...record });
  }
  const world: World = { address: fixture.api.address, files };
  const gangway = (line: string, more: World = {}) => run(line.split(" "), { ...world, ...more });
  return { ...fixture, gangway };
}

const answers: Readonly<Record<string, { readonly line: string; readonly exit: number; readonly says: string }>> = {
  "a job that fits": {
    line: "can-run -f gpt.yaml",
    exit: 0,
    says: `default/gpt can run now on cluster east
  east   can run the job now
  north  can run the job later: the job needs 2 pods of 8 nvidia.com/gpu
         (gpu/h100); 0 fit now on north; for the first Worker pod, node s-0
         lacks nvidia.com/gpu (needs 8, has 3 of 8 free)
  south  can run the job later: it is cordoned
  west   can never run the job: it has no gpu/h100
`,
  },
  "a job that must wait": {
    line: "can-run four.yaml",
    exit: 0,
    says: `default/four can run, but not now; it must first wait in the queue "default": it
  needs 4 pods of 8 nvidia.com/gpu (gpu/h100); 0 fit now on north; for the first
  Worker pod, node s-0 lacks nvidia.com/gpu (needs 8, has 3 of 8 free)
  east   can never run the job: the job needs 4 pods of 8 nvidia.com/gpu
         (gpu/h100); east takes 2 even when it is empty; for the next Worker
         pod, 2 nodes lack nvidia.com/gpu (needs 8, has 0 of 8 free)
  north  can run the job later: the job needs 4 pods of 8 nvidia.com/gpu
         (gpu/h100); 0 fit now on north; for the first Worker pod, node s-0
         lacks nvidia.com/gpu (needs 8, has 3 of 8 free)
  south  can run the job later: it is cordoned
  west   can never run the job: it has no gpu/h100
`,
  },
  "a job that no node can take": {
    line: "can-run -f memory.yaml",
    exit: 1,
    says: `default/memory can never run: no node of cluster east can ever take a Worker
  pod: 2 nodes lack memory (needs 2Ti, has 256Gi allocatable)
  east   can never run the job: no node of cluster east can ever take a Worker
         pod: 2 nodes lack memory (needs 2Ti, has 256Gi allocatable)
  north  can never run the job: no node of cluster north can ever take a Worker
         pod: 4 nodes lack memory (needs 2Ti, has 256Gi allocatable)
  south  can never run the job: no node of cluster south can ever take a Worker
         pod: 4 nodes lack memory (needs 2Ti, has 256Gi allocatable)
  west   can never run the job: it has no gpu/h100
`,
  },
  "a job above the limit of its queue": {
    line: "can-run -f huge.yaml",
    exit: 1,
    says: `default/huge can never run: needs 72 of gpu/h100; queue default may use 64 at
  most
  east   can never run the job: the job needs 72 of gpu/h100; queue default may
         use 64 at most
  north  can never run the job: the job needs 72 of gpu/h100; queue default may
         use 64 at most
  south  can never run the job: the job needs 72 of gpu/h100; queue default may
         use 64 at most
  west   can never run the job: the job needs 72 of gpu/h100; queue default may
         use 64 at most
`,
  },
};
for (const [name, { line, exit, says }] of Object.entries(answers)) {
  test(`can-run on a terminal of 80 columns: ${name}`, async (t) => {
    const { gangway, store } = await served(t);
    const ran = await gangway(line, { isTty: true });
    assert.deepEqual([ran.stdout, ran.stderr, ran.exitCode], [says, "", exit]);
    assert.ok(ran.stdout.split("\n").every((text) => text.length <= 80));
    assert.equal(store.jobs.size, 0);
  });
}

test("can-run does not break lines in a pipe", async (t) => {
  const { gangway } = await served(t);
  const { stdout } = await gangway("can-run -f memory.yaml");
  assert.equal(stdout.split("\n").length, 6);
});

test("can-run judges several manifests, and its exit status is that of the worst", async (t) => {
  const { gangway } = await served(t);
  const both = await gangway("can-run both.yaml");
  assert.match(both.stdout, /^default\/gpt can run now .*\n( .*\n)+default\/huge can never run: .*\n( .*\n)+$/);
  assert.equal(both.exitCode, 1);
  const refused = await gangway("can-run huge.yaml wrong.yaml gpt.yaml");
  assert.equal(refused.exitCode, 3);
  assert.match(refused.stderr, /wrong\.yaml.*\n.*\n.*ports/);
  assert.match(refused.stdout, /default\/gpt can run now/);
});

test("can-run prints the answer as JSON, YAML and through templates", async (t) => {
  const { gangway } = await served(t);
  const json = JSON.parse((await gangway("can-run -f memory.yaml -o json")).stdout);
  assert.deepEqual([json.verdict, json.reason, json.clusters.length], ["VERDICT_NEVER", "TooLarge", 4]);
  assert.deepEqual(json.clusters[0].refusal.blockedPod.obstacles, [
    { kind: "KIND_RESOURCE", name: "memory", need: "2Ti", available: "256Gi", allocatable: "256Gi" },
  ]);
  const yaml = await gangway("can-run -f gpt.yaml -o yaml");
  assert.match(yaml.stdout, /^---\nverdict: VERDICT_FITS_NOW\n/);
  assert.equal((await gangway("can-run -f gpt.yaml -o jsonpath={.admission.cluster}")).stdout.trim(), "east");
  assert.equal((await gangway("can-run -f gpt.yaml -o name")).stdout, "job/gpt\n");
});

test("can-run prints warnings, and names what is wrong with the command line", async (t) => {
  const { gangway } = await served(t);
  const typo = await gangway("can-run -f typo.yaml");
  assert.match(typo.stderr, /^warning: typo\.yaml.*imagePullPolcy/);
  assert.equal(typo.exitCode, 0);
  assert.deepEqual([(await gangway("can-run")).exitCode, (await gangway("can-run nowhere.yaml")).exitCode], [2, 2]);
});
