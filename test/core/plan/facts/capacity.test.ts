import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LABEL } from "../../../../src/core/job/labels.ts";
import { summarize } from "../../../../src/core/plan/facts/read-capacity.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";

const ready = [{ type: "Ready", status: "True" }];

function kubeNode(
  name: string,
  parts: { spec?: JsonObject; conditions?: JsonObject[]; allocatable?: JsonObject } = {},
): JsonObject {
  return {
    metadata: { name, labels: { gpu: "h100" } },
    spec: parts.spec ?? {},
    status: {
      conditions: parts.conditions ?? ready,
      allocatable: parts.allocatable ?? { cpu: "4", "nvidia.com/gpu": "8", pods: "10" },
    },
  };
}

function kubePod(
  name: string,
  parts: { node?: string; gpus?: number; phase?: string; labels?: JsonObject; deleting?: boolean },
): JsonObject {
  const { node, gpus = 1, phase = "Running", labels = {}, deleting = false } = parts;
  return {
    metadata: { name, namespace: "ml", labels, ...(deleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}) },
    spec: {
      ...(node === undefined ? {} : { nodeName: node }),
      nodeSelector: { gpu: "h100" },
      containers: [
        { name: "c", env: [{ name: "SECRET", value: "x" }], resources: { limits: { "nvidia.com/gpu": String(gpus) } } },
      ],
    },
    status: { phase },
  };
}

const ours = (index: number) => ({
  [LABEL.jobUid]: "uid-a",
  [LABEL.installation]: "here",
  [LABEL.admission]: "2",
  [LABEL.replicaType]: "worker",
  [LABEL.replicaIndex]: String(index),
});

const free = (nodes: readonly JsonObject[], pods: readonly JsonObject[]) =>
  summarize(nodes, pods).nodes.map((node) => node.free["nvidia.com/gpu"]);

test("a node's free resources are allocatable less the requests of all its live pods", () => {
  const pods = [
    kubePod("ours", { node: "n", gpus: 2, labels: ours(0) }),
    kubePod("theirs", { node: "n", gpus: 1 }),
    kubePod("leaving", { node: "n", gpus: 1, deleting: true }),
    kubePod("pending", { node: "n", gpus: 1, phase: "Pending" }),
    kubePod("done", { node: "n", gpus: 3, phase: "Succeeded" }),
    kubePod("dead", { node: "n", gpus: 3, phase: "Failed" }),
    kubePod("elsewhere", { node: "m", gpus: 3 }),
  ];
  const { nodes } = summarize([kubeNode("n")], pods);
  assert.deepEqual(nodes[0]?.free, { cpu: 4000, "nvidia.com/gpu": 3000, pods: 6000 });
});

test("members count as seen while their pods are bound and live", () => {
  const pods = [
    kubePod("b", { node: "n", labels: ours(1) }),
    kubePod("a", { node: "n", labels: ours(0), phase: "Pending" }),
    kubePod("c", { labels: ours(2), phase: "Pending" }),
    kubePod("d", { node: "n", labels: ours(3), phase: "Failed" }),
  ];
  const { seen, unbound } = summarize([kubeNode("n")], pods);
  const member = (index: number) => ({ jobUid: "uid-a", admission: 2, role: "worker", index });
  assert.deepEqual(seen, [member(0), member(1)]);
  assert.deepEqual(unbound, []);
});

test("a pod that lacks one of a member's labels takes room, but is no member", () => {
  const lacking = [LABEL.jobUid, LABEL.replicaType, LABEL.replicaIndex].map((label) => ({
    ...ours(0),
    [label]: undefined,
  }));
  const pods = lacking.map((labels, at) => kubePod(`pod-${at}`, { node: "n", labels: labels as JsonObject }));
  const { seen, nodes } = summarize([kubeNode("n")], pods);
  assert.deepEqual(seen, []);
  assert.equal(nodes[0]?.free["nvidia.com/gpu"], 5000);
});

