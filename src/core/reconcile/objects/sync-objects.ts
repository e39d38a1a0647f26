import { canonicalJson, objectAt, stringAt, stringMapAt } from "../../../runtime/json.ts";
import { append } from "../../../runtime/lists.ts";
import { LABEL } from "../../job/labels.ts";
import { placesIn } from "../../job/placement/placement.ts";
import { keptMembers } from "../../job/roles.ts";
import type { GangAdmission, ReplicaKey } from "../../job/status.ts";
import type { PodReplica } from "../../pods/build/build-pod.ts";
import { REQUESTED_SPEC_ANNOTATION } from "../../pods/build/pod-group.ts";
import { hasEnded, type PodView } from "../../pods/read/pod-view.ts";
import { type Arrangement, isDelayed, type Slot } from "../arrange-gang.ts";
import type { Action } from "../decision.ts";
import { type Draft, type Inputs, OUTSTANDING_MS } from "../decision-draft.ts";
import type { JudgedArrangement } from "../judge-pods.ts";
import type { ConfigMapView, ObjectView } from "../observed.ts";
import { doomedByRepair } from "../repair-placement.ts";
import {
  type BuildTarget,
  createAnchor,
  createGangService,
  createParts,
  createPod,
  createPodGroup,
  createService,
  type PartAction,
  podGroupManifest,
} from "./build-objects.ts";
import { choosePods, type PodChoice } from "./pod-sizes.ts";

const FOREIGN_RECHECK_MS_MAX = 60_000;
/** A step creates a bounded part of the pods. By then a watch shows most of them. */
const MORE_PODS_MS = 1_000;

export type TooLargePod = Extract<PodChoice, { readonly kind: "tooLarge" }>;

/**
 * Creates the objects that a live gang lacks, and deletes those that it no longer needs. The anchor comes first, then
 * the PodGroup, services and pods. `waiting`: members that get no pod yet. Returns a pod that is too large to be built;
 * then nothing is created.
 */
export function syncObjects(
  draft: Draft,
  inputs: Inputs,
  admission: GangAdmission,
  { arranged, waiting }: { readonly arranged: JudgedArrangement; readonly waiting: ReadonlySet<ReplicaKey> },
): "synced" | TooLargePod {
  const { job, kind, nowMs, config } = inputs;
  const { scheduler } = arranged.gang;
  const kept = { ...admission, members: keptMembers(job, admission) };
  const draftJob = { ...job, status: draft.status };
  const places = placesIn(inputs.placement);
  const { build } = config;
  const nodeLabels = nodeLabelsIn(arranged);
  const target: BuildTarget = { job: draftJob, kind, admission: kept, build, scheduler, places, nodeLabels };
  const due = duePods(draft, inputs, { admission: kept, arranged }).filter(({ key }) => !waiting.has(key));
  const chosen = choosePods(target, due);
  if (chosen.kind === "tooLarge") return chosen;
  if (chosen.more) draft.recheckAtMs.push(nowMs + MORE_PODS_MS);
  const actions = [
    ...[...doomedPods(arranged), ...doomedByRepair(arranged.slots, places)].map((pod) => deletePod(target, pod)),
    ...strayServices(arranged).map((service) => deleteService(target, service)),
    ...creations(target, arranged, chosen.replicas),
  ];
  append(draft.actions, actions);
  const pending = arranged.slots.some(({ pod, stale }) => pod?.deleting || stale.length > 0);
  if (actions.length > 0 || pending || isDelayed(arranged) || arranged.anchor?.deleting)
    draft.recheckAtMs.push(nowMs + OUTSTANDING_MS);
  if (arranged.slots.some(({ foreign }) => foreign)) draft.recheckAtMs.push(nowMs + foreignRecheckMs(draft, nowMs));
  return "synced";
}

/** The members whose pods are missing and may be created now. */
function duePods(
  draft: Draft,
  { job, nowMs }: Inputs,
  { admission, arranged }: { readonly admission: GangAdmission; readonly arranged: Arrangement },
): readonly Slot[] {
  if (arranged.anchor?.deleting || isDelayed(arranged)) return [];
  const gang = job.spec.runPolicy.restartScope === "GANG" || admission.partial === "RESTART";
  if (gang && arranged.slots.some(({ stale }) => stale.length > 0)) return [];
  const { attempt: restart = 0 } = draft.status.attempts.restarts ?? {};
  // Members of two attempts of the gang would find each other.
  if (arranged.slots.some(({ stale }) => stale.some((pod) => pod.attempt < restart))) return [];
  const missing = arranged.slots.filter(({ pod, taken, ended }) => pod === null && !taken && ended === null);
  return missing.filter((slot) => isDue(draft, slot, nowMs));
}

/**
 * Pods without a slot, pods of earlier attempts, and pods of members that had ended before: a late call made those.
 * With scope GANG one failure raises the attempt of the whole gang.
 */
function doomedPods({ strays, slots }: JudgedArrangement): readonly PodView[] {
  const late = slots.filter(({ ended, pod }) => ended !== null && pod !== null && !hasEnded(pod));
  const doomed = [...strays, ...slots.flatMap(({ stale }) => stale), ...late.flatMap(({ pod }) => pod ?? [])];
  return doomed.filter(({ deleting }) => !deleting);
}

