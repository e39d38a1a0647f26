import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClusterAdmin } from "../../src/api/ports.ts";
import {
  ClusterCheck_Severity,
  ClusterService,
  ClusterState,
  GangScheduler,
} from "../../src/gen/gangway/v1/cluster_service_pb.ts";
import { startFixture } from "./fixture.ts";
import { MemoryStore } from "./memory-store.ts";

const { registerCluster, updateCluster, checkCluster, declareClusterLost, adoptCluster, deleteCluster, getCluster } =
  ClusterService.method;
const flavors = [{ name: "gpu/h100", resource: "nvidia.com/gpu", nodeLabels: { product: "h100" } }];
const credentials = { kubeconfig: { case: "text", value: "kind: Config" } } as const;
const cluster = { name: "east", labels: { zone: "a" }, flavors };

test("a cluster is registered with the findings of a check, updated, checked and deleted", async (t) => {
  const { call, woken } = await startFixture(t);
  const made = await call(registerCluster, { cluster, credentials });
  assert.equal(made.ok?.cluster?.flavors[0]?.nodeLabels["product"], "h100");
  assert.equal(made.ok?.check?.findings[0]?.severity, ClusterCheck_Severity.ERROR);
  assert.equal(made.ok?.check?.clockSkew?.seconds, -1n);
  const changed = await call(updateCluster, { cluster: { name: "east", labels: {}, resourceVersion: "1" } });
  assert.deepEqual([changed.ok?.cluster?.resourceVersion, changed.ok?.cluster?.labels], ["2", {}]);
  const stale = await call(updateCluster, { cluster: { name: "east", resourceVersion: "1" } });
  assert.deepEqual([stale.error?.code, stale.error?.reason], ["ABORTED", "STALE_RESOURCE_VERSION"]);
  const check = await call(checkCluster, { name: "east" });
  assert.equal(check.ok?.check?.kubernetesVersion, "v1.36.3");
  assert.equal((await call(deleteCluster, { name: "east" })).error, null);
  assert.equal(woken.planner, 3, "the planner hears of each change");
  assert.equal((await call(checkCluster, { name: "east" })).error?.reason, "CLUSTER_NOT_FOUND");
});

test("a cluster's gang scheduler stays until another is named, and an unknown one is refused", async (t) => {
  const { call } = await startFixture(t);
  const made = await call(registerCluster, {
    cluster: { ...cluster, gangScheduler: GangScheduler.VOLCANO },
    credentials,
  });
  assert.equal(made.ok?.cluster?.gangScheduler, GangScheduler.VOLCANO);
  const kept = await call(updateCluster, { cluster });
  assert.equal(kept.ok?.cluster?.gangScheduler, GangScheduler.VOLCANO);
  const none = await call(updateCluster, { cluster: { ...cluster, gangScheduler: GangScheduler.NONE } });
  assert.equal(none.ok?.cluster?.gangScheduler, GangScheduler.NONE);
  const unknown = await call(updateCluster, { cluster: { ...cluster, gangScheduler: 9 as GangScheduler } });
  assert.deepEqual(
    [unknown.error?.code, unknown.error?.fields[0]?.field],
    ["INVALID_ARGUMENT", "cluster.gang_scheduler"],
  );
});

const LEVELS = ["block", "rack", "host"].map((name) => {
  return { name, label: name === "host" ? "kubernetes.io/hostname" : `example.com/${name}` };
});

test("a cluster's levels stay until others or none are named; a flavor may have its own", async (t) => {
  const { call } = await startFixture(t);
  const own = { ...flavors[0], topology: { levels: LEVELS.slice(1, 2) } };
  const sent = { ...cluster, flavors: [own], topology: { levels: LEVELS } };
  await call(registerCluster, { cluster: sent, credentials });
  const shown = async () => {
    const found = (await call(getCluster, { name: "east" })).ok?.cluster;
    const names = (levels: readonly { readonly name: string }[] | undefined) => levels?.map(({ name }) => name);
    return [names(found?.topology?.levels), names(found?.flavors[0]?.topology?.levels)];
  };
  assert.deepEqual(await shown(), [["block", "rack", "host"], ["rack"]]);
  await call(updateCluster, { cluster });
  assert.deepEqual(await shown(), [["block", "rack", "host"], undefined], "flavors are replaced as a whole");
  await call(updateCluster, { cluster: { ...cluster, topology: { levels: [] } } });
  assert.deepEqual(await shown(), [[], undefined]);
});

