import { canonicalJson, objectAt, stringAt, stringMapAt } from "../../runtime/json.ts";
import { LABEL } from "../job/labels.ts";
import { keptMembers } from "../job/roles.ts";
import type { Admission } from "../job/status.ts";
import { ASKED_ANNOTATION } from "../pods/pod-group.ts";
import type { PodView } from "../pods/pod-view.ts";
import { type Arrangement, isDelayed, type Slot } from "./arrange.ts";
import {
  type Boarding,
  createAnchor,
  createParts,
  createPod,
  createPodGroup,
  createService,
  type PartAction,
  podGroupManifest,
} from "./build-objects.ts";
import type { Action, ConfigMapView, ObjectView } from "./decision.ts";
import { type Draft, type Inputs, OUTSTANDING_MS } from "./draft.ts";

const FOREIGN_RECHECK_MS_MAX = 60_000;

/** Creates what a live gang lacks and deletes what it has left behind: anchor first, then PodGroup, services and pods. */
export function tend(draft: Draft, inputs: Inputs, admission: Admission, arranged: Arrangement): void {
  const { job, kind, nowMs, config } = inputs;
  const { scheduler } = arranged.gang;
  const kept = { ...admission, members: keptMembers(job.spec, admission.members) };
  const draftJob = { ...job, status: draft.status };
  const boarding: Boarding = { job: draftJob, kind, admission: kept, build: config.build, scheduler };
  const doomed = doomedPods(arranged);
  const actions = [
    ...doomed.map((pod) => deletePod(boarding, pod)),
    ...strayServices(arranged).map((service) => deleteService(boarding, service)),
    ...creations(draft, boarding, arranged, nowMs),
  ];
  draft.actions.push(...actions);
  const pending = arranged.slots.some(({ pod, stale }) => pod?.deleting || stale.length > 0);
  if (actions.length > 0 || pending || isDelayed(arranged) || arranged.anchor?.deleting)
    draft.recheckAtMs.push(nowMs + OUTSTANDING_MS);
  if (arranged.slots.some(({ foreign }) => foreign)) draft.recheckAtMs.push(nowMs + foreignRecheckMs(draft, nowMs));
}

/** Pods without a place and of attempts that are over; with scope GANG those are the whole gang's once one has failed. */
function doomedPods(arranged: Arrangement): readonly PodView[] {
  return [...arranged.strays, ...arranged.slots.flatMap(({ stale }) => stale)].filter(({ deleting }) => !deleting);
}

function creations(draft: Draft, boarding: Boarding, arranged: Arrangement, nowMs: number): readonly Action[] {
  if (arranged.anchor?.deleting) return [];
  const anchor = arranged.anchor === null ? [createAnchor(boarding)] : [];
  const grouped = [...anchor, ...groupActions(boarding, arranged)];
  if (isDelayed(arranged)) return grouped;
  const served = new Set(arranged.services.map(({ name }) => name));
  const services = arranged.slots
    .filter(({ name }) => !served.has(name))
    .map((slot) => createService(boarding, slot))
    .filter((action) => action !== null);
  const gang = boarding.job.spec.runPolicy.restartScope === "GANG";
  const leaving = gang && arranged.slots.some(({ stale }) => stale.length > 0);
  const missing = arranged.slots.filter((slot) => slot.pod === null && !slot.taken);
  const due = leaving ? [] : missing.filter((slot) => isDue(draft, slot, nowMs));
  const parts = partActions(boarding, arranged, due.length > 0);
  return [...grouped, ...services, ...parts, ...due.map((slot) => createPod(boarding, slot))];
}

/**
 * Makes what the kind wants beside pods and services, and updates it as members come and go. Nobody watches any of it but config maps: the rest is
 * asked for before pods start, and whenever a config map is not seen as it is wanted. Config maps are written last, and so tell that the
 * rest was.
 */
function partActions(boarding: Boarding, { anchor, configMaps }: Arrangement, starting: boolean): readonly Action[] {
  const seen = new Map(configMaps.map((map) => [map.name, map]));
  const parts = createParts(boarding).map((action) => ({ action, state: stateOf(action, seen) }));
  const changed = anchor !== null && parts.some(({ state }) => state === "different");
  const settled = parts.every(({ state }) => state === "unwatched" || state === "same");
  return parts.flatMap(({ action, state }): readonly Action[] => {
    const updates = changed && (state === "unwatched" || state === "different");
    if (updates) return [{ ...action, kind: "updatePart" }];
    return state === "missing" || (state === "unwatched" && (starting || !settled)) ? [action] : [];
  });
}

/** How a part is seen; one that is on its way out is made again once it is gone. */
function stateOf(
  { manifest }: PartAction,
  seen: ReadonlyMap<string, ConfigMapView>,
): "unwatched" | "missing" | "same" | "different" {
  if (manifest["kind"] !== "ConfigMap") return "unwatched";
  const map = seen.get(stringAt(objectAt(manifest, "metadata"), "name") ?? "");
  if (map === undefined) return "missing";
  return map.deleting || map.data === canonicalJson(objectAt(manifest, "data")) ? "same" : "different";
}

/** Makes the gang's PodGroup, and changes it where something else is asked for now. */
function groupActions(boarding: Boarding, { gang }: Arrangement): readonly Action[] {
  if (gang.scheduler === null || !gang.isKept || gang.group?.deleting) return [];
  const manifest = podGroupManifest(boarding, gang.scheduler);
  if (gang.group === null) return [createPodGroup(boarding, manifest)];
  const asked = stringMapAt(objectAt(manifest, "metadata"), "annotations")[ASKED_ANNOTATION];
  if (gang.group.asked === asked) return [];
  const { cluster } = boarding.admission;
  const { name, uid } = gang.group;
  return [{ cluster, namespace: boarding.job.namespace, kind: "updatePodGroup", name, uid, manifest }];
}

function isDue(draft: Draft, slot: Slot, nowMs: number): boolean {
  const atMs = draft.status.attempts.notBeforeMs[slot.key] ?? 0;
  if (nowMs >= atMs) return true;
  draft.recheckAtMs.push(atMs);
  return false;
}

/** Services of indexes that are no members any more. */
function strayServices({ services, slots }: Arrangement): readonly ObjectView[] {
  const names = new Set(slots.map(({ name }) => name));
  return services.filter(({ name, labels, deleting }) => {
    return !deleting && !names.has(name) && labels[LABEL.replicaIndex] !== undefined;
  });
}

function deleteService({ admission, job }: Boarding, { name, uid }: ObjectView): Action {
  return { cluster: admission.cluster, namespace: job.namespace, kind: "deleteService", name, uid };
}

function deletePod({ admission, job }: Boarding, pod: PodView): Action {
  return { cluster: admission.cluster, namespace: job.namespace, kind: "deletePod", name: pod.name, uid: pod.uid };
}

/** Nothing tells us when a foreign pod goes: look again as long after as it has lasted so far, within bounds. */
function foreignRecheckMs(draft: Draft, nowMs: number): number {
  const lastedMs = nowMs - (draft.status.startTimeMs ?? nowMs);
  return Math.min(Math.max(lastedMs, OUTSTANDING_MS), FOREIGN_RECHECK_MS_MAX);
}
