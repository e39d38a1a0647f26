/** Roles and bindings in the store: each once, each with its audit entry, and a stamp that tells every change. */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { followAccess } from "../../../src/access/followed-access.ts";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { NO_ACCESS_FILE } from "../../../src/core/access/access-file.ts";
import type { NewBinding } from "../../../src/core/access/binding.ts";
import { mayCall } from "../../../src/core/access/decide.ts";
import { onEachDatabase, onPostgres } from "../../support/databases.ts";
import { freshStore, type TestStore } from "../db.ts";

const by = { actor: "ann", nowMs: 100 };
const binding = (name: string, more: Partial<NewBinding> = {}) => ({
  name,
  to: { kind: "group", name: "ml" } as const,
  role: "viewer",
  scope: { kind: "namespace", name: "nlp" } as const,
  roleVersion: null as number | null,
  ...more,
});

onEachDatabase((openDb) => {
  let db: Db;
  let store: TestStore;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    store = (await freshStore(db)).store;
  });
  const audited = async () => {
    const page = await store.pools.listAudit({
      pageSize: 10,
      after: null,
      filter: { actor: null, action: null, subject: null },
    });
    assert.ok(page !== "badCursor");
    return page.entries
      .filter(({ actor }) => actor === "ann")
      .map(({ actor, action, subject }) => `${actor} ${action} ${subject}`);
  };

  test("a role is made once, kept while a binding has it, and its changes are audited", async () => {
    const { access } = store;
    const made = await access.createRole({ name: "own", permissions: ["jobs.get"] }, by);
    assert.ok(made.kind === "done");
    assert.deepEqual(await access.createRole({ name: "own", permissions: ["jobs.logs"] }, by), { kind: "exists" });
    const own = { ...binding("b"), role: "own" };
    const other = { ...own, roleVersion: made.record.version + 1 };
    assert.deepEqual(await access.createBinding(other, by), { kind: "unknownRole" }, "another role of that name");
    assert.equal((await access.createBinding({ ...own, roleVersion: made.record.version }, by)).kind, "done");
    assert.deepEqual(await access.deleteRole({ name: "own", version: 0 }, by), { kind: "inUse", by: "binding b" });
    assert.deepEqual(await access.deleteBinding({ name: "b", version: 0 }, by), { kind: "done" });
    const stale = { name: "own", version: made.record.version + 1 };
    assert.deepEqual(await access.deleteRole(stale, by), { kind: "stale" });
    assert.deepEqual(await access.deleteRole({ ...stale, version: made.record.version }, by), { kind: "done" });
    assert.deepEqual(await access.deleteRole({ name: "own", version: 0 }, by), { kind: "notFound" });
    assert.deepEqual(await audited(), [
      "ann DeleteRole own",
      "ann DeleteBinding b",
      "ann CreateBinding b",
      "ann CreateRole own",
    ]);
  });

  test("a refused change writes nothing, and a binding has a role that exists", async () => {
    const { access } = store;
    const unknown = await access.createBinding({ ...binding("b"), role: "own", roleVersion: 1 }, by);
    assert.deepEqual(unknown, { kind: "unknownRole" });
    assert.equal((await access.createBinding(binding("b"), by)).kind, "done");
    assert.deepEqual(await access.createBinding(binding("b"), by), { kind: "exists" });
    assert.deepEqual(await access.deleteBinding({ name: "b", version: 999_999 }, by), { kind: "stale" });
    assert.deepEqual(await access.deleteBinding({ name: "c", version: 0 }, by), { kind: "notFound" });
    assert.deepEqual(await audited(), ["ann CreateBinding b"]);
  });

  test("a process hears at its next look, at most 5 s later, that another one has taken a binding away", async () => {
    const { access } = store;
    await access.createBinding(binding("b"), by);
    const sleeps: { readonly ms: number; readonly wake: () => void }[] = [];
    const clock = {
      monotonicMs: () => 0,
      sleep: (ms: number) => new Promise<void>((wake) => void sleeps.push({ ms, wake })),
    };
    const onError = (error: unknown) => assert.fail(String(error));
    const follower = followAccess({ clock, store: access, file: () => NO_ACCESS_FILE, onError });
    const stop = new AbortController();
    const running = follower.run(stop.signal);
    const next = async () => {
      while (sleeps.length === 0) await new Promise((resolve) => setImmediate(resolve));
      return sleeps.shift() ?? assert.fail();
    };
    const ann = { subject: "ann", groups: ["ml"] };
    const sees = () => mayCall(ann, "jobs.get", { kind: "namespace", name: "nlp" }, follower.copy());
    const look = await next();
    assert.equal(sees(), true);
    const told = follower.changed(stop.signal);
    await access.deleteBinding({ name: "b", version: 0 }, { actor: "another process", nowMs: 1 });
    assert.equal(sees(), true, "not before it looks");
    assert.ok(look.ms <= 5_000);
    look.wake();
    await told;
    assert.equal(sees(), false);
    stop.abort();
    (await next()).wake();
    await running;
  });

  test("a read returns everything, and the stamp differs after every change of what it returns", async () => {
    const { access, admin } = store;
    const stamps = new Set<string>();
    const look = async () => {
      const read = await access.readAccess([...stamps].at(-1) ?? null);
      assert.ok(read !== null, "something has changed");
      assert.ok(!stamps.has(read.stamp), "no stamp comes back");
      stamps.add(read.stamp);
      assert.equal(await access.readAccess(read.stamp), null);
      return read;
    };
    await look();
    await access.createRole({ name: "own", permissions: ["jobs.get"] }, by);
    await look();
    const made = await access.createBinding(binding("b"), by);
    assert.ok(made.kind === "done");
    const read = await look();
    assert.deepEqual(read.bindings, [made.record]);
    assert.deepEqual(
      read.roles.map(({ name, permissions, source }) => [name, permissions, source]),
      [["own", ["jobs.get"], "store"]],
    );
    await access.deleteBinding({ name: "b", version: 0 }, by);
    await access.createBinding(binding("b"), by);
    await look();
    const queue = { strategy: "BEST_EFFORT_FIFO", quotas: [] } as const;
    await admin.createQueue({ name: "nlp", ...queue });
    await admin.createNamespace({ name: "team", project: "p", defaultQueue: "nlp" });
    const { directory } = await look();
    assert.equal(directory.parents.get("nlp"), null);
    assert.deepEqual(directory.namespaces.get("team"), { project: "p", defaultQueue: "nlp" });
    await admin.updateNamespace({ name: "team", project: "q", defaultQueue: "nlp", version: 0 });
    await look();
    await admin.createQueue({ name: "dev", parent: "nlp", ...queue });
    assert.equal((await look()).directory.parents.get("dev"), "nlp");
  });
});

onPostgres((openDb) => {
  test("a stamp tells a binding that was taken away while another one became visible late", async (t) => {
    const db = await openDb();
    t.after(() => db.close());
    const { access } = (await freshStore(db)).store;
    await access.createBinding(binding("taken"), by);
    const committed = Promise.withResolvers<void>();
    const inserted = Promise.withResolvers<void>();
    const late = db.tx(async (tx) => {
      await tx.query(INSERT_BINDING, ["late"]);
      inserted.resolve();
      await committed.promise;
    });
    await inserted.promise;
    await access.createBinding(binding("newest"), by);
    const read = await access.readAccess(null);
    assert.deepEqual(
      read?.bindings.map(({ name }) => name),
      ["newest", "taken"],
    );
    await access.deleteBinding({ name: "taken", version: 0 }, by);
    committed.resolve();
    await late;
    const again = await access.readAccess(read?.stamp ?? "");
    assert.deepEqual(
      again?.bindings.map(({ name }) => name),
      ["late", "newest"],
    );
  });
});

const INSERT_BINDING = `
insert into access_bindings (name, to_kind, to_name, role, scope_kind, scope_name, create_ms, created_by)
values ($1, 'group', 'ml', 'viewer', 'namespace', 'nlp', 1, 'ann')`;
