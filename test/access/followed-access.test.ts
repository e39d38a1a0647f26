/** The copy of roles and bindings: what file and store give together, and how it follows both. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createAccessAdmin } from "../../src/access/access-admin.ts";
import { followAccess } from "../../src/access/followed-access.ts";
import { refusalLog } from "../../src/access/refusals.ts";
import { type AccessFile, NO_ACCESS_FILE } from "../../src/core/access/access-file.ts";
import { mayCall } from "../../src/core/access/decide.ts";
import type { Identity } from "../../src/core/access/identity.ts";
import { INSTALLATION } from "../../src/core/access/scope.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { memoryAccess } from "../support/memory-access.ts";

const identity = (subject: string): Identity => {
  return { subject, groups: [], method: "oidc", issuer: "", expiresAtMs: null };
};
const ann = { kind: "subject", name: "ann" } as const;
const by = { actor: "ann", nowMs: 0 };
const fail = (error: unknown) => assert.fail(String(error));

test("records of the file come before those of the store, and with `only` without them", async () => {
  const { store } = memoryAccess();
  await store.createRole({ name: "reader", permissions: ["jobs.logs"] }, by);
  await store.createBinding({ name: "stored", to: ann, role: "reader", scope: INSTALLATION, roleVersion: null }, by);
  let file: AccessFile = NO_ACCESS_FILE;
  const access = followAccess({ clock: systemClock(), store, file: () => file, onError: fail });
  const may = (permission: "jobs.logs" | "jobs.get" | "jobs.cancel") =>
    mayCall(identity("ann"), permission, INSTALLATION, access.copy());
  assert.equal(may("jobs.logs"), false, "nothing is allowed before the first read");
  await access.refresh();
  assert.equal(may("jobs.logs"), true);
  file = { only: false, roles: [{ name: "reader", permissions: ["jobs.get"] }], bindings: [] };
  await access.refresh();
  assert.deepEqual([may("jobs.logs"), may("jobs.get")], [false, true]);
  file = { only: true, roles: [], bindings: [{ name: "own", to: ann, role: "operator", scope: INSTALLATION }] };
  await access.refresh();
  assert.deepEqual([may("jobs.cancel"), access.copy().bindings.has("stored")], [true, false]);
  assert.equal(access.copy().roles.has("reader"), false);
});

test("what the file gives is not changed by calls, and with `only` nothing is", async () => {
  const { store } = memoryAccess();
  let file: AccessFile = {
    only: false,
    roles: [{ name: "reader", permissions: ["jobs.get"] }],
    bindings: [{ name: "own", to: ann, role: "reader", scope: INSTALLATION }],
  };
  const clock = systemClock();
  const access = followAccess({ clock, store, file: () => file, onError: fail });
  const admin = createAccessAdmin({ clock, store, access, file: () => file, enforces: false });
  await access.refresh();
  const root = identity("root");
  const binding = { name: "own", to: ann, role: "viewer", scope: INSTALLATION };
  assert.equal((await admin.createBinding(binding, root)).kind, "exists");
  assert.equal((await admin.deleteBinding({ name: "own", version: 0 }, root)).kind, "inFile");
  assert.equal((await admin.deleteRole({ name: "reader", version: 0 }, root)).kind, "inFile");
  assert.equal((await admin.deleteRole({ name: "viewer", version: 0 }, root)).kind, "builtIn");
  assert.equal((await admin.createBinding({ ...binding, name: "other" }, root)).kind, "done");
  file = { ...file, only: true };
  assert.equal((await admin.createBinding({ ...binding, name: "third" }, root)).kind, "onlyFile");
  assert.equal((await admin.createRole({ name: "r", permissions: ["jobs.get"] }, root)).kind, "onlyFile");
});

test("a role that is replaced between the judgement of a binding and its record is judged again", async () => {
  const { store, followed } = memoryAccess();
  const of = { nowMs: 0, actor: "root" };
  await store.createRole({ name: "binder", permissions: ["access.bind", "jobs.get"] }, of);
  await store.createRole({ name: "team", permissions: ["jobs.get"] }, of);
  await store.createBinding({ name: "ann", to: ann, role: "binder", scope: INSTALLATION, roleVersion: null }, of);
  let replacements = 0;
  const racing: typeof store = {
    ...store,
    createBinding: async (binding, change) => {
      replacements += 1;
      if (replacements === 1) {
        await store.deleteRole({ name: "team", version: 0 }, of);
        await store.createRole({ name: "team", permissions: ["jobs.get", "jobs.secrets"] }, of);
      }
      return store.createBinding(binding, change);
    },
  };
  const file = () => NO_ACCESS_FILE;
  const admin = createAccessAdmin({ clock: systemClock(), store: racing, access: followed, file, enforces: true });
  const wanted = { name: "bob", to: { kind: "subject", name: "bob" }, role: "team", scope: INSTALLATION } as const;
  assert.deepEqual(await admin.createBinding(wanted, identity("ann")), {
    kind: "beyond",
    permissions: ["jobs.secrets"],
    scope: INSTALLATION,
  });
  assert.equal(followed.copy().bindings.has("bob"), false);
});

test("a wait ends at the next change, and a copy that is not compared for a minute is outdated", async () => {
  let nowMs = 0;
  const clock = { ...systemClock(), monotonicMs: () => nowMs };
  const { store, of } = memoryAccess();
  const access = followAccess({ clock, store, file: () => NO_ACCESS_FILE, onError: fail });
  assert.equal(access.isOutdated(), true);
  await access.refresh();
  let heard = 0;
  const waiting = access.changed(new AbortController().signal).then(() => {
    heard += 1;
  });
  nowMs = 60_000;
  assert.equal(access.isOutdated(), false);
  nowMs = 60_001;
  assert.equal(access.isOutdated(), true);
  await access.refresh();
  assert.deepEqual([access.isOutdated(), heard], [false, 0]);
  of.away = true;
  await assert.rejects(access.refresh());
  of.away = false;
  await store.createRole({ name: "reader", permissions: ["jobs.logs"] }, by);
  await access.refresh();
  await waiting;
  assert.equal(heard, 1);
});

test("a repeated refusal is written at once and then as a number, and many callers do not fill the log", async () => {
  let nowMs = 0;
  const entries: string[] = [];
  const stop = new AbortController();
  let look = () => {};
  const refusals = refusalLog({
    clock: {
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
      sleep: () =>
        new Promise((resolve) => {
          look = resolve;
        }),
    },
    append: async ({ actor, subject, action, details }) =>
      void entries.push(`${actor} ${action} ${subject} ${details["repeated"] ?? details["otherCalls"] ?? "-"}`),
    onError: fail,
  });
  const of = { rpc: "X/Y", method: "oidc", permission: "jobs.get", scope: "namespace a", outcome: "NOT_FOUND" };
  const refused = { ...of, subject: "ann", resource: "a/j" };
  const running = refusals.run(stop.signal);
  const looked = async () => {
    const before = look;
    before();
    while (look === before) await new Promise(setImmediate);
  };
  for (let times = 0; times < 4; times++) refusals.note(refused);
  refusals.note({ ...refused, resource: "b/j" });
  refusals.note({ ...refused, subject: "bob" });
  const first = ["ann PermissionDenied a/j -", "ann PermissionDenied b/j -", "bob PermissionDenied a/j -"];
  assert.deepEqual(entries, first);
  await looked();
  assert.equal(entries.length, 3);
  nowMs = 60_000;
  await looked();
  assert.deepEqual(entries, [...first, "ann PermissionDenied a/j 3"]);
  refusals.note(refused);
  assert.equal(entries.length, 5);
  for (let at = 0; at < 5_000; at++) refusals.note({ ...refused, subject: `robot:${at}` });
  refusals.note({ ...refused, subject: "robot:1" });
  stop.abort();
  look();
  await running;
  assert.equal(entries.length, 1_006);
  assert.deepEqual(entries.slice(-2), ["robot:1 PermissionDenied a/j 1", "undefined PermissionDenied  4001"]);
});