const badLevels: Record<string, { levels: { name: string; label: string }[]; field: string; says: RegExp }> = {
  "with two levels of one name": {
    levels: [...LEVELS.slice(0, 1), { name: "block", label: "x" }],
    field: "levels",
    says: /names block twice/,
  },
  "with one label for two levels": {
    levels: [...LEVELS.slice(0, 1), { name: "zone", label: "example.com/block" }],
    field: "levels",
    says: /uses example.com\/block twice/,
  },
  "with a level below hosts": {
    levels: LEVELS.toReversed(),
    field: "levels",
    says: /must have kubernetes.io\/hostname last: no level is finer than host/,
  },
  "with 17 levels": {
    levels: Array.from({ length: 17 }, (_, at) => ({ name: `l${at}`, label: `l${at}` })),
    field: "levels",
    says: /16/,
  },
  "with a level whose name is none": { levels: [{ name: "Rack", label: "x" }], field: "levels[0].name", says: /rack/ },
  "with a level without a name": { levels: [{ name: "", label: "x" }], field: "levels[0].name", says: /rack/ },
  "with a level whose label is none": {
    levels: [{ name: "rack", label: "a b" }],
    field: "levels[0].label",
    says: /label key of Kubernetes/,
  },
};
for (const [name, { levels, field, says }] of Object.entries(badLevels)) {
  test(`a cluster or a flavor ${name} is refused by its field`, async (t) => {
    const { call } = await startFixture(t);
    const topology = { levels };
    const ofFlavor = { ...cluster, flavors: [{ ...flavors[0], topology }] };
    const answers = {
      [`cluster.topology.${field}`]: await call(registerCluster, { cluster: { ...cluster, topology }, credentials }),
      [`cluster.flavors[0].topology.${field}`]: await call(updateCluster, { cluster: ofFlavor }),
    };
    for (const [path, { error }] of Object.entries(answers)) {
      assert.deepEqual([error?.code, error?.fields.map((note) => note.field)], ["INVALID_ARGUMENT", [path]]);
      assert.match(error?.fields[0]?.description ?? "", says);
    }
  });
}

test("validate_only registers nothing", async (t) => {
  const { call } = await startFixture(t);
  const tried = await call(registerCluster, { cluster, credentials, validateOnly: true });
  assert.equal(tried.ok?.cluster, undefined);
  assert.equal(tried.ok?.check?.findings.length, 1);
  assert.equal((await call(getCluster, { name: "east" })).error?.code, "NOT_FOUND");
});

test("refuses a cluster in use, a taken name, a missing key and bad credentials, with the exact reason", async (t) => {
  const { call } = await startFixture(t);
  await call(registerCluster, { cluster: { ...cluster, name: "busy" }, credentials });
  const again = await call(registerCluster, { cluster: { ...cluster, name: "busy" }, credentials });
  assert.deepEqual([again.error?.code, again.error?.reason], ["ALREADY_EXISTS", "CLUSTER_EXISTS"]);
  const busy = await call(deleteCluster, { name: "busy" });
  assert.deepEqual([busy.error?.code, busy.error?.precondition], ["FAILED_PRECONDITION", "CLUSTER_IN_USE"]);
  for (const confirm of ["", "east"]) {
    const unconfirmed = await call(deleteCluster, { name: "busy", forget: true, confirm });
    assert.equal(unconfirmed.error?.code, "INVALID_ARGUMENT");
    assert.deepEqual(
      unconfirmed.error?.fields.map(({ field }) => field),
      ["confirm"],
    );
  }
  assert.equal((await call(deleteCluster, { name: "busy", forget: true, confirm: "busy" })).error, null);
  const noKey = await call(registerCluster, {
    cluster,
    credentials: { kubeconfig: { case: "text", value: "no key" } },
  });
  assert.deepEqual([noKey.error?.code, noKey.error?.precondition], ["FAILED_PRECONDITION", "NO_CREDENTIALS_KEY"]);
  const byPath = await call(registerCluster, { cluster, credentials: { kubeconfig: { case: "path", value: "/etc" } } });
  assert.deepEqual(
    byPath.error?.fields.map(({ field }) => field),
    ["credentials.kubeconfig"],
  );
});

