/**
 * Gangs of kinds that are not elastic, while they have fewer members than their job has replicas. It serves users whose
 * programs must all be told the same number of peers: two halves with two numbers would train nothing.
 *
 *   KEEP:    admitted with some ─▶ told all, waits ─▶ grown to all, all have run ─▶ as any gang
 *                                        └─ start timeout ─▶ undone ─▶ admitted with all or not at all
 *   RESTART: admitted with some ─▶ told some, works ─▶ grown to all ─▶ restarts as a whole, told all ─▶ as any gang
 */
import type { Job } from "../job/job.ts";
import { firstMembers, memberCount } from "../job/roles.ts";
import { totalReplicas } from "../job/spec.ts";
import type { Admission, GangAdmission } from "../job/status.ts";
import { type Arrangement, attemptOf } from "./arrange-gang.ts";
import { changeAdmission, type Draft, type Inputs, reasonOf } from "./decision-draft.ts";

/** How many members of each type the programs of an admission are told. */
export function toldMembers(
  { spec }: Pick<Job, "spec">,
  { members, partial, told }: Pick<Admission, "members" | "partial" | "told">,
): Readonly<Record<string, number>> {
  if (partial === "RESTART") return told ?? members;
  if (partial === undefined) return members;
  return firstMembers(spec, totalReplicas(spec));
}

/** How many members must run: all replicas while a gang that is told their number has not run as a whole. */
export function membersNeeded({ spec }: Pick<Job, "spec">, { partial }: Pick<Admission, "partial">): number {
  return partial === "KEEP" ? totalReplicas(spec) : spec.runPolicy.schedulingPolicy.minAvailable;
}

/** The admission of a gang that runs: without the rule for a part, once it has all members and was told so. */
export function withoutPartial({ spec }: Pick<Job, "spec">, admission: GangAdmission): GangAdmission {
  const { partial: _done, told, ...whole } = admission;
  const isWhole = memberCount(admission.members) === totalReplicas(spec);
  return isWhole && memberCount(told ?? admission.members) === totalReplicas(spec) ? whole : admission;
}

/** Restarts a gang as a whole that was told fewer members than it has now. Counts no failure. */
export function restartGrown(
  draft: Draft,
  { job }: Inputs,
  { admission, slots }: { readonly admission: GangAdmission; readonly slots: Arrangement["slots"] },
): GangAdmission {
  const { partial, told, members } = admission;
  if (partial !== "RESTART" || told === undefined || memberCount(told) >= memberCount(members)) return admission;
  const { attempts } = draft.status;
  const next = slots.map(({ key }) => [key, attemptOf(attempts, key) + 1] as const);
  draft.status = {
    ...draft.status,
    attempts: { ...attempts, byReplica: { ...attempts.byReplica, ...Object.fromEntries(next) }, notBeforeMs: {} },
  };
  const count = memberCount(members);
  const message = `${job.spec.kind} ${job.name} is restarting because it has grown to ${count} members.`;
  draft.events.push({ type: "Normal", reason: reasonOf(job, "Restarting"), message });
  const restarted = { ...admission, told: members };
  changeAdmission(draft, restarted);
  return restarted;
}
