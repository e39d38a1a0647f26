import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../src/runtime/json.ts";
import { arrayAt, objectAt, stringAt } from "../../src/runtime/json.ts";
import { create, destroy, newModel, pod, podManifest } from "./support.ts";

/** A pod after some times, as `phase/state/restarts`. */
function seen(object: ReturnType<typeof pod>): string {
  if (object === undefined) return "gone";
  const [container] = arrayAt(object.status, "containerStatuses");
  const state = objectAt(container, "state");
  const [kind = "none"] = Object.keys(state);
  const inner = objectAt(state, kind);
  const detail = stringAt(inner, "reason") ?? "";
  const code = inner["exitCode"] === undefined ? "" : `:${inner["exitCode"]}`;
  const restarts = objectAt({ container }, "container")["restartCount"] ?? 0;
  return `${stringAt(object.status, "phase")} ${kind}${detail === "" ? "" : ` ${detail}`}${code} ${restarts}`;
}

type Case = {
  readonly manifest: Parameters<typeof podManifest>[1];
  /** The expected pod by milliseconds. */
  readonly later: Readonly<Record<number, string>>;
};

const cases: Record<string, Case> = {
  "a pod without annotations is pulled, started and succeeds": {
    manifest: {},
    later: {
      100: "Pending waiting ContainerCreating 0",
      600: "Running running 0",
      3400: "Running running 0",
      3600: "Succeeded terminated Completed:0 0",
    },
  },
  "an exit code fails the pod": {
    manifest: { sim: { pull: "0s", start: "0s", run: "1s", "exit-code": "3" } },
    later: { 500: "Running running 0", 1100: "Failed terminated Error:3 0" },
  },
  "the attempt's label picks the exit code": {
    manifest: {
      sim: { pull: "0s", start: "0s", run: "1s", "exit-code": "3,0" },
      metadata: { name: "p", labels: { "gangway.dev/attempt": "2" } },
    },
    later: { 500: "Running running 0" },
  },
  "137 is OOMKilled if the annotation says so": {
    manifest: { sim: { run: "0ms", "exit-code": "137", oom: "true" } },
    later: { 600: "Failed terminated OOMKilled:137 0" },
  },
  "137 without the annotation is an error": {
    manifest: { sim: { run: "0ms", "exit-code": "137" } },
    later: { 600: "Failed terminated Error:137 0" },
  },
  "a container that cannot start waits, whatever the restart policy": {
    manifest: { sim: { pull: "1s", fails: "CreateContainerConfigError" }, spec: { restartPolicy: "Always" } },
    later: {
      900: "Pending waiting ContainerCreating 0",
      1100: "Pending waiting CreateContainerConfigError 0",
      60000: "Pending waiting CreateContainerConfigError 0",
    },
  },
  "an attempt after the last one with a failure runs as usual": {
    manifest: {
      sim: { pull: "0s", start: "0s", run: "1s", fails: "none, ImagePullBackOff" },
      metadata: { name: "p", labels: { "gangway.dev/attempt": "3" } },
    },
    later: { 500: "Running running 0", 1100: "Succeeded terminated Completed:0 0" },
  },
  "OOMKilled ends a run, and OnFailure starts the next": {
    manifest: {
      sim: { pull: "0s", start: "0s", run: "1s", fails: "OOMKilled" },
      spec: { restartPolicy: "OnFailure" },
    },
    later: {
      1500: "Running waiting CrashLoopBackOff 0",
      2500: "Running running 1",
      3500: "Succeeded terminated Completed:0 1",
    },
  },
  "a node that is short of memory ends a pod under every policy": {
    manifest: { sim: { pull: "0s", start: "0s", run: "1s", fails: "Evicted" }, spec: { restartPolicy: "Always" } },
    later: { 500: "Running running 0", 1100: "Failed terminated Error:137 0" },
  },
  "a node may refuse a pod": {
    manifest: { sim: { fails: "OutOfcpu" } },
    later: { 100: "Failed none 0" },
  },
  "an init container that fails ends a pod under Never": {
    manifest: { sim: { fails: "Init:Error" }, spec: { initContainers: [{ name: "a", image: "i" }] } },
    later: { 40: "Pending waiting PodInitializing 0", 60: "Failed waiting PodInitializing 0" },
  },
  "an init container that fails is started again under other policies": {
    manifest: {
      sim: { fails: "Init:Error" },
      spec: { restartPolicy: "OnFailure", initContainers: [{ name: "a", image: "i" }] },
    },
    later: { 60000: "Pending waiting PodInitializing 0" },
  },
  "a pod without init containers cannot fail in them": {
    manifest: { sim: { pull: "0s", start: "0s", fails: "Init:Error" } },
    later: { 100: "Running running 0" },
  },
  "OnFailure restarts in place after a growing pause until it succeeds": {
    manifest: {
      sim: { pull: "0s", start: "0s", run: "1s", "exit-code": "1,1,0" },
      spec: { restartPolicy: "OnFailure" },
    },
    later: {
      1500: "Running waiting CrashLoopBackOff 0",
      2500: "Running running 1",
      3500: "Running waiting CrashLoopBackOff 1",
      5500: "Running running 2",
      6500: "Succeeded terminated Completed:0 2",
    },
  },
  "Always restarts a container that succeeded, too": {
    manifest: { sim: { pull: "0s", start: "0s", run: "1s" }, spec: { restartPolicy: "Always" } },
    later: { 1500: "Running waiting CrashLoopBackOff 0", 2500: "Running running 1" },
  },
  "init containers run first, one after the other": {
    manifest: {
      sim: { pull: "100ms", start: "100ms" },
      spec: {
        initContainers: [
          { name: "a", image: "i" },
          { name: "b", image: "i" },
        ],
      },
    },
    later: {
      90: "Pending waiting PodInitializing 0",
      150: "Pending waiting ContainerCreating 0",
      350: "Running running 0",
    },
  },
  "a pod that requests more than the nodes have waits": {
    manifest: { gpus: 9 },
    later: { 60000: "Pending none 0" },
  },
};