test("a dry run of forgetting needs no confirmation, changes nothing, and is for forgetting alone", async (t) => {
  const { call } = await startFixture(t);
  await call(registerCluster, { cluster: { ...cluster, name: "busy" }, credentials });
  const ahead = await call(deleteCluster, { name: "busy", forget: true, dryRun: true });
  assert.deepEqual([ahead.error, ahead.ok?.gangs?.leaving, ahead.ok?.gangs?.staying], [null, 0, 0]);
  assert.equal((await call(getCluster, { name: "busy" })).error, null, "it is still there");
  const plain = await call(deleteCluster, { name: "busy", dryRun: true });
  assert.deepEqual(
    plain.error?.fields.map(({ field }) => field),
    ["dry_run"],
  );
  assert.equal((await call(deleteCluster, { name: "none", forget: true, dryRun: true })).error?.code, "NOT_FOUND");
  const silent = await call(declareClusterLost, { name: "busy", dryRun: true });
  assert.equal(silent.ok?.cluster?.state, ClusterState.UNREACHABLE, "it has not answered yet, and is not lost by that");
});

test("a dry run of an adoption names what goes, and changes nothing; a silent cluster is adopted too", async (t) => {
  const gang = (name: string) => ({ namespace: "team", name });
  const there = { leaving: [gang("a"), gang("b")], staying: 3 };
  const clusters: ClusterAdmin = {
    ...new MemoryStore().clusterAdmin,
    gangsIfAdopted: async (name) => (name === "east" ? there : null),
  };
  const { call, store } = await startFixture(t, { clusters });
  for (const name of ["east", "west"]) {
    await store.clusterAdmin.register({ ...cluster, name }, { kubeconfig: { kind: "text", text: "" }, context: "" });
    store.clusters.set(name, { ...store.clusters.get(name)!, unadoptedMs: 5_000 });
  }
  const since = async (name: string) => (await call(getCluster, { name })).ok?.cluster?.unadoptedSince?.seconds;
  const { leaving, staying, firstLeaving } = (await call(adoptCluster, { name: "east", dryRun: true })).ok!.gangs!;
  assert.deepEqual([leaving, staying, firstLeaving], [2, 3, ["team/a", "team/b"]]);
  const silent = await call(adoptCluster, { name: "west", dryRun: true });
  assert.deepEqual([silent.error?.code, silent.error?.reason], ["UNAVAILABLE", "CLUSTER_UNREACHABLE"]);
  assert.deepEqual([await since("east"), await since("west")], [5n, 5n]);
  for (const name of ["east", "west"]) assert.equal((await call(adoptCluster, { name })).error, null);
  assert.deepEqual([await since("east"), await since("west")], [undefined, undefined]);
  for (const dryRun of [true, false]) {
    assert.equal((await call(adoptCluster, { name: "none", dryRun })).error?.reason, "CLUSTER_NOT_FOUND");
  }
});

test("all wrong fields are named at once", async (t) => {
  const { call } = await startFixture(t);
  const nothing = await call(registerCluster, {});
  assert.deepEqual(nothing.error?.fields.map(({ field }) => field).sort(), ["cluster", "credentials"]);
  const wrong = { name: "No Name", flavors: [{ name: "", resource: "" }, ...flavors, ...flavors] };
  const refused = await call(registerCluster, { cluster: wrong, credentials });
  assert.deepEqual(refused.error?.fields.map(({ field }) => field).sort(), [
    "cluster.flavors",
    "cluster.flavors[0].name",
    "cluster.flavors[0].resource",
    "cluster.name",
  ]);
  const version = await call(updateCluster, { cluster: { name: "east", resourceVersion: "new" } });
  assert.deepEqual(
    version.error?.fields.map(({ field }) => field),
    ["cluster.resource_version"],
  );
});

