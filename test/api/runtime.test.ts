import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { JsonObject } from "@bufbuild/protobuf";
import { NamespaceService } from "../../src/gen/gangway/v1/namespace_service_pb.ts";
import { RuntimeService } from "../../src/gen/gangway/v1/runtime_service_pb.ts";
import { startFixture } from "./fixture.ts";

const runtimes = RuntimeService.method;
const SPEC: JsonObject = { mlPolicy: { numNodes: 2 }, template: { spec: { replicatedJobs: [{ name: "node" }] } } };

/** A service with namespace `nlp`. */
async function withNamespace(t: TestContext) {
  const fixture = await startFixture(t);
  await fixture.call(NamespaceService.method.createNamespace, { namespace: { name: "nlp" } });
  const create = (runtime: object, more: object = {}) =>
    fixture.call(runtimes.createRuntime, { runtime: { spec: SPEC, ...runtime }, ...more });
  const update = (runtime: object) => fixture.call(runtimes.updateRuntime, { runtime: { spec: SPEC, ...runtime } });
  return { ...fixture, create, update };
}

test("a runtime is created, read, listed, changed and deleted", async (t) => {
  const { call, create, update } = await withNamespace(t);
  const names = { namespace: "nlp", name: "torch" };
  const made = await create({ ...names, labels: { team: "nlp" } });
  const { namespace, name, labels, spec, resourceVersion, shipped, createTime } = made.ok!.runtime!;
  assert.deepEqual([namespace, name, labels, spec], ["nlp", "torch", { team: "nlp" }, SPEC]);
  assert.deepEqual([resourceVersion, shipped, createTime?.seconds], ["1", false, 1n]);
  assert.deepEqual((await call(runtimes.getRuntime, names)).ok!.runtime, made.ok!.runtime);
  const changed = await update({ ...names, spec: { ...SPEC, mlPolicy: { numNodes: 3 } }, resourceVersion: "1" });
  assert.deepEqual(changed.ok!.runtime!.spec?.["mlPolicy"], { numNodes: 3 });
  const stale = await update({ ...names, resourceVersion: "1" });
  assert.deepEqual([stale.error?.code, stale.error?.reason], ["ABORTED", "STALE_RESOURCE_VERSION"]);
  assert.equal((await call(runtimes.deleteRuntime, names)).error, null);
  const gone = await call(runtimes.getRuntime, names);
  assert.deepEqual(
    [gone.error?.code, gone.error?.reason, gone.error?.resource],
    ["NOT_FOUND", "TRAINING_RUNTIME_NOT_FOUND", "nlp/torch"],
  );
});

test("lists have no specs, and the shipped runtimes on pages with the others", async (t) => {
  const { call, create } = await withNamespace(t);
  await create({ name: "own" });
  await create({ namespace: "nlp", name: "torch" });
  const { runtimes: first, nextPageToken } = (await call(runtimes.listRuntimes, { namespace: "nlp", pageSize: 6 })).ok!;
  const { runtimes: second } = (await call(runtimes.listRuntimes, { namespace: "nlp", pageToken: nextPageToken })).ok!;
  const all = [...first, ...second];
  assert.deepEqual(
    all.map(({ namespace, name, shipped, spec }) => [namespace, name, shipped, spec]),
    [
      ...["deepspeed-distributed", "jax-distributed", "mlx-distributed"].map((name) => ["", name, true, undefined]),
      ["", "own", false, undefined],
      ["", "torch-distributed", true, undefined],
      ...["llama3.2-1b", "llama3.2-3b", "qwen2.5-1.5b"].map((model) => ["", `torchtune-${model}`, true, undefined]),
      ["", "xgboost-distributed", true, undefined],
      ["nlp", "torch", false, undefined],
    ],
  );
  assert.equal((await call(runtimes.listRuntimes, {})).ok!.runtimes.length, 9);
  assert.equal((await call(runtimes.listRuntimes, { allNamespaces: true })).ok!.runtimes.length, 10);
  const both = await call(runtimes.listRuntimes, { allNamespaces: true, namespace: "nlp" });
  assert.deepEqual([both.error?.code, both.error?.fields[0]?.field], ["INVALID_ARGUMENT", "namespace"]);
  const bad = await call(runtimes.listRuntimes, { pageToken: "x" });
  assert.deepEqual([bad.error?.code, bad.error?.fields[0]?.field], ["INVALID_ARGUMENT", "page_token"]);
});