function creations(target: BuildTarget, arranged: Arrangement, due: readonly PodReplica[]): readonly Action[] {
  if (arranged.anchor?.deleting) return [];
  const anchor = arranged.anchor === null ? [createAnchor(target)] : [];
  const grouped = [...anchor, ...groupActions(target, arranged)];
  if (isDelayed(arranged)) return grouped;
  const served = new Set(arranged.services.map(({ name }) => name));
  const services = arranged.slots
    .filter(({ name }) => !served.has(name))
    .map((slot) => createService(target, slot))
    .filter((action) => action !== null);
  const own = createGangService(target);
  const ofGang = own === null || served.has(nameOf(own)) ? [] : [own];
  const parts = partActions(target, arranged, due.length > 0);
  return [...grouped, ...ofGang, ...services, ...parts, ...due.map((replica) => createPod(target, replica))];
}

function nameOf({ manifest }: PartAction): string {
  return stringAt(objectAt(manifest, "metadata"), "name") ?? "";
}

/** The labels of the nodes of a gang's pods, by the parts that they do. */
function nodeLabelsIn({ slots }: Arrangement): NonNullable<BuildTarget["nodeLabels"]> {
  return (role, part) => {
    const slot = slots.find((one) => one.role === role && one.part === part);
    return slot?.pod?.deleting === false ? (slot.pod.nodeLabels ?? null) : null;
  };
}

/**
 * Creates the kind's parts, and updates them as members come and go. Only config maps are watched. The other parts are
 * requested before pods start, and whenever a config map is missing or outdated. Config maps are written last, so an
 * up-to-date one shows that the other parts are too, or, if a change was taken back after half of its writes, that they
 * name members which are gone: until the next pod starts. Secrets and claims are made once and never updated.
 */
function partActions(target: BuildTarget, { anchor, configMaps }: Arrangement, starting: boolean): readonly Action[] {
  const seen = new Map(configMaps.map((map) => [map.name, map]));
  const parts = createParts(target).map((action) => ({ action, state: stateOf(action, seen) }));
  const changed = anchor !== null && parts.some(({ state }) => state === "different");
  const settled = parts.every(({ state }) => state === "unwatched" || state === "once" || state === "same");
  return parts.flatMap(({ action, state }): readonly Action[] => {
    const updates = changed && (state === "unwatched" || state === "different");
    if (updates) return [{ ...action, kind: "updatePart" }];
    const isUnseen = state === "unwatched" || state === "once";
    return state === "missing" || (isUnseen && (starting || !settled)) ? [action] : [];
  });
}

/** The state of a part. One that is being deleted is created again once it is gone. */
function stateOf(
  { manifest }: PartAction,
  seen: ReadonlyMap<string, ConfigMapView>,
): "unwatched" | "once" | "missing" | "same" | "different" {
  const { kind } = manifest;
  if (kind === "Secret" || kind === "PersistentVolumeClaim") return "once";
  if (kind !== "ConfigMap") return "unwatched";
  const map = seen.get(stringAt(objectAt(manifest, "metadata"), "name") ?? "");
  if (map === undefined) return "missing";
  return map.deleting || map.data === canonicalJson(objectAt(manifest, "data")) ? "same" : "different";
}

/** Creates the gang's PodGroup, or updates it if its spec has changed. */
function groupActions(target: BuildTarget, { gang }: Arrangement): readonly Action[] {
  if (gang.scheduler === null || !gang.isKept || gang.group?.deleting) return [];
  const manifest = podGroupManifest(target, gang.scheduler);
  if (gang.group === null) return [createPodGroup(target, manifest)];
  const requestedSpec = stringMapAt(objectAt(manifest, "metadata"), "annotations")[REQUESTED_SPEC_ANNOTATION];
  if (gang.group.requestedSpec === requestedSpec) return [];
  const { cluster } = target.admission;
  const { name, uid } = gang.group;
  return [{ cluster, namespace: target.job.namespace, kind: "updatePodGroup", name, uid, manifest }];
}

function isDue(draft: Draft, slot: Slot, nowMs: number): boolean {
  const atMs = draft.status.attempts.notBeforeMs[slot.key] ?? 0;
  if (nowMs >= atMs) return true;
  draft.recheckAtMs.push(atMs);
  return false;
}

/** Services of indexes that are no longer members. */
function strayServices({ services, slots }: Arrangement): readonly ObjectView[] {
  const names = new Set(slots.map(({ name }) => name));
  return services.filter(({ name, labels, deleting }) => {
    return !deleting && !names.has(name) && labels[LABEL.replicaIndex] !== undefined;
  });
}

function deleteService({ admission, job }: BuildTarget, { name, uid }: ObjectView): Action {
  return { cluster: admission.cluster, namespace: job.namespace, kind: "deleteService", name, uid };
}

function deletePod({ admission, job }: BuildTarget, pod: PodView): Action {
  return { cluster: admission.cluster, namespace: job.namespace, kind: "deletePod", name: pod.name, uid: pod.uid };
}

/** When to look again at a foreign pod, because no event reports its end: after the time since the start, bounded. */
function foreignRecheckMs(draft: Draft, nowMs: number): number {
  const lastedMs = nowMs - (draft.status.startTimeMs ?? nowMs);
  return Math.min(Math.max(lastedMs, OUTSTANDING_MS), FOREIGN_RECHECK_MS_MAX);
}