const H100 = { name: "gpu/h100", resource: "nvidia.com/gpu" };
const badFlavors: Record<string, { flavor: object; field: string }> = {
  "without a name": { flavor: { ...H100, name: "" }, field: "name" },
  "with a name of 12 KB": { flavor: { ...H100, name: "g".repeat(12_000) }, field: "name" },
  "with a name in upper case": { flavor: { ...H100, name: "gpu/H100" }, field: "name" },
  "with an empty part of its name": { flavor: { ...H100, name: "gpu//h100" }, field: "name" },
  "with a line break in its name": { flavor: { ...H100, name: "gpu\n" }, field: "name" },
  "without a resource": { flavor: { ...H100, resource: "" }, field: "resource" },
  "with a resource that is no name": { flavor: { ...H100, resource: "nvidia.com/gpu/x" }, field: "resource" },
  "with a label key that is none": { flavor: { ...H100, nodeLabels: { "a b": "" } }, field: "node_labels[a b]" },
  "with a label value that is none": { flavor: { ...H100, nodeLabels: { a: "-x" } }, field: "node_labels[a]" },
  "with a long label value": { flavor: { ...H100, nodeLabels: { a: "x".repeat(64) } }, field: "node_labels[a]" },
  "with too many labels": {
    flavor: { ...H100, nodeLabels: Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`l${at}`, ""])) },
    field: "node_labels",
  },
};
for (const [name, { flavor, field }] of Object.entries(badFlavors)) {
  test(`a flavor ${name} is refused by its field`, async (t) => {
    const { call, internal } = await startFixture(t);
    const first = { name: "cpu", resource: "cpu" };
    const sent = { ...cluster, flavors: [first, flavor] };
    for (const answer of [
      await call(registerCluster, { cluster: sent, credentials }),
      await call(updateCluster, { cluster: sent }),
    ]) {
      assert.equal(answer.error?.code, "INVALID_ARGUMENT");
      assert.deepEqual(
        answer.error.fields.map((note) => note.field),
        [`cluster.flavors[1].${field}`],
      );
    }
    assert.deepEqual(internal, []);
  });
}

test("a cluster has at most 64 flavors", async (t) => {
  const { call } = await startFixture(t);
  const many = Array.from({ length: 30_000 }, (_, at) => ({ name: `f${at}`, resource: "nvidia.com/gpu" }));
  const { error } = await call(registerCluster, { cluster: { ...cluster, flavors: many }, credentials });
  assert.deepEqual(
    error?.fields.map(({ field }) => field),
    ["cluster.flavors"],
  );
  const most = { ...cluster, flavors: many.slice(0, 64) };
  assert.equal((await call(registerCluster, { cluster: most, credentials })).error, null);
});

test("keys are rotated only to the key that the process encrypts with", async (t) => {
  const { call } = await startFixture(t);
  const { rotateCredentialKeys, listCredentialKeys } = ClusterService.method;
  const done = await call(rotateCredentialKeys, { to: "default" });
  const key = done.ok?.keys[0];
  assert.deepEqual([done.ok?.changed, key?.name, key?.current, key?.known], [0, "default", true, true]);
  assert.deepEqual((await call(listCredentialKeys, {})).ok?.keys, done.ok?.keys);
  const other = await call(rotateCredentialKeys, { to: "2026-11" });
  assert.deepEqual([other.error?.code, other.error?.precondition], ["FAILED_PRECONDITION", "OTHER_CREDENTIALS_KEY"]);
  const long = await call(rotateCredentialKeys, { to: "k".repeat(64) });
  assert.deepEqual([long.error?.code, long.error?.fields[0]?.field], ["INVALID_ARGUMENT", "to"]);
});