test("members are listed by job, admission, replica type and index, whatever the order of their pods", () => {
  const member = ([uid, admission, role, index]: readonly string[]) => ({
    ...ours(0),
    [LABEL.jobUid]: uid,
    [LABEL.admission]: admission,
    [LABEL.replicaType]: role,
    [LABEL.replicaIndex]: index,
  });
  const sorted = [
    ["uid-a", "1", "worker", "1"],
    ["uid-a", "2", "ps", "1"],
    ["uid-a", "2", "worker", "0"],
    ["uid-a", "2", "worker", "1"],
    ["uid-b", "1", "ps", "0"],
  ];
  const pods = sorted.map((parts, at) => kubePod(`pod-${at}`, { node: "n", labels: member(parts) }));
  for (const order of [pods, pods.toReversed(), [...pods.slice(2), ...pods.slice(0, 2)]]) {
    const listed = summarize([], order).seen.map(({ jobUid, admission, role, index }) => [
      jobUid,
      `${admission}`,
      role,
      `${index}`,
    ]);
    assert.deepEqual(listed, sorted);
  }
});

test("an unbound pod of others is listed with the parts of its spec that decide where it may run", () => {
  const pods = [
    kubePod("waits", { gpus: 4, phase: "Pending" }),
    kubePod("leaves", { phase: "Pending", deleting: true }),
    kubePod("ours", { phase: "Pending", labels: ours(0) }),
  ];
  const scheduling = { affinity: { nodeAffinity: {} }, tolerations: [{ operator: "Exists" }] };
  const picky = kubePod("x-picky", { gpus: 1, phase: "Pending" });
  const spec = { ...(picky["spec"] as JsonObject), ...scheduling };
  assert.deepEqual(summarize([], [...pods, { ...picky, spec }]).unbound, [
    { podSpec: { nodeSelector: { gpu: "h100" } }, requests: { "nvidia.com/gpu": 4000, pods: 1000 } },
    { podSpec: { nodeSelector: { gpu: "h100" }, ...scheduling }, requests: { "nvidia.com/gpu": 1000, pods: 1000 } },
  ]);
});

const unusable: Readonly<Record<string, { readonly node: JsonObject; readonly unschedulable: boolean }>> = {
  "a ready node takes pods": { node: kubeNode("n"), unschedulable: false },
  "a cordoned node does not": { node: kubeNode("n", { spec: { unschedulable: true } }), unschedulable: true },
  "a node that is not ready does not": {
    node: kubeNode("n", { conditions: [{ type: "Ready", status: "False" }] }),
    unschedulable: true,
  },
  "a node that is being deleted does not": {
    node: { ...kubeNode("n"), metadata: { name: "n", deletionTimestamp: "2026-01-01T00:00:00Z" } },
    unschedulable: true,
  },
  "a node with an unknown condition does not": {
    node: kubeNode("n", { conditions: [{ type: "Ready", status: "Unknown" }] }),
    unschedulable: true,
  },
};
for (const [name, { node, unschedulable }] of Object.entries(unusable)) {
  test(name, () => assert.equal(summarize([node], []).nodes[0]?.unschedulable, unschedulable));
}

