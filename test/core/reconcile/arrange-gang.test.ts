import assert from "node:assert/strict";
import { test } from "node:test";
import { LABEL } from "../../../src/core/job/labels.ts";
import { type PodView, podView } from "../../../src/core/pods/read/pod-view.ts";
import { arrangeGang, isDelayed } from "../../../src/core/reconcile/arrange-gang.ts";
import type { ConfigMapView, ObservedCluster, PodGroupView } from "../../../src/core/reconcile/observed.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { admit, jobOf, START_MS, template } from "./world.ts";

type PodParts = {
  readonly name?: string;
  readonly job?: string;
  readonly admission?: number;
  readonly role?: string;
  readonly index?: string;
  readonly attempt?: number;
  /** Null: no controller. */
  readonly owner?: string | null;
  readonly ageS?: number;
  readonly deleting?: boolean;
};

/** A pod in the place Worker/0 of the gang below, unless its parts say otherwise. */
function pod(uid: string, parts: PodParts = {}): PodView {
  const { name = "j-worker-0", job = "job-uid", role = "worker", index = "0", owner = "anchor", ageS = 0 } = parts;
  const labels = {
    [LABEL.jobUid]: job,
    [LABEL.admission]: String(parts.admission ?? 2),
    [LABEL.replicaType]: role,
    [LABEL.replicaIndex]: index,
    [LABEL.attempt]: String(parts.attempt ?? 3),
  };
  const deleted = parts.deleting ? { deletionTimestamp: new Date(START_MS).toISOString() } : {};
  const metadata = {
    name,
    uid,
    labels,
    ownerReferences: owner === null ? [] : [{ uid: owner, controller: true }],
    creationTimestamp: new Date(START_MS - ageS * 1000).toISOString(),
    ...deleted,
  };
  return podView({ metadata, status: { phase: "Running" } });
}

const map = (uid: string, parts: Partial<ConfigMapView> = {}): ConfigMapView => {
  return { name: uid, uid, labels: {}, controllerUid: null, admission: 2, deleting: false, data: "{}", ...parts };
};

/** A gang of one master and one worker, whose worker is in its third attempt. */
function arrange(seen: Partial<ObservedCluster>) {
  const spec = { template: template("pytorch") };
  const waiting = jobOf({ kind: "PyTorchJob", replicaSpecs: { Master: spec, Worker: spec } });
  const admitted = admit(waiting, { cluster: "c1", nowMs: START_MS, number: 2 });
  const attempts = { ...admitted.status.attempts, byReplica: { "Worker/0": 3 } };
  const job = { ...admitted, status: { ...admitted.status, attempts } };
  const empty = { pods: [], services: [], configMaps: [map("anchor")] };
  const other = { ...empty, cluster: "c0", pods: [pod("elsewhere")] };
  const kind = OWN_KINDS.kindOf("PyTorchJob")!;
  return arrangeGang({ job, kind, observed: [other, { ...empty, cluster: "c1", ...seen }] }, job.admissions[0]!);
}

type Place = {
  readonly seen: readonly PodView[];
  readonly lost?: readonly PodView[];
  /** The uids of pods: the one in the place, those of earlier attempts, and those without a place. */
  readonly pod?: string;
  readonly stale?: readonly string[];
  readonly strays?: readonly string[];
  readonly taken?: boolean;
  readonly foreign?: boolean;
};

const places: Record<string, Place> = {
  "no pod": { seen: [], taken: false },
  "its pod": { seen: [pod("a")], pod: "a" },
  "two pods, of which the older has the place": { seen: [pod("a"), pod("b", { ageS: 1 })], pod: "b", strays: ["a"] },
  "two pods of one age, of which the first by uid has the place": {
    seen: [pod("b"), pod("a")],
    pod: "a",
    strays: ["b"],
  },
  "an older pod that is being deleted": {
    seen: [pod("a", { ageS: 1, deleting: true }), pod("b")],
    pod: "b",
    strays: ["a"],
  },
  "two pods that are being deleted": {
    seen: [pod("a", { deleting: true }), pod("b", { ageS: 1, deleting: true })],
    pod: "b",
    strays: ["a"],
  },
  "a pod of an earlier attempt": { seen: [pod("a", { attempt: 2 })], stale: ["a"] },
  "a pod of a later attempt": { seen: [pod("a", { attempt: 4 })] },
  "a pod of a later attempt in a place that the gang does not have": {
    seen: [pod("a", { attempt: 4, index: "1" })],
    strays: ["a"],
    taken: true,
  },
  "a pod of another replica type": { seen: [pod("a", { role: "ps", name: "x" })], strays: ["a"], taken: false },
  "a pod of a later attempt of another replica type": {
    seen: [pod("a", { role: "ps", name: "x", attempt: 9 })],
    strays: ["a"],
    taken: false,
  },
  "a pod without an index": { seen: [pod("a", { index: "x", name: "x" })], strays: ["a"], taken: false },
  "a pod with an index that no gang has": {
    seen: [pod("a", { index: "9999999", name: "x" })],
    strays: ["a"],
    taken: false,
  },
  "a pod of another job": { seen: [pod("a", { job: "other" })], foreign: true },
  "a pod of another job with another name": { seen: [pod("a", { job: "other", name: "x" })], taken: false },
  "a pod of another admission": { seen: [pod("a", { admission: 1 })] },
  "a pod of another controller": { seen: [pod("a", { owner: "other" })] },
  "a pod without a controller": { seen: [pod("a", { owner: null })], pod: "a" },
  "a disrupted pod that is gone": { seen: [], lost: [pod("a")], pod: "a", taken: false },
  "a disrupted pod that is gone, beside its pod": { seen: [pod("b")], lost: [pod("a")], pod: "b" },
  "a disrupted pod of an earlier attempt": { seen: [], lost: [pod("a", { attempt: 2 })], taken: false },
  "a disrupted pod of another place": { seen: [], lost: [pod("a", { name: "x", index: "1" })], taken: false },
  "a disrupted pod of another admission": { seen: [], lost: [pod("a", { admission: 1 })], taken: false },
};
for (const [name, { seen, lost, taken = true, foreign = false, ...place }] of Object.entries(places)) {
  test(`a member whose cluster shows ${name}`, () => {
    const { slots, strays } = arrange({ pods: seen, ...(lost && { lost }) });
    assert.deepEqual(
      slots.map(({ key, attempt }) => [key, attempt]),
      [
        ["Master/0", 1],
        ["Worker/0", 3],
      ],
    );
    const [, slot] = slots;
    assert.equal(slot?.pod?.uid, place.pod);
    assert.deepEqual(
      slot?.stale.map(({ uid }) => uid),
      place.stale ?? [],
    );
    assert.deepEqual([slot?.taken, slot?.foreign], [taken, foreign]);
    assert.deepEqual(
      strays.map(({ uid }) => uid),
      place.strays ?? [],
    );
  });
}

