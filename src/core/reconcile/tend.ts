import type { Admission } from "../job/status.ts";
import type { PodView } from "../pods/pod-view.ts";
import type { Arrangement, Slot } from "./arrange.ts";
import { type Boarding, createAnchor, createPod, createService } from "./build-objects.ts";
import type { Action } from "./decision.ts";
import { type Draft, type Inputs, OUTSTANDING_MS } from "./draft.ts";

const FOREIGN_RECHECK_MS_MAX = 60_000;

/** Creates what a live gang lacks and deletes what it has left behind: anchor first, then services, then pods. */
export function tend(draft: Draft, inputs: Inputs, admission: Admission, arranged: Arrangement): void {
  const { job, kind, nowMs, config } = inputs;
  const boarding: Boarding = { job: { ...job, status: draft.status }, kind, admission, build: config.build };
  const doomed = doomedPods(arranged);
  const actions = [...doomed.map((pod) => deletePod(boarding, pod)), ...creations(draft, boarding, arranged, nowMs)];
  draft.actions.push(...actions);
  const pending = arranged.slots.some(({ pod, stale }) => pod?.deleting || stale.length > 0);
  if (actions.length > 0 || pending || arranged.anchor?.deleting) draft.recheckAtMs.push(nowMs + OUTSTANDING_MS);
  if (arranged.slots.some(({ foreign }) => foreign)) draft.recheckAtMs.push(nowMs + foreignRecheckMs(draft, nowMs));
}

/** Pods without a place and of attempts that are over; with scope GANG those are the whole gang's once one has failed. */
function doomedPods(arranged: Arrangement): readonly PodView[] {
  return [...arranged.strays, ...arranged.slots.flatMap(({ stale }) => stale)].filter(({ deleting }) => !deleting);
}

function creations(draft: Draft, boarding: Boarding, arranged: Arrangement, nowMs: number): readonly Action[] {
  if (arranged.anchor?.deleting) return [];
  const anchor = arranged.anchor === null ? [createAnchor(boarding)] : [];
  const served = new Set(arranged.services.map(({ name }) => name));
  const services = arranged.slots
    .filter(({ name }) => !served.has(name))
    .map((slot) => createService(boarding, slot))
    .filter((action) => action !== null);
  const gang = boarding.job.spec.runPolicy.restartScope === "GANG";
  const leaving = gang && arranged.slots.some(({ stale }) => stale.length > 0);
  const missing = arranged.slots.filter((slot) => slot.pod === null && !slot.taken);
  const due = leaving ? [] : missing.filter((slot) => isDue(draft, slot, nowMs));
  return [...anchor, ...services, ...due.map((slot) => createPod(boarding, slot))];
}

function isDue(draft: Draft, slot: Slot, nowMs: number): boolean {
  const atMs = draft.status.attempts.notBeforeMs[slot.key] ?? 0;
  if (nowMs >= atMs) return true;
  draft.recheckAtMs.push(atMs);
  return false;
}

function deletePod({ admission, job }: Boarding, pod: PodView): Action {
  return { cluster: admission.cluster, namespace: job.namespace, kind: "deletePod", name: pod.name, uid: pod.uid };
}

/** Nothing tells us when a foreign pod goes: look again as long after as it has lasted so far, within bounds. */
function foreignRecheckMs(draft: Draft, nowMs: number): number {
  const lastedMs = nowMs - (draft.status.startTimeMs ?? nowMs);
  return Math.min(Math.max(lastedMs, OUTSTANDING_MS), FOREIGN_RECHECK_MS_MAX);
}