test("a node says why it takes no pods, in the words of its cluster, which are cut", () => {
  const lastTransitionTime = "2026-01-02T03:04:05Z";
  const words = { reason: "KubeletNotReady", message: `no network ${"x".repeat(2_000)}\u0000` };
  const broken = [{ type: "Ready", status: "False", ...words, lastTransitionTime }];
  const [node] = summarize([kubeNode("n", { spec: { unschedulable: true }, conditions: broken })], []).nodes;
  const { cordoned, leaving, notReady } = node?.trouble ?? {};
  assert.deepEqual([cordoned, leaving, notReady?.reason], [true, undefined, "KubeletNotReady"]);
  assert.equal(notReady?.sinceMs, Date.parse(lastTransitionTime));
  assert.match(notReady?.message ?? "", /^no network x+…$/);
  assert.ok(Buffer.byteLength(notReady?.message ?? "") <= 500);
  const odd = [{ type: "Ready", status: "Unknown", reason: 7, lastTransitionTime: "+275000-01-01T00:00:00Z" }];
  const [silent] = summarize([kubeNode("n", { conditions: odd })], []).nodes;
  assert.deepEqual(silent?.trouble, { notReady: { reason: "", message: "" } });
  assert.equal(summarize([kubeNode("n", { conditions: ready })], []).nodes[0]?.trouble, undefined);
});

test("a node keeps its taints and labels", () => {
  const taints = [
    { key: "dedicated", effect: "NoSchedule" },
    { key: "team", value: "ml", effect: "NoExecute" },
  ];
  const [node] = summarize([kubeNode("n", { spec: { taints } })], []).nodes;
  assert.deepEqual(node?.taints, [{ key: "dedicated", value: "", effect: "NoSchedule" }, taints[1]]);
  assert.deepEqual(node?.labels, { gpu: "h100" });
});

test("requests of bound pods and free resources add up to allocatable, in any order of pods and nodes", () => {
  const some = fc.array(fc.record({ node: fc.constantFrom("n", "m"), gpus: fc.integer({ min: 1, max: 3 }) }), {
    maxLength: 8,
  });
  fc.assert(
    fc.property(some, (list) => {
      const nodes = [kubeNode("n"), kubeNode("m")];
      const pods = list.map((parts, at) => kubePod(`pod-${at}`, parts));
      const sum = list.reduce((total, parts) => total + parts.gpus, 0);
      assert.equal(
        free(nodes, pods).reduce<number>((total, amount) => total + (amount ?? 0), 0),
        (16 - sum) * 1000,
      );
      assert.deepEqual(summarize(nodes.toReversed(), pods.toReversed()), summarize(nodes, pods));
    }),
  );
});

test("no JSON makes summarize throw", () => {
  fc.assert(
    fc.property(fc.array(fc.dictionary(fc.constantFrom("metadata", "spec", "status"), fc.jsonValue())), (objects) => {
      const json = objects as JsonObject[];
      assert.ok(summarize(json, json).nodes.length <= json.length);
    }),
  );
});

test("nodes, members and unbound pods come in the order of their names, whatever the order they were read in", () => {
  const nodes = ["c", "a", "b"].map((name) => kubeNode(name));
  const unbound = [3, 1, 2].map((gpus) => kubePod(`pod-${gpus}`, { gpus, phase: "Pending" }));
  const members = [2, 0, 1].map((index) => kubePod(`member-${index}`, { node: "a", labels: ours(index) }));
  for (const pods of [[...unbound, ...members], [...members, ...unbound].toReversed()]) {
    const summary = summarize(nodes, pods);
    assert.deepEqual(
      summary.nodes.map(({ name }) => name),
      ["a", "b", "c"],
    );
    assert.deepEqual(
      summary.seen.map(({ index }) => index),
      [0, 1, 2],
    );
    assert.deepEqual(
      summary.unbound.map(({ requests }) => requests["nvidia.com/gpu"]),
      [1_000, 2_000, 3_000],
    );
  }
});

test("a node whose conditions do not name Ready takes pods; its taint keeps them off while it is new", () => {
  const pressure = [{ type: "DiskPressure", status: "False" }];
  for (const conditions of [[], pressure]) {
    assert.equal(summarize([kubeNode("n", { conditions })], []).nodes[0]?.unschedulable, false);
  }
  const both = [
    { type: "DiskPressure", status: "True" },
    { type: "Ready", status: "False" },
  ];
  assert.equal(summarize([kubeNode("n", { conditions: both })], []).nodes[0]?.unschedulable, true);
});
