import assert from "node:assert/strict";
import { test } from "node:test";
import { Reflector } from "../../../src/adapters/cluster/reflector.ts";
import { arrayAt, type JsonObject, objectAt, stringAt } from "../../../src/runtime/json.ts";
import { clientOf, clock, configMap, create, seededRandom, until } from "../../cluster/harness.ts";
import { nameOf, ok, type Scene, signal, versionOf } from "./scene.ts";

const MANY = 1_100;

async function addMany(of: Scene, group: string): Promise<void> {
  const names = Array.from({ length: MANY }, (_, index) => `${group}-${index}`);
  // Not all at once: a server that is busy would leave the last ones without an answer for too long.
  for (let at = 0; at < MANY; at += 100) {
    const some = names.slice(at, at + 100);
    for (const made of await Promise.all(
      some.map((name) => create(of.admin, "configmaps", configMap(name, { group }))),
    ))
      ok(made);
  }
}

function reflect(of: Scene, kubeconfig: string, group: string) {
  const client = clientOf(kubeconfig);
  const reflector = new Reflector<{ name: string; version: string }>({
    client,
    path: "/api/v1/configmaps",
    labelSelector: `group=${group}`,
    clock,
    random: seededRandom(7),
    silenceMsMax: 150_000,
    keep: (object) => ({ name: nameOf(object), version: versionOf(object) }),
    jobOf: () => null,
    onChange: () => undefined,
    onHealth: () => undefined,
    onError: () => undefined,
  });
  reflector.start();
  const names = () => [...reflector.store.values()].map(({ name }) => name).sort();
  const add = async (name: string) => ok(await create(of.admin, "configmaps", configMap(name, { group })));
  const close = async () => {
    await reflector.close();
    await client.close();
  };
  return { reflector, names, add, close };
}

/** Tests lists of several pages. */
export function lists(of: Scene): void {
  const page = (query: Record<string, string>) =>
    of.adapter.request({ method: "GET", path: "/api/v1/configmaps", query: { labelSelector: "group=many", ...query } });

  test("a long list comes in pages of one version, and a page of a forgotten version is refused", async () => {
    await addMany(of, "many");
    const first = ok(await page({ limit: "500" }));
    const metadata = objectAt(first, "metadata");
    ok(await create(of.admin, "configmaps", configMap("many-late", { group: "many" })));
    const second = ok(await page({ limit: "1000", continue: stringAt(metadata, "continue") ?? "" }));
    assert.equal(arrayAt(first, "items").length + arrayAt(second, "items").length, MANY);
    assert.equal(versionOf(second), versionOf(first));
    assert.equal(stringAt(objectAt(second, "metadata"), "continue"), undefined);
    await of.subject.forget();
    const late = await page({ limit: "1000", continue: stringAt(metadata, "continue") ?? "" });
    assert.equal(late.kind, "failed");
    if (late.kind === "failed") assert.deepEqual([late.status, late.reason], [410, "Expired"]);
    const { reflector, names, close } = reflect(of, of.subject.adapterKubeconfig, "many");
    await until(() => reflector.synced, "synced");
    assert.equal(names().length, MANY + 1);
    await close();
  });
}

