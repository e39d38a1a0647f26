import assert from "node:assert/strict";
import { test } from "node:test";
import { minResources, type RoleOfGang } from "../../../src/core/pods/build/min-resources.ts";
import {
  addResources,
  fitsIn,
  podRequests,
  type Resources,
  readResources,
  subtractResources,
} from "../../../src/core/pods/resources.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";

const requests = (cpu: number, more: JsonObject = {}): JsonObject => ({ resources: { requests: { cpu } }, ...more });
const sidecar = (cpu: number): JsonObject => requests(cpu, { restartPolicy: "Always" });

/** The requests of a pod in thousandths. The one of the resource `pods` is checked for all of them. */
const pods: Record<string, { readonly podSpec: JsonObject; readonly sum: Resources }> = {
  "a pod without containers": { podSpec: {}, sum: {} },
  "containers add up": {
    podSpec: { containers: [requests(1), { resources: { requests: { cpu: "250m", memory: "1k" } } }] },
    sum: { cpu: 1250, memory: 1_000_000 },
  },
  "a limit counts if a request is missing": {
    podSpec: { containers: [{ resources: { limits: { cpu: 4, memory: 7 }, requests: { cpu: 1 } } }] },
    sum: { cpu: 1000, memory: 7000 },
  },
  "an init container that requests less than all containers adds nothing": {
    podSpec: { containers: [requests(1), requests(2)], initContainers: [requests(2)] },
    sum: { cpu: 3000 },
  },
  "the largest init container counts if it requests more than all containers": {
    podSpec: { containers: [requests(1)], initContainers: [requests(3), requests(5), requests(4)] },
    sum: { cpu: 5000 },
  },
  "a sidecar runs beside all containers": {
    podSpec: { containers: [requests(1)], initContainers: [sidecar(2)] },
    sum: { cpu: 3000 },
  },
  "a sidecar runs beside the init containers after it": {
    podSpec: { containers: [requests(1)], initContainers: [sidecar(2), requests(3)] },
    sum: { cpu: 5000 },
  },
  "a sidecar does not run yet beside the init containers before it": {
    podSpec: { containers: [requests(1)], initContainers: [requests(3), sidecar(2)] },
    sum: { cpu: 3000 },
  },
  "an init container of another restart policy is no sidecar": {
    podSpec: { containers: [requests(1)], initContainers: [requests(2, { restartPolicy: "Never" })] },
    sum: { cpu: 2000 },
  },
  "requests of the pod take the place of those of its containers": {
    podSpec: {
      containers: [requests(1), requests(2)],
      resources: { requests: { cpu: 8, "nvidia.com/gpu": 4, "hugepages-2Mi": 2 } },
      overhead: { cpu: 1 },
    },
    sum: { cpu: 9000, "hugepages-2Mi": 2000 },
  },
  "a limit of the pod counts for what nothing requests, and for huge pages": {
    podSpec: {
      containers: [{ resources: { requests: { cpu: 1, "hugepages-2Mi": 2 } } }],
      resources: { limits: { cpu: 8, memory: 4, "hugepages-2Mi": 6 } },
    },
    sum: { cpu: 1000, memory: 4000, "hugepages-2Mi": 6000 },
  },
  "the overhead adds to all": {
    podSpec: { containers: [requests(1)], initContainers: [requests(2)], overhead: { cpu: "500m", memory: 3 } },
    sum: { cpu: 2500, memory: 3000 },
  },
};
for (const [name, { podSpec, sum }] of Object.entries(pods)) {
  test(name, () => assert.deepEqual(podRequests(podSpec), { ...sum, pods: 1000 }));
}

test("an amount that is no quantity counts as nothing", () => {
  const list: JsonObject = { cpu: "many", memory: 1.5, gpu: null, disk: { size: 1 } };
  assert.deepEqual(readResources(list), { cpu: 0, memory: 1500 });
});

test("sums and differences hold the resources of both lists", () => {
  assert.deepEqual(addResources({ cpu: 3, gpu: 1 }, { cpu: 4, memory: 5 }), { cpu: 7, gpu: 1, memory: 5 });
  assert.deepEqual(subtractResources({ cpu: 3, gpu: 1 }, { cpu: 4, memory: 5 }), { cpu: -1, gpu: 1, memory: -5 });
});

const fits: Record<string, { readonly wanted: Resources; readonly free: Resources; readonly fits: boolean }> = {
  "less than is free": { wanted: { cpu: 1, gpu: 1 }, free: { cpu: 2, gpu: 2 }, fits: true },
  "exactly as much as is free": { wanted: { cpu: 2 }, free: { cpu: 2 }, fits: true },
  "more than is free of one resource": { wanted: { cpu: 1, gpu: 3 }, free: { cpu: 2, gpu: 2 }, fits: false },
  "a resource that the node does not name": { wanted: { gpu: 1 }, free: { cpu: 2 }, fits: false },
  "nothing of a resource of which too much is used": { wanted: { cpu: 0 }, free: { cpu: -1 }, fits: true },
};
for (const [name, { wanted, free, fits: expected }] of Object.entries(fits)) {
  test(`${name}: ${expected ? "fits" : "does not fit"}`, () => assert.equal(fitsIn(wanted, free), expected));
}

const gangRole = (role: string, cpu: number, replicas = 1, priorityClassName = ""): RoleOfGang => ({
  role,
  replicas,
  template: { spec: { priorityClassName, containers: [requests(cpu)] } },
});
const gangs: Record<string, { min: number; gang: readonly RoleOfGang[]; classes?: Resources; cpu: string }> = {
  "the master before workers, whatever the order of the gang": {
    min: 2,
    gang: [gangRole("Worker", 1, 4), gangRole("Master", 8)],
    cpu: "9",
  },
  "no more pods of a role than it has": { min: 9, gang: [gangRole("Master", 8), gangRole("Worker", 1, 4)], cpu: "12" },
  "the role of the highest priority first": {
    min: 1,
    gang: [gangRole("Master", 8), gangRole("Worker", 1, 4, "high")],
    classes: { high: 5 },
    cpu: "1",
  },
  "a class of unknown priority like no class": {
    min: 1,
    gang: [gangRole("Worker", 1, 4, "unknown"), gangRole("Master", 8)],
    classes: { high: 5 },
    cpu: "8",
  },
  "a class below the default last": {
    min: 1,
    gang: [gangRole("Master", 8, 1, "low"), gangRole("Worker", 1)],
    classes: { low: -5 },
    cpu: "1",
  },
};
for (const [name, { min, gang, classes, cpu }] of Object.entries(gangs)) {
  test(`the minimum resources of a gang count ${name}`, () =>
    assert.deepEqual(minResources(min, gang, classes), { cpu }));
}

test("the minimum resources of a gang leave out init containers, zero amounts, and limits beside requests", () => {
  const limits = { cpu: 4, "nvidia.com/gpu": 1 };
  const containers = [{ resources: { limits, requests: { cpu: "500m", memory: 0 } } }, { resources: { limits } }];
  const template = { spec: { containers, initContainers: [requests(9)] } };
  assert.deepEqual(minResources(1, [{ role: "Worker", replicas: 1, template }]), {
    cpu: "4500m",
    "nvidia.com/gpu": "1",
  });
});