const part = (uid: string, parts: Partial<ConfigMapView> = {}) =>
  map(uid, { labels: { [LABEL.part]: "configmap" }, ...parts });

const maps: Record<string, { seen: readonly ConfigMapView[]; anchor?: string; parts?: readonly string[] }> = {
  nothing: { seen: [] },
  "an anchor": { seen: [map("a")], anchor: "a" },
  "the anchor of another admission": { seen: [map("a", { admission: 1 })] },
  "an anchor after one that is being deleted": { seen: [map("a", { deleting: true }), map("b")], anchor: "b" },
  "an anchor that is being deleted": { seen: [map("a", { deleting: true })], anchor: "a" },
  "parts without an anchor": { seen: [part("p", { controllerUid: "x" })], parts: ["p"] },
  "parts of the anchor, of another one and of none": {
    seen: [part("p", { controllerUid: "a" }), map("a"), part("q", { controllerUid: "x" }), part("r")],
    anchor: "a",
    parts: ["p", "r"],
  },
};
for (const [name, { seen, anchor, parts = [] }] of Object.entries(maps)) {
  test(`of the config maps of a cluster that shows ${name}, anchor and parts are told apart`, () => {
    const arranged = arrange({ configMaps: seen });
    assert.equal(arranged.anchor?.uid, anchor);
    assert.deepEqual(
      arranged.configMaps.map(({ uid }) => uid),
      parts,
    );
  });
}

test("a service belongs to the gang if it has its admission, and its anchor or no controller", () => {
  const services = [
    map("own", { controllerUid: "anchor" }),
    map("free"),
    map("old", { controllerUid: "anchor", admission: 1 }),
    map("other", { controllerUid: "x" }),
  ];
  assert.deepEqual(
    arrange({ services }).services.map(({ uid }) => uid),
    ["own", "free"],
  );
});

const group = (uid: string, parts: Partial<PodGroupView> = {}): PodGroupView => {
  return { ...map(uid, { controllerUid: "anchor" }), phase: "Pending", requestedSpec: "", ...parts };
};
const anchored = (scheduler: string) => [map("anchor", { labels: { [LABEL.gangScheduler]: scheduler } })];

const groups: Record<
  string,
  { seen: Partial<ObservedCluster>; scheduler: string | null; group?: string; delayed: boolean }
> = {
  "no scheduler": { seen: {}, scheduler: null, delayed: false },
  "a scheduler, before it has an anchor": {
    seen: { configMaps: [], gang: { scheduler: "volcano", groups: [] } },
    scheduler: "volcano",
    delayed: true,
  },
  "the scheduler that its anchor names": {
    seen: { configMaps: anchored("volcano"), gang: { scheduler: "volcano", groups: [group("g")] } },
    scheduler: "volcano",
    group: "g",
    delayed: true,
  },
  "the scheduler that its anchor names, without the others' groups": {
    seen: {
      configMaps: anchored("volcano"),
      gang: {
        scheduler: "volcano",
        groups: [group("old", { admission: 1 }), group("x", { controllerUid: "x" }), group("g", { phase: "Inqueue" })],
      },
    },
    scheduler: "volcano",
    group: "g",
    delayed: false,
  },
  "another scheduler than its anchor names": {
    seen: { configMaps: anchored("volcano"), gang: { scheduler: "scheduler-plugins", groups: [group("g")] } },
    scheduler: "volcano",
    delayed: false,
  },
  "no scheduler any more": { seen: { configMaps: anchored("volcano") }, scheduler: "volcano", delayed: false },
  "a scheduler that its anchor does not name": {
    seen: { gang: { scheduler: "volcano", groups: [group("g")] } },
    scheduler: null,
    delayed: false,
  },
};
for (const [name, { seen, scheduler, group: uid, delayed }] of Object.entries(groups)) {
  test(`a gang in a cluster with ${name}`, () => {
    const arranged = arrange(seen);
    assert.equal(arranged.gang.scheduler, scheduler);
    assert.equal(arranged.gang.group?.uid, uid);
    assert.equal(isDelayed(arranged), delayed);
  });
}