/** Tests watches that end, are cut or are too old. */
export function watches(of: Scene): void {
  const watch = async (query: Record<string, string>) => {
    const opened = await of.adapter.watch(
      { path: "/api/v1/configmaps", query: { allowWatchBookmarks: "true", ...query }, silenceMsMax: 60_000 },
      signal,
    );
    if (opened.kind === "failed") return { refused: opened, events: [] };
    const events: JsonObject[] = [];
    for await (const event of opened.events) events.push(event);
    return { refused: null, events };
  };
  const versionNow = async () => {
    const query = { limit: "1", labelSelector: "group=nobody" };
    return versionOf(ok(await of.adapter.request({ method: "GET", path: "/api/v1/configmaps", query })));
  };

  test("a watch ends when its time is over, after a bookmark beyond changes of other objects", async () => {
    const from = await versionNow();
    const watching = watch({ resourceVersion: from, timeoutSeconds: "4", labelSelector: "group=watched" });
    const other = versionOf(ok(await create(of.admin, "configmaps", configMap("of-no-concern"))));
    const seen = versionOf(ok(await create(of.admin, "configmaps", configMap("watched", { group: "watched" }))));
    const { events } = await watching;
    const types = events.map((event) => stringAt(event, "type"));
    assert.deepEqual(types.slice(0, 1), ["ADDED"]);
    assert.ok(types.slice(1).length > 0 && types.slice(1).every((type) => type === "BOOKMARK"), types.join());
    assert.equal(versionOf(objectAt(events[0], "object")), seen);
    const marked = Number(versionOf(objectAt(events.at(-1), "object")));
    assert.ok(marked >= Number(seen) && Number(seen) > Number(other));
  });

  test("an object that begins to match is added, and one that no longer matches is deleted", async () => {
    const from = await versionNow();
    const watching = watch({ resourceVersion: from, timeoutSeconds: "4", labelSelector: "group=turning" });
    const path = "/api/v1/namespaces/default/configmaps/turning";
    ok(await create(of.admin, "configmaps", configMap("turning")));
    for (const group of ["turning", "turning", "elsewhere"]) {
      const body = { metadata: { labels: { group } }, data: { at: group } };
      ok(await of.admin.request({ method: "PATCH", path, body }));
    }
    ok(await of.admin.request({ method: "DELETE", path }));
    const { events } = await watching;
    const said = events.filter((event) => stringAt(event, "type") !== "BOOKMARK");
    assert.deepEqual(
      said.map((event) => stringAt(event, "type")),
      ["ADDED", "DELETED"],
    );
  });

  test("a watch from a forgotten version fails with 410, and the reflector lists again", async () => {
    let cut = false;
    const proxy = await of.proxy(({ query }) => (query.has("watch") && cut ? "cut" : "pass"));
    const { reflector, names, add, close } = reflect(of, proxy.kubeconfig, "forgotten");
    await until(() => reflector.synced, "synced");
    await add("forgotten-one");
    await until(() => names().length === 1, "heard of the first");
    const from = await versionNow();
    cut = true;
    proxy.cutAll();
    await add("forgotten-two");
    await of.subject.forget();
    const { refused, events } = await watch({ resourceVersion: from, timeoutSeconds: "4" });
    const status = refused ?? objectAt(events[0], "object");
    assert.equal("status" in status && refused !== null ? refused.status : (status as JsonObject)["code"], 410);
    assert.equal(status.reason, "Expired");
    cut = false;
    await until(() => names().length === 2, "heard of the second");
    const listed = proxy.seen.filter(({ query }) => !query.has("watch")).length;
    assert.equal(listed, 2, "listed once more");
    await close();
    await proxy.close();
  });

  test("a watch that is cut continues from the last version, without a list", async () => {
    const proxy = await of.proxy(() => "pass");
    const { names, add, close } = reflect(of, proxy.kubeconfig, "cut");
    await until(() => proxy.seen.some(({ query }) => query.has("watch")), "watching");
    await add("cut-one");
    await until(() => names().length === 1, "heard of the first");
    proxy.cutAll();
    await add("cut-two");
    await until(() => names().length === 2, "heard of the second");
    assert.equal(proxy.seen.filter(({ query }) => !query.has("watch")).length, 1, "one list in all");
    await close();
    await proxy.close();
  });

  test("a throttled list waits as long as the server asks, and then succeeds", async () => {
    let refusals = 0;
    const proxy = await of.proxy(({ query }) =>
      query.has("watch") || refusals++ > 0 ? "pass" : { status: 429, headers: { "retry-after": "1" } },
    );
    const { reflector, close } = reflect(of, proxy.kubeconfig, "throttled");
    await until(() => reflector.synced, "synced after the refusal");
    assert.equal(reflector.failingForMs, 0, "a server that throttles is there");
    await close();
    await proxy.close();
  });
}