test("a shipped runtime is read whole, and never changes", async (t) => {
  const { call, create, update } = await withNamespace(t);
  const { runtime } = (await call(runtimes.getRuntime, { name: "torch-distributed" })).ok!;
  assert.deepEqual([runtime?.shipped, runtime?.resourceVersion, runtime?.createTime], [true, "", undefined]);
  assert.deepEqual(runtime?.spec?.["mlPolicy"], { numNodes: 1, torch: {} });
  const name = "torch-distributed";
  const answers = [await create({ name }), await update({ name }), await call(runtimes.deleteRuntime, { name })];
  for (const { error } of answers) {
    assert.deepEqual([error?.code, error?.precondition], ["FAILED_PRECONDITION", "SHIPPED_RUNTIME"]);
    assert.match(error!.message, /torch-distributed is shipped with Gangway, .*use another name/);
  }
  assert.equal((await create({ namespace: "nlp", name })).error, null);
});

test("a request that is only validated changes nothing", async (t) => {
  const { call, create } = await withNamespace(t);
  const tried = await create({ name: "own" }, { validateOnly: true });
  assert.equal(tried.ok!.runtime!.name, "own");
  assert.equal((await call(runtimes.getRuntime, { name: "own" })).error?.code, "NOT_FOUND");
});

const WRONG: Readonly<Record<string, readonly [runtime: object, field: string, says: RegExp]>> = {
  "no name": [{}, "name", /must be a DNS name/],
  "a name in capitals": [{ name: "Torch" }, "name", /must be a DNS name/],
  "a name that is too long": [{ name: "x".repeat(254) }, "name", /253/],
  "a namespace in capitals": [{ name: "a", namespace: "NLP" }, "namespace", /must be empty or a DNS label/],
  "a label without a key": [{ name: "a", labels: { "": "x" } }, "labels", /must be a label key of Kubernetes/],
  "no spec": [{ name: "a", spec: undefined }, "spec", /must be set/],
  "a spec with an unknown member": [{ name: "a", spec: { ...SPEC, templates: {} } }, "spec.templates", /did you mean/],
  "a spec of flux": [{ name: "a", spec: { ...SPEC, mlPolicy: { flux: {} } } }, "spec.mlPolicy.flux", /not served/],
};

test("what is wrong with a runtime is refused with its field", async (t) => {
  const { call, create, update } = await withNamespace(t);
  for (const [name, [runtime, field, says]] of Object.entries(WRONG)) {
    for (const { error } of [await create(runtime), await update(runtime)]) {
      assert.equal(error?.code, "INVALID_ARGUMENT", name);
      assert.ok(error.fields[0]?.field.startsWith(`runtime.${field}`), `${name}: ${error.fields[0]?.field}`);
      assert.match(error.message, says, name);
    }
  }
  const absent = await create({ namespace: "absent", name: "a" });
  assert.deepEqual([absent.error?.code, absent.error?.reason], ["NOT_FOUND", "NAMESPACE_NOT_FOUND"]);
  await create({ name: "a" });
  const exists = await create({ name: "a" });
  assert.deepEqual([exists.error?.code, exists.error?.reason], ["ALREADY_EXISTS", "TRAINING_RUNTIME_EXISTS"]);
  const nothing = await call(runtimes.deleteRuntime, { namespace: "nlp", name: "b" });
  assert.deepEqual([nothing.error?.code, nothing.error?.resource], ["NOT_FOUND", "nlp/b"]);
});

test("a namespace and the installation have 200 runtimes at most", async (t) => {
  const { create } = await withNamespace(t);
  for (const namespace of ["nlp", ""]) {
    for (let at = 0; at < 200; at += 1) await create({ namespace, name: `r-${at}` });
    const { error } = await create({ namespace, name: "more" });
    assert.deepEqual([error?.code, error?.reason], ["RESOURCE_EXHAUSTED", "TOO_MANY_TRAINING_RUNTIMES"]);
    assert.match(error!.message, /^(namespace nlp|the installation) has 200 training runtimes/);
  }
});
