/** Ports of nodes: what a pod takes, and that fit counts it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { summarize } from "../../../../src/core/plan/facts/read-capacity.ts";
import { hostPortsOf } from "../../../../src/core/pods/fit/host-ports.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";
import { plan } from "../../../support/plan.ts";
import { simulateOn } from "../../../support/simulate-on.ts";
import { AT, admission, amounts, cluster, job, NOW, node, planGang, queue, snapshot } from "../../plan/plan-world.ts";

const container = (ports: readonly JsonObject[], more: JsonObject = {}): JsonObject => ({
  name: "main",
  ports,
  ...more,
});
const KIND_PORT = { container: "main", name: "job-port", number: 23456 };

const cases: Readonly<Record<string, { podSpec: JsonObject; added?: typeof KIND_PORT; takes: readonly string[] }>> = {
  "ports of containers are none of the node": {
    podSpec: { containers: [container([{ containerPort: 80 }])] },
    takes: [],
  },
  "a host port is, by its protocol, once": {
    podSpec: {
      containers: [
        container([{ containerPort: 80, hostPort: 8080 }]),
        container([
          { containerPort: 81, hostPort: 8080 },
          { containerPort: 82, hostPort: 8080, protocol: "UDP" },
        ]),
      ],
    },
    takes: ["TCP host port 8080", "UDP host port 8080"],
  },
  "in the network of the node every port is, that of the kind too": {
    podSpec: { hostNetwork: true, containers: [container([{ containerPort: 80 }])] },
    added: KIND_PORT,
    takes: ["TCP host port 23456", "TCP host port 80"],
  },
  "the port of the kind is the declared one, if the container declares it": {
    podSpec: { hostNetwork: true, containers: [container([{ containerPort: 80, name: "job-port" }])] },
    added: KIND_PORT,
    takes: ["TCP host port 80"],
  },
  "the port of the kind is none of the node outside its network": {
    podSpec: { containers: [container([])] },
    added: KIND_PORT,
    takes: [],
  },
  "of init containers only sidecars count": {
    podSpec: {
      initContainers: [container([{ hostPort: 1 }]), container([{ hostPort: 2 }], { restartPolicy: "Always" })],
    },
    takes: ["TCP host port 2"],
  },
};
for (const [name, { podSpec, added, takes }] of Object.entries(cases)) {
  test(name, () => assert.deepEqual(hostPortsOf(podSpec, added), takes));
}

/** Workers of a PyTorchJob in the network of their nodes, with one GPU each. */
const workers = (name: string, replicas: number, more: object = {}) =>
  job({ name, roles: { Worker: { replicas, gpus: 1, pod: { hostNetwork: true } } }, ...more });
const twoNodes = [node("a", "h100"), node("b", "h100")];

test("pods of one host port are placed on as many nodes, and more of them never fit", () => {
  const from = { clusters: [cluster("east", { nodes: twoNodes })] };
  assert.equal(simulateOn(snapshot(from), workers("two", 2), AT).verdict, "FITS_NOW");
  const three = simulateOn(snapshot(from), workers("three", 3), AT);
  assert.equal(three.verdict, "NEVER");
  assert.match(three.message, /2 nodes lack TCP host port 23456 \(needs 1, has 0 of 1 free\)$/);
});

test("a port that a running gang or another pod takes is not free, until its pod is gone", () => {
  const live = [admission({ cluster: "east", members: { Worker: 1 }, flavors: { "nvidia.com/gpu": "gpu/h100" } })];
  const one = cluster("east", { nodes: [node("a", "h100")] });
  const admitted = [workers("runs", 1, { admissions: live })];
  const waiting = [planGang(workers("waits", 1))];
  const unseen = plan(snapshot({ clusters: [one], admitted, waiting }), { nowMs: NOW });
  assert.deepEqual(
    unseen.refusals.map(({ reason }) => reason),
    ["NoCapacity"],
  );
  const nodes = [node("a", "h100", { hostPorts: ["TCP host port 23456"] })];
  const byOthers = plan(snapshot({ clusters: [cluster("east", { nodes })], waiting }), { nowMs: NOW });
  assert.deepEqual(
    byOthers.refusals.map(({ reason }) => reason),
    ["NoCapacity"],
  );
  const free = plan(snapshot({ clusters: [one], waiting }), { nowMs: NOW });
  assert.equal(free.admissions.length, 1);
});

test("two gangs with one port are not admitted to one node in one round, and with two ports they are", () => {
  const clusters = [cluster("east", { nodes: [node("a", "h100", { allocatable: amounts(8), free: amounts(8) })] })];
  const queues = [queue("q", { h100: 99 })];
  const same = plan(snapshot({ clusters, queues, waiting: [workers("a", 1), workers("b", 1)] }), { nowMs: NOW });
  assert.equal(same.admissions.length, 1);
  const other = job({
    name: "b",
    roles: { Worker: { replicas: 1, gpus: 1, pod: { containers: [container([{ containerPort: 1, hostPort: 1 }])] } } },
  });
  const both = plan(snapshot({ clusters, queues, waiting: [workers("a", 1), other] }), { nowMs: NOW });
  assert.equal(both.admissions.length, 2);
});

test("the observer notes the ports that pods on a node take", () => {
  const pod = (name: string, spec: JsonObject, phase = "Running"): JsonObject => ({
    metadata: { name, namespace: "n" },
    spec: { nodeName: "a", ...spec },
    status: { phase },
  });
  const takes = { containers: [container([{ containerPort: 1, hostPort: 7 }])] };
  const nodes = [{ metadata: { name: "a" }, status: { allocatable: { cpu: "1" } } }];
  const { nodes: seen } = summarize(nodes, [pod("x", takes), pod("y", { containers: [] })]);
  assert.deepEqual(seen[0]?.hostPorts, ["TCP host port 7"]);
  assert.equal(summarize(nodes, [pod("x", takes, "Succeeded")]).nodes[0]?.hostPorts, undefined);
  const { unbound } = summarize(nodes, [{ ...pod("z", takes), spec: takes }]);
  assert.deepEqual(unbound[0]?.hostPorts, ["TCP host port 7"]);
});
