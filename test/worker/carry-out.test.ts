import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Action } from "../../src/core/reconcile/decision.ts";
import { carryOut, eventOf } from "../../src/worker/carry-out.ts";

const base = { cluster: "c", namespace: "n" };
const manifest = (name: string) => ({ metadata: { name } });
const anchor: Action = { ...base, kind: "createAnchor", manifest: manifest("anchor") };
const service: Action = { ...base, kind: "createService", anchor: "anchor", manifest: manifest("service") };
const pod = (index: number): Action => ({
  ...base,
  kind: "createPod",
  anchor: "anchor",
  manifest: manifest(`p${index}`),
});
const removal = (kind: "deletePod" | "deleteService" | "deleteAnchor"): Action => ({
  ...base,
  kind,
  name: kind,
  uid: "u",
});
const refused = { kind: "failed", reason: "Forbidden", message: "exceeded quota" } as const;
const signal = new AbortController().signal;

test("groups of creates double in size, and after a failure no further group starts", async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat({ max: 40 }), fc.nat({ max: 40 }), async (pods, allowed) => {
      let tried = 0;
      const act = async () => (tried++ < allowed ? ({ kind: "done" } as const) : refused);
      const acted = await carryOut(
        act,
        Array.from({ length: pods }, (_, index) => pod(index)),
        signal,
      );
      assert.equal(acted.length, tried);
      const failed = acted.filter(({ outcome }) => outcome.kind === "failed").length;
      assert.ok(failed <= allowed + 1, `${failed} failed after ${allowed}`);
      if (allowed >= pods) assert.equal(tried, pods);
    }),
  );
});

test("anchors are created before the objects they own, services before pods; anchors are deleted last", async () => {
  const order: string[] = [];
  const act = async (action: Action) => {
    order.push(action.kind);
    return { kind: "done" } as const;
  };
  await carryOut(act, [pod(0), service, anchor], signal);
  assert.deepEqual(order, ["createAnchor", "createService", "createPod"]);
  order.length = 0;
  await carryOut(act, [removal("deleteAnchor"), removal("deletePod"), removal("deleteService")], signal);
  assert.equal(order.at(-1), "deleteAnchor");
});

test("config maps of a kind are written after its other parts, and not if another part failed", async () => {
  const part = (kind: string, verb: "createPart" | "updatePart"): Action => {
    return { ...base, kind: verb, anchor: "anchor", manifest: { kind, ...manifest(kind) } };
  };
  const parts = [part("ConfigMap", "updatePart"), part("Role", "updatePart"), part("RoleBinding", "createPart")];
  const kindsTried = async (failing: string | null) => {
    const act = async (action: Action) => {
      return "manifest" in action && action.manifest["kind"] === failing ? refused : ({ kind: "done" } as const);
    };
    const acted = await carryOut(act, [...parts, pod(0)], signal);
    return acted.map(({ action }) => ("manifest" in action ? (action.manifest["kind"] ?? action.kind) : action.kind));
  };
  assert.deepEqual(await kindsTried(null), ["Role", "RoleBinding", "ConfigMap", "createPod"]);
  assert.deepEqual(await kindsTried("Role"), ["Role", "RoleBinding"]);
  assert.deepEqual(await kindsTried("ConfigMap"), ["Role", "RoleBinding", "ConfigMap"]);
});

test("nothing is created under an anchor whose creation failed, but deletes continue", async () => {
  const act = async ({ kind }: Action) => (kind === "createAnchor" ? refused : ({ kind: "done" } as const));
  const acted = await carryOut(act, [anchor, pod(0), removal("deletePod")], signal);
  assert.deepEqual(acted.map(({ action }) => action.kind).sort(), ["createAnchor", "deletePod"]);
});

test("an anchor is not deleted if the deletion of an object that it owns failed", async () => {
  const act = async ({ kind }: Action) => (kind === "deletePod" ? refused : ({ kind: "done" } as const));
  const acted = await carryOut(act, [removal("deletePod"), removal("deleteAnchor")], signal);
  assert.deepEqual(
    acted.map(({ action }) => action.kind),
    ["deletePod"],
  );
});

test("no action starts after the signal is aborted", async () => {
  const stopping = new AbortController();
  const act = async () => {
    stopping.abort();
    return { kind: "done" } as const;
  };
  const acted = await carryOut(act, [pod(0), pod(1), pod(2)], stopping.signal);
  assert.equal(acted.length, 1);
});

const done = { kind: "done" } as const;
const events = {
  "a pod that was created": [{ action: pod(0), outcome: done }, "Normal SuccessfulCreatePod Created pod: p0"],
  "a pod that existed already": [{ action: pod(0), outcome: { kind: "already" } as const }, null],
  "a pod that was refused": [
    { action: pod(0), outcome: refused },
    "Warning FailedCreatePod create pod p0 in c: exceeded quota",
  ],
  "a part that was changed": [
    {
      action: { ...base, kind: "updatePart", anchor: "anchor", manifest: { kind: "Role", ...manifest("r") } } as Action,
      outcome: done,
    },
    "Normal SuccessfulUpdateRole Updated role: r",
  ],
  "a pod that was deleted": [
    { action: removal("deletePod"), outcome: done },
    "Normal SuccessfulDeletePod Deleted pod: deletePod",
  ],
  "a service that was created": [
    { action: service, outcome: done },
    "Normal SuccessfulCreateService Created service: service",
  ],
  "a service that was refused": [
    { action: service, outcome: refused },
    "Warning FailedCreateService create service service in c: exceeded quota",
  ],
  "an anchor that could not be deleted": [
    { action: removal("deleteAnchor"), outcome: refused },
    "Warning FailedDeleteAnchor delete anchor deleteAnchor in c: exceeded quota",
  ],
} as const;

for (const [what, [acted, expected]] of Object.entries(events)) {
  test(`the event of ${what} is right`, () => {
    const event = eventOf(acted);
    assert.equal(event === null ? null : `${event.type} ${event.reason} ${event.message}`, expected);
  });
}

test("pods wait for the parts of their kind, and the event of a refused part names its resource", async () => {
  const part: Action = {
    ...base,
    kind: "createPart",
    anchor: "anchor",
    manifest: { kind: "Role", metadata: { name: "launcher" } },
  };
  const tried: string[] = [];
  const act = async ({ kind }: Action) => {
    tried.push(kind);
    return kind === "createPart" ? refused : ({ kind: "done" } as const);
  };
  const acted = await carryOut(act, [pod(0), service, part, anchor], signal);
  assert.deepEqual(tried, ["createAnchor", "createPart"]);
  assert.deepEqual(acted.map(eventOf).at(-1), {
    type: "Warning",
    reason: "FailedCreateRole",
    message: "create role launcher in c: exceeded quota",
  });
});
