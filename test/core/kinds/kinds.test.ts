import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { replicaName } from "../../../src/core/job/names.ts";
import { defaultSpec } from "../../../src/core/job/request/defaults.ts";
import { compareRoles, memberCount } from "../../../src/core/job/roles.ts";
import type { JobSpec } from "../../../src/core/job/spec.ts";
import type { ClusterSpec, Replica, RoleState, Verdict } from "../../../src/core/kinds/kind.ts";
import { KINDS } from "../../../src/core/kinds/registry.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { template } from "../reconcile/world.ts";

function clusterSpecs(kindName: string, container: string, counts: Record<string, number>): [Replica, ClusterSpec][] {
  const kind = OWN_KINDS.kindOf(kindName)!;
  const replicaSpecs = Object.fromEntries(
    Object.entries(counts).map(([role, replicas]) => [role, { replicas, template: template(container) }]),
  );
  const spec: JobSpec = defaultSpec(
    { kind: kindName, replicaSpecs },
    { kind, labels: {}, namespaceQueue: null, priorityClass: null },
  );
  return Object.entries(counts).flatMap(([role, count]) =>
    Array.from({ length: count }, (_, index): [Replica, ClusterSpec] => {
      const replica = {
        jobName: "j",
        jobUid: "uid",
        admission: 1,
        namespace: "ns",
        spec,
        members: counts,
        role,
        index,
        clusterDomain: "",
        initImage: "i",
        kubectlImage: "k",
      };
      return [replica, kind.clusterSpec(replica)];
    }),
  );
}

test("the ranks of a PyTorchJob are 0 to its world size, each once, with the same master and world size", () => {
  fc.assert(
    fc.property(fc.nat({ max: 6 }), (workers) => {
      const specs = clusterSpecs("PyTorchJob", "pytorch", { Master: 1, Worker: workers });
      const env = specs.map(([, { env }]) => new Map(env["pytorch"]?.map(({ name, value }) => [name, value])));
      const ranks = env.map((one) => Number(one.get("RANK"))).sort((a, b) => a - b);
      assert.deepEqual(
        ranks,
        Array.from({ length: workers + 1 }, (_, rank) => rank),
      );
      assert.ok(
        env.every((one) => one.get("WORLD_SIZE") === String(workers + 1) && one.get("MASTER_ADDR") === "j-master-0"),
      );
      const waiting = specs.filter(([, { initContainers }]) => initContainers.length === 1).map(([{ role }]) => role);
      assert.deepEqual(
        waiting,
        Array.from({ length: workers }, () => "Worker"),
      );
    }),
  );
});

test("the tasks of a TFJob name each other by the same cluster, and each finds itself in it", () => {
  const counts = fc.record({
    Chief: fc.nat({ max: 1 }),
    PS: fc.nat({ max: 2 }),
    Worker: fc.integer({ min: 1, max: 3 }),
  });
  fc.assert(
    fc.property(counts, (members) => {
      const specs = clusterSpecs("TFJob", "tensorflow", members);
      const configs = specs.map(([, { env }]) => env["tensorflow"]?.[0]?.value);
      if (memberCount(members) === 1) return assert.deepEqual(configs, [undefined]);
      for (const [at, [{ role, index }]] of specs.entries()) {
        const { cluster, task } = JSON.parse(configs[at] ?? "");
        assert.deepEqual(cluster, JSON.parse(configs[0] ?? "").cluster);
        assert.equal(cluster[task.type][task.index], `${replicaName("j", role, index)}.ns.svc:2222`);
      }
      return undefined;
    }),
  );
});

const state = (role: string) =>
  fc
    .record({
      members: fc.integer({ min: 1, max: 3 }),
      active: fc.nat({ max: 3 }),
      succeeded: fc.nat({ max: 3 }),
      failedForGood: fc.nat({ max: 1 }),
    })
    .map(
      (counts): RoleState => ({
        role,
        ...counts,
        succeeded: Math.min(counts.succeeded, counts.members),
        firstExitedZero: false,
      }),
    );

