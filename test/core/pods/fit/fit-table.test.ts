/** What is not looked at is named; what kinds add is counted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { askOf } from "../../../../src/core/plan/model/ask.ts";
import { FIT_MEMBERS, notLookedAt } from "../../../../src/core/pods/fit/fit-table.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../../support/kinds.ts";
import { job } from "../../plan/plan-world.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

const cases: Readonly<Record<string, { podSpec: JsonObject; paths: readonly string[] }>> = {
  "a pod of which everything is looked at": {
    podSpec: {
      containers: [{ name: "a", image: "i" }],
      nodeSelector: { a: "b" },
      tolerations: [{ key: "a" }],
      volumes: [{ emptyDir: {} }, { secret: { secretName: "s" } }, { hostPath: { path: "/" } }],
      affinity: { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: [] } }, podAffinity: { [PREFERRED]: [{}] } },
      serviceAccountName: "default",
      priorityClassName: "system-node-critical",
      schedulerName: "default-scheduler",
      topologySpreadConstraints: [{ whenUnsatisfiable: "ScheduleAnyway" }],
    },
    paths: [],
  },
  "pods beside which it may run, or must not": {
    podSpec: { affinity: { podAffinity: { [REQUIRED]: [{}] }, podAntiAffinity: { [REQUIRED]: [{}, {}] } } },
    paths: [`affinity.podAffinity.${REQUIRED}`, `affinity.podAntiAffinity.${REQUIRED}`],
  },
  "volumes that nodes or zones have": {
    podSpec: { volumes: [{ persistentVolumeClaim: { claimName: "c" } }, { ephemeral: {} }, { csi: { driver: "d" } }] },
    paths: ["volumes[0].persistentVolumeClaim", "volumes[1].ephemeral", "volumes[2].csi"],
  },
  "spread over nodes": {
    podSpec: { topologySpreadConstraints: [{ whenUnsatisfiable: "ScheduleAnyway" }, { topologyKey: "zone" }] },
    paths: ["topologySpreadConstraints[1]"],
  },
  "names of what the cluster must have": {
    podSpec: {
      priorityClassName: "high",
      runtimeClassName: "kata",
      schedulerName: "volcano",
      serviceAccountName: "trainer",
      resourceClaims: [{ name: "gpu" }],
    },
    paths: ["priorityClassName", "resourceClaims", "runtimeClassName", "schedulerName", "serviceAccountName"],
  },
};
for (const [name, { podSpec, paths }] of Object.entries(cases)) {
  test(`not looked at: ${name}`, () => {
    assert.deepEqual(
      notLookedAt(podSpec).map(({ path }) => path),
      paths,
    );
  });
}

test("each member that is warned of can be found, and says what is not looked at", () => {
  for (const [name, { treatment, what, find }] of Object.entries(FIT_MEMBERS)) {
    if (treatment === "warned") assert.ok(find !== undefined, name);
    assert.equal(what === "", treatment === "unused", name);
  }
});

test("init containers that a kind adds count, as its clusters count them", () => {
  const master = { Master: { replicas: 1, cpu: 1 } };
  const ask = askOf(job({ name: "a", roles: { ...master, Worker: { replicas: 2 } } }), OWN_KINDS);
  assert.deepEqual(
    ask.podClasses.map(({ requests }) => requests),
    [
      { cpu: 1000, pods: 1000 },
      { cpu: 50, memory: 10 * 2 ** 20 * 1000, pods: 1000 },
    ],
  );
  const alone = askOf(job({ name: "a", roles: { Worker: { replicas: 2 } } }), OWN_KINDS);
  assert.deepEqual(alone.podClasses[0]?.requests, { pods: 1000 });
});

test("the init containers that are counted are those that kinds add", () => {
  for (const kind of OWN_KINDS.all) {
    const roles = Object.fromEntries((kind.roles ?? [{ name: "Worker" }]).map(({ name }) => [name, { replicas: 1 }]));
    const { spec } = { ...job({ name: "a", roles }) };
    const gang = { jobName: "a", jobUid: "u", namespace: "n", admission: 1, spec: { ...spec, kind: kind.name } };
    const members = Object.fromEntries(Object.keys(roles).map((role) => [role, 1]));
    const images = { clusterDomain: "", initImage: "", kubectlImage: "" };
    for (const role of Object.keys(roles)) {
      const { initContainers } = kind.clusterSpec({ ...gang, ...images, members, role, index: 0 });
      const resources = initContainers.map((one) => ({ resources: one["resources"] }));
      assert.deepEqual(kind.countedInit?.(gang.spec, role) ?? [], resources, `${kind.name} ${role}`);
    }
  }
});
