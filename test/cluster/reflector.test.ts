import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { KubeClient } from "../../src/adapters/cluster/client.ts";
import { Reflector } from "../../src/adapters/cluster/reflector.ts";
import { startSimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { arrayAt, objectAt, stringAt } from "../../src/runtime/json.ts";
import {
  clientOf,
  clock,
  configMap,
  create,
  deadServer,
  fastClock,
  kubeconfigOf,
  remove,
  seededRandom,
  startProxy,
  until,
} from "./harness.ts";
import { ownSim } from "./own-sim.ts";

const { sim, direct } = await ownSim();
let label = 0;

type Kept = { readonly name: string; readonly version: string };
type Change = { readonly key: string; readonly before: string | null; readonly after: string | null };

/** A reflector of the config maps of one test, with its own client. */
function reflect(
  client: Pick<KubeClient, "request" | "watch">,
  group: string,
  options: { silenceMsMax?: number; onChange?: () => void; time?: Clock } = {},
) {
  const changes: Change[] = [];
  const errors: unknown[] = [];
  const reflector: Reflector<Kept> = new Reflector<Kept>({
    client,
    path: "/api/v1/configmaps",
    labelSelector: `group=${group}`,
    clock: options.time ?? clock,
    random: seededRandom(7),
    silenceMsMax: options.silenceMsMax ?? 20_000,
    keep: (object) => ({ name: nameOf(object), version: versionOf(object) }),
    jobOf: (kept) => kept.name.split(".")[0] ?? null,
    onChange: (key, was, is) => {
      changes.push({ key, before: was?.version ?? null, after: is?.version ?? null });
      options.onChange?.();
    },
    onHealth: () => undefined,
    onError: (error) => errors.push(error),
  });
  return { reflector, changes, errors };
}

const nameOf = (object: JsonObject) => stringAt(objectAt(object, "metadata"), "name") ?? "";
const versionOf = (object: JsonObject) => stringAt(objectAt(object, "metadata"), "resourceVersion") ?? "";
const group = () => `g${label++}`;
const add = (name: string, of: string) => create(direct, "configmaps", configMap(name, { group: of }));

async function listed(of: string): Promise<readonly string[]> {
  const query = { labelSelector: `group=${of}` };
  const list = await direct.request({ method: "GET", path: "/api/v1/configmaps", query });
  assert.equal(list.kind, "ok");
  return arrayAt(list.kind === "ok" ? list.object : {}, "items")
    .map((item) => nameOf(item as JsonObject))
    .sort();
}

const mirrored = (reflector: Reflector<Kept>) => [...reflector.store.values()].map(({ name }) => name).sort();

async function agrees(reflector: Reflector<Kept>, of: string): Promise<boolean> {
  const [there, here] = [await listed(of), mirrored(reflector)];
  return there.length === here.length && there.every((name, index) => name === here[index]);
}

test("a reflector ends up with the server's objects after any faults of its connections", async () => {
  const step = fc.record({ kind: fc.constantFrom("add", "remove"), index: fc.nat({ max: 7 }) });
  const faults = fc.record({
    endWatch: fc.constantFrom(0, 0.5),
    expireWatch: fc.constantFrom(0, 0.5),
    delayWatchMs: fc.constantFrom(0, 5),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), faults, async (steps, drawn) => {
      const of = group();
      const client = clientOf(sim.kubeconfig());
      const { reflector } = reflect(client, of, { time: fastClock(10) });
      sim.setFaults(drawn);
      reflector.start();
      try {
        for (const { kind, index } of steps) {
          if (kind === "add") await add(`p${index}.${of}`, of);
          else await remove(direct, "configmaps", `p${index}.${of}`);
        }
        await until(async () => reflector.synced && (await agrees(reflector, of)), "the mirror agrees");
      } finally {
        sim.setFaults({});
        await reflector.close();
        await client.close();
      }
    }),
    { numRuns: 8 },
  );
});