for (const kind of KINDS) {
  const roles = [...(kind.roles?.map(({ name }) => name) ?? ["Driver", "Worker"])].sort(compareRoles);
  test(`${kind.name}: succeeds when all replicas have, fails only with a failure, runs only with a running pod`, () => {
    const required = new Set(kind.roles?.filter(({ min }) => min > 0).map(({ name }) => name));
    const states = fc
      .subarray(roles, { minLength: 1 })
      .map((chosen) => roles.filter((role) => required.has(role) || chosen.includes(role)))
      .chain((chosen) => fc.tuple(...chosen.map(state)));
    fc.assert(
      fc.property(states, (list) => {
        const verdict = kind.verdict(list, {});
        if (list.every(({ members, succeeded, failedForGood }) => succeeded === members && failedForGood === 0)) {
          assert.equal(verdict, "succeeded");
        }
        if (verdict === "failed") assert.ok(list.some(({ failedForGood }) => failedForGood > 0));
        if (verdict === "running") assert.ok(list.some(({ active }) => active > 0));
        if (verdict === "succeeded") assert.ok(list.some(({ members, succeeded }) => succeeded === members));
        if (verdict === "running" || verdict === null)
          assert.ok(list.every(({ failedForGood }) => failedForGood === 0));
      }),
    );
  });
}

const replicas = (role: string, of: Partial<RoleState>): RoleState => {
  return { role, members: 2, active: 0, succeeded: 0, failedForGood: 0, firstExitedZero: false, ...of };
};
const ELASTIC = { elasticPolicy: { minReplicas: 1 } };

const verdicts: Record<string, { kind: string; states: readonly RoleState[]; kindSpec?: JsonObject; is: Verdict }> = {
  "one worker without a master has succeeded": {
    kind: "PyTorchJob",
    states: [replicas("Worker", { succeeded: 1, active: 1 })],
    is: "running",
  },
  "one elastic worker without a master has succeeded": {
    kind: "PyTorchJob",
    states: [replicas("Worker", { succeeded: 1, active: 1 })],
    kindSpec: ELASTIC,
    is: "succeeded",
  },
  "no elastic worker has succeeded": {
    kind: "PyTorchJob",
    states: [replicas("Worker", { active: 1 })],
    kindSpec: ELASTIC,
    is: "running",
  },
  "one elastic worker of a master has succeeded": {
    kind: "PyTorchJob",
    states: [replicas("Master", { active: 1, members: 1 }), replicas("Worker", { succeeded: 1 })],
    kindSpec: ELASTIC,
    is: "running",
  },
  "half of the masters have succeeded, which is not enough even if the job is elastic": {
    kind: "PyTorchJob",
    states: [replicas("Master", { succeeded: 1, active: 1 })],
    kindSpec: ELASTIC,
    is: "running",
  },
  "only workers beside an idle master run": {
    kind: "XGBoostJob",
    states: [replicas("Master", { members: 1 }), replicas("Worker", { active: 2 })],
    is: null,
  },
  "only workers beside an active master have succeeded": {
    kind: "XGBoostJob",
    states: [replicas("Master", { members: 1, active: 1 }), replicas("Worker", { succeeded: 2 })],
    is: "running",
  },
};
for (const [name, { kind, states, kindSpec = {}, is }] of Object.entries(verdicts)) {
  test(`${kind}: if ${name}, it is ${is ?? "unchanged"}`, () => {
    assert.equal(OWN_KINDS.kindOf(kind)?.verdict(states, kindSpec), is);
  });
}

test("long names are hashed into different DNS labels", () => {
  const long = "x".repeat(60);
  const names = [replicaName(long, "Worker", 1), replicaName(long, "Worker", 2), replicaName(`${long}y`, "Worker", 1)];
  assert.equal(new Set(names).size, 3);
  assert.ok(names.every((name) => name.length <= 63 && /^f[a-z1-6]{13}$/.test(name)));
  assert.equal(replicaName("j", "PS", 0), "j-ps-0");
});