for (const [name, { manifest, later }] of Object.entries(cases)) {
  test(name, () => {
    const model = newModel(1);
    const start = model.nowMs;
    create(model, "pods", "default", podManifest("p", manifest));
    for (const [afterMs, expected] of Object.entries(later)) {
      model.advance(start + Number(afterMs));
      assert.equal(seen(pod(model, "p")), expected, `after ${afterMs} ms`);
    }
  });
}

test("a status says why the kubelet ended a pod, and what its init containers wait for", () => {
  const model = newModel(1);
  const failing = (name: string, fails: string, spec: JsonObject = {}) =>
    create(model, "pods", "default", podManifest(name, { sim: { pull: "0s", start: "0s", run: "0s", fails }, spec }));
  failing("evicted", "Evicted");
  failing("crashing", "Init:CrashLoopBackOff", { initContainers: [{ name: "a", image: "i" }] });
  model.advance(model.nowMs + 1000);
  const evicted = pod(model, "evicted")?.status;
  const [disruption] = arrayAt(evicted, "conditions").filter((one) => stringAt(one, "type") === "DisruptionTarget");
  assert.deepEqual(
    [stringAt(evicted, "reason"), stringAt(disruption, "status"), stringAt(disruption, "reason")],
    ["Evicted", "True", "TerminationByKubelet"],
  );
  const [init] = arrayAt(pod(model, "crashing")?.status, "initContainerStatuses");
  assert.equal(stringAt(objectAt(objectAt(init, "state"), "waiting"), "reason"), "CrashLoopBackOff");
  assert.equal(objectAt(objectAt(init, "lastState"), "terminated")["exitCode"], 1);
});

test("a deleted running pod ends with 143; its deletion time is its grace period ahead", () => {
  const model = newModel(1);
  create(model, "pods", "default", podManifest("p", { sim: { run: "forever", "termination-grace": "2s" } }));
  model.advance(model.nowMs + 1000);
  const at = model.nowMs;
  const marked = destroy(model, "pods", "default", "p");
  assert.equal(Date.parse(marked.metadata.deletionTimestamp ?? ""), at + 30_000);
  model.advance(at + 1900);
  assert.equal(seen(pod(model, "p")), "Running running 0");
  model.advance(at + 2100);
  assert.equal(pod(model, "p"), undefined);
  const phases = model.store.history.after(0)?.filter((event) => event.resource === "pods") ?? [];
  assert.deepEqual(
    phases.slice(-2).map((event) => [event.removed, seen(event.object)]),
    [
      [false, "Failed terminated Error:143 0"],
      [true, "Failed terminated Error:143 0"],
    ],
  );
});

test("a pod that outlasts its grace period is killed with 137", () => {
  const model = newModel(1);
  create(model, "pods", "default", podManifest("p", { sim: { run: "forever", "termination-grace": "1m" } }));
  model.advance(model.nowMs + 1000);
  destroy(model, "pods", "default", "p", { graceSeconds: 5 });
  model.advance(model.nowMs + 4900);
  assert.equal(seen(pod(model, "p")), "Running running 0");
  model.advance(model.nowMs + 200);
  assert.equal(pod(model, "p"), undefined);
  assert.equal(seen(model.store.history.after(0)?.at(-1)?.object), "Failed terminated Error:137 0");
});