test("a deletion first delivers the last state of its object, if that is newer than the kept one", async () => {
  const object = (resourceVersion: string) => ({ metadata: { namespace: "n", name: "p", resourceVersion } });
  const list = { metadata: { resourceVersion: "5" }, items: [object("5")] };
  async function* events(signal: AbortSignal) {
    yield { type: "DELETED", object: object("7") };
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
  }
  const client: Pick<KubeClient, "request" | "watch"> = {
    request: async () => ({ kind: "ok", object: list }),
    watch: async (_request, signal) => ({ kind: "open", events: events(signal) }),
  };
  const { reflector, changes } = reflect(client, group());
  reflector.start();
  await until(async () => changes.length === 3, "the deletion is told");
  assert.deepEqual(changes.slice(1), [
    { key: "n/p", before: "5", after: "7" },
    { key: "n/p", before: "7", after: null },
  ]);
  await reflector.close();
});

test("a reflector is synced only once a list of several pages is complete", async (t) => {
  const of = group();
  const names = Array.from({ length: 1_100 }, (_, index) => `many-${index}.${of}`);
  await Promise.all(names.map((name) => add(name, of)));
  let failing = true;
  const proxy = await startProxy(sim.url, ({ query }) => (query.has("continue") && failing ? { status: 500 } : "pass"));
  t.after(() => proxy.close());
  const client = clientOf(proxy.kubeconfig);
  const { reflector, changes } = reflect(client, of);
  reflector.start();
  await until(
    () => proxy.seen.filter(({ query }) => query.has("continue")).length >= 2,
    "the second page was refused twice",
  );
  assert.equal(reflector.synced, false);
  assert.equal(changes.length, 0, "a list that is not complete changes nothing");
  failing = false;
  await until(() => reflector.synced, "the list is complete");
  assert.equal(mirrored(reflector).length, names.length);
  await reflector.close();
  await client.close();
});

test("deletes during a disconnect are reported as deletes after the list that follows", async (t) => {
  const of = group();
  await add(`stays.${of}`, of);
  await add(`goes.${of}`, of);
  let watches: "pass" | "cut" | { status: number } = "pass";
  const proxy = await startProxy(sim.url, ({ query }) => (query.has("watch") ? watches : "pass"));
  t.after(() => proxy.close());
  const client = clientOf(proxy.kubeconfig);
  const { reflector, changes } = reflect(client, of);
  reflector.start();
  await until(() => reflector.synced, "synced");
  watches = "cut";
  proxy.cutAll();
  await remove(direct, "configmaps", `goes.${of}`);
  await add(`comes.${of}`, of);
  watches = { status: 410 };
  await until(() => reflector.store.get(`default/comes.${of}`) !== undefined, "listed again");
  assert.deepEqual(mirrored(reflector), [`comes.${of}`, `stays.${of}`]);
  const ofGone = changes.filter(({ key }) => key === `default/goes.${of}`);
  assert.equal(ofGone.length, 2);
  assert.equal(ofGone[1]?.after, null);
  const ofStaying = changes.filter(({ key }) => key === `default/stays.${of}`);
  assert.equal(ofStaying.length, 1, "what did not change is not reported again");
  await reflector.close();
  await client.close();
});

test("a broken watch is followed by a watch from the last version, not by a list", async (t) => {
  const of = group();
  const proxy = await startProxy(sim.url, () => "pass");
  t.after(() => proxy.close());
  const client = clientOf(proxy.kubeconfig);
  const { reflector } = reflect(client, of);
  reflector.start();
  await until(() => proxy.seen.some(({ query }) => query.has("watch")), "watching");
  await add(`one.${of}`, of);
  await until(() => mirrored(reflector).length === 1, "heard of the first");
  const heard = [...reflector.store.values()][0]?.version;
  proxy.cutAll();
  await add(`two.${of}`, of);
  await until(() => mirrored(reflector).length === 2, "heard of the second");
  const watches = proxy.seen.filter(({ query }) => query.has("watch"));
  assert.equal(watches[1]?.query.get("resourceVersion"), heard);
  assert.equal(proxy.seen.length - watches.length, 1, "one list in all");
  assert.ok(watches.every(({ query }) => query.get("allowWatchBookmarks") === "true"));
  await reflector.close();
  await client.close();
});

test("a bookmark raises the version, so that the next watch begins after changes of other objects", async (t) => {
  // The server's time runs fast, so that the test need not wait for bookmarks.
  const hasty = await startSimCluster({ name: "hasty", nodes: [], directory: null, clock: fastClock(100) });
  t.after(() => hasty.close());
  const proxy = await startProxy(hasty.url, () => "pass");
  t.after(() => proxy.close());
  const client = clientOf(proxy.kubeconfig);
  const { reflector } = reflect(client, "nobody");
  reflector.start();
  const watched = () =>
    proxy.seen.filter(({ query }) => query.has("watch")).map(({ query }) => query.get("resourceVersion"));
  await until(() => watched().length === 1, "watching");
  const made = await create(client, "configmaps", configMap("of-no-concern"));
  const version = Number(versionOf(made.kind === "ok" ? made.object : {}));
  assert.ok(version > Number(watched()[0]));
  const heardMs = reflector.lastHeardMs ?? 0;
  await until(() => (reflector.lastHeardMs ?? 0) > heardMs, "a bookmark came");
  proxy.cutAll();
  await until(() => watched().length === 2, "watching again");
  assert.ok(Number(watched()[1]) >= version);
  await reflector.close();
  await client.close();
});

test("if every watch is cut before its first event, the reflector lists instead", async () => {
  const of = group();
  const client = clientOf(sim.kubeconfig());
  const { reflector } = reflect(client, of, { time: fastClock(10) });
  reflector.start();
  await until(() => reflector.synced, "synced");
  sim.setFaults({ endWatch: 1 });
  await add(`one.${of}`, of);
  await until(() => mirrored(reflector).length === 1, "heard of by a list");
  sim.setFaults({});
  await reflector.close();
  await client.close();
});

test("a watch that is silent for too long is opened again", async (t) => {
  const of = group();
  let hanging = true;
  const proxy = await startProxy(sim.url, ({ query }) => (query.has("watch") && hanging ? "hang" : "pass"));
  t.after(() => proxy.close());
  const client = clientOf(proxy.kubeconfig);
  const { reflector } = reflect(client, of, { silenceMsMax: 200 });
  reflector.start();
  await until(() => reflector.synced, "synced");
  await add(`unheard.${of}`, of);
  hanging = false;
  await until(() => mirrored(reflector).length === 1, "the next watch tells what the silent one did not");
  await reflector.close();
  await client.close();
});

test("a throttled list waits as long as the server asks, and then succeeds", async (t) => {
  const of = group();
  let refusals = 0;
  const proxy = await startProxy(sim.url, ({ query }) =>
    query.has("watch") || refusals++ > 0 ? "pass" : { status: 429, headers: { "retry-after": "1" } },
  );
  t.after(() => proxy.close());
  const client = clientOf(proxy.kubeconfig);
  const { reflector } = reflect(client, of);
  reflector.start();
  await until(() => reflector.synced, "synced after the refusal");
  assert.equal(reflector.failingForMs, 0, "a server that throttles is there");
  await reflector.close();
  await client.close();
});

test("an exception of a handler is reported and stops nothing", async () => {
  const of = group();
  const client = clientOf(sim.kubeconfig());
  const broken = new Error("a handler's own");
  const { reflector, errors } = reflect(client, of, {
    onChange: () => {
      throw broken;
    },
  });
  reflector.start();
  await until(() => reflector.synced, "synced");
  await add(`one.${of}`, of);
  await add(`two.${of}`, of);
  await until(() => mirrored(reflector).length === 2, "both are mirrored");
  assert.deepEqual(errors, [broken, broken]);
  await reflector.close();
  await client.close();
});

test("while the server does not answer, a reflector reports for how long, and is never synced", async () => {
  const client = clientOf(kubeconfigOf(deadServer()));
  const { reflector, errors } = reflect(client, group());
  reflector.start();
  await until(() => reflector.failingForMs > 0 && errors.length > 0, "failing");
  assert.equal(reflector.synced, false);
  assert.equal(reflector.lastHeardMs, null);
  await reflector.close();
  await client.close();
});

test("objects are found by their job until they are deleted", async () => {
  const of = group();
  const client = clientOf(sim.kubeconfig());
  await add(`a.${of}`, of);
  const { reflector } = reflect(client, of);
  reflector.start();
  await until(() => reflector.store.ofJob("a").length === 1, "found by job");
  assert.equal(reflector.store.namespaceOf("a"), "default");
  await remove(direct, "configmaps", `a.${of}`);
  await until(() => reflector.store.ofJob("a").length === 0, "gone");
  assert.deepEqual([...reflector.store.jobUids()], []);
  await reflector.close();
  await client.close();
});