for (const [name, wishes] of Object.entries({
  "a running pod deleted with grace 0 is removed at once": { graceSeconds: 0 },
  "a second delete shortens the grace period": { graceSeconds: 1 },
})) {
  test(name, () => {
    const model = newModel(1);
    create(model, "pods", "default", podManifest("p", { sim: { run: "forever", "termination-grace": "1m" } }));
    model.advance(model.nowMs + 1000);
    if (wishes.graceSeconds > 0) destroy(model, "pods", "default", "p");
    destroy(model, "pods", "default", "p", wishes);
    model.advance(model.nowMs + wishes.graceSeconds * 1100);
    assert.equal(pod(model, "p"), undefined);
  });
}

test("a pod without a node and a pod that has ended are removed at once", () => {
  const model = newModel(1);
  create(model, "pods", "default", podManifest("waits", { gpus: 9 }));
  create(model, "pods", "default", podManifest("ends", { sim: { run: "0ms" } }));
  model.advance(model.nowMs + 1000);
  for (const name of ["waits", "ends"]) {
    destroy(model, "pods", "default", name);
    assert.equal(pod(model, name), undefined);
  }
});

test("annotations that cannot be read count as absent and leave a warning", () => {
  const model = newModel(1);
  create(model, "pods", "default", podManifest("p", { sim: { run: "soon", pull: "-1s" } }));
  model.advance(model.nowMs + 600);
  assert.equal(seen(pod(model, "p")), "Running running 0");
  const events = [...model.store.objects("events")].map((event) => [event["type"], event["reason"]]);
  assert.deepEqual(events, [
    ["Warning", "InvalidSimAnnotation"],
    ["Warning", "InvalidSimAnnotation"],
  ]);
});

test("pods of a lost node fail as disrupted and are removed", () => {
  const model = newModel(1);
  create(model, "pods", "default", podManifest("p", { sim: { run: "forever" } }));
  model.advance(model.nowMs + 1000);
  model.removeNode("n0");
  model.advance(model.nowMs + 1);
  assert.equal(pod(model, "p"), undefined);
  const [, failed] = model.store.history.after(0)?.slice(-3) ?? [];
  const target = arrayAt(failed?.object.status, "conditions").find(
    (one) => stringAt(one, "type") === "DisruptionTarget",
  );
  assert.equal(stringAt(target, "reason"), "DeletionByPodGC");
});

const unschedulable: Record<string, { spec?: JsonObject; gpus?: number; cordon?: string; message: string }> = {
  "too few GPUs": { gpus: 9, message: "0/2 nodes are available: 2 Insufficient nvidia.com/gpu." },
  "no node with the label": {
    spec: { nodeSelector: { "gpu-model": "b200" } },
    message: "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
  },
  "one node cordoned, the other of another model": {
    spec: { nodeSelector: { "gpu-model": "h100" } },
    cordon: "n0",
    message:
      "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) were unschedulable.",
  },
};

for (const [name, { message, spec = {}, gpus = 1, cordon }] of Object.entries(unschedulable)) {
  test(`the scheduler says why a pod waits: ${name}`, () => {
    const model = newModel(2);
    if (cordon !== undefined) model.cordonNode(cordon);
    create(model, "pods", "default", podManifest("p", { gpus, spec }));
    model.advance(model.nowMs + 1000);
    const [condition] = arrayAt(pod(model, "p")?.status, "conditions");
    assert.equal(stringAt(condition, "reason"), "Unschedulable");
    assert.ok(stringAt(condition, "message")?.startsWith(message), stringAt(condition, "message"));
  });
}

test("pods are bound in the order of their creation, once there is room", () => {
  const model = newModel(1);
  for (const name of ["a", "b", "c"])
    create(model, "pods", "default", podManifest(name, { gpus: 8, sim: { run: "1s" } }));
  const bound = () => ["a", "b", "c"].filter((name) => stringAt(pod(model, name)?.spec, "nodeName") !== undefined);
  model.advance(model.nowMs + 1000);
  assert.deepEqual(bound(), ["a"]);
  model.advance(model.nowMs + 1000);
  assert.deepEqual(bound(), ["a", "b"]);
  model.advance(model.nowMs + 10_000);
  assert.equal(stringAt(pod(model, "c")?.status, "phase"), "Succeeded");
});

test("a thousand pods live through in a time that grows with their number", () => {
  const model = newModel(4);
  for (let index = 0; index < 1000; index += 1) {
    create(model, "pods", "default", podManifest(`p${index}`, { gpus: 1, sim: { run: `${1000 + index}ms` } }));
  }
  model.advance(model.nowMs + 600_000);
  const phases = new Set([...model.store.objects("pods")].map((one) => stringAt(one.status, "phase")));
  assert.deepEqual([...phases], ["Succeeded"]);
  assert.ok(model.store.version < 20 * 1000, `${model.store.version} changes`);
});
