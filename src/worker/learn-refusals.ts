import type { Job } from "../core/job/job.ts";
import { LABEL } from "../core/job/labels.ts";
import { type PodRefusal, readRefusal } from "../core/pods/read/refusal.ts";
import { remedyOf } from "../core/pods/read/refusal-remedy.ts";
import type { Action } from "../core/reconcile/decision.ts";
import { actionName } from "../core/reconcile/problems/action-name.ts";
import { objectAt, stringMapAt } from "../runtime/json.ts";
import { type Acted, failureReasonOf, isCreate } from "./carry-out.ts";
import type { JobMemory } from "./job-memory.ts";
import type { HeldAction, QuotaMemory } from "./quota-memory.ts";

/** The outcome of a round of actions: the worst one counts. */
type Learned =
  | { readonly kind: "fine" }
  /** A pod is refused for good: the next step records that. */
  | { readonly kind: "refused" }
  /** To be tried again, no sooner than the server has asked. */
  | { readonly kind: "failed"; readonly waitMs: number }
  /** Held back for this long, since a quota would refuse it or a server has asked us to wait. */
  | { readonly kind: "held"; readonly waitMs: number };

type Memories = { readonly memory: JobMemory; readonly quotas: QuotaMemory };

/** Remembers why API servers refused objects of a job. */
export function learnRefusals(
  { memory, quotas }: Memories,
  job: Job,
  { acted, held }: { readonly acted: readonly Acted[]; readonly held: readonly HeldAction[] },
  monotonicMs: number,
): Learned {
  for (const { action, outcome } of acted) {
    if (action.kind === "createPod" && outcome.kind === "done") quotas.made(action, monotonicMs);
  }
  const told = acted.flatMap(refusalOf);
  for (const { action, refusal, message, retryAfterMs } of told) {
    if (retryAfterMs !== null) quotas.askedToWait(action, retryAfterMs, monotonicMs);
    if (refusal.kind === "quota") quotas.refused(action, { ceilings: refusal.ceilings, message }, monotonicMs);
  }
  rememberRefusal(memory, job, { acted, told, held });
  return worstOf(told, { quotas, held, monotonicMs });
}

/** Remembers for the job's status why an object was not created. A refusal for good counts before any other. */
function rememberRefusal(
  memory: JobMemory,
  { uid }: Job,
  of: {
    readonly acted: readonly Acted[];
    readonly told: readonly RefusedAction[];
    readonly held: readonly HeldAction[];
  },
): void {
  const creates = of.told.filter(({ action }) => isCreate(action));
  const refused = creates.find(({ refusal }) => refusal.kind === "permanent") ?? creates[0];
  const [held] = of.held;
  if (refused !== undefined) {
    const code = refused.refusal.kind === "permanent" ? refused.refusal.code : null;
    memory.refuse(uid, { ...objectOf(refused.action), ...withRemedy(refused.remedy), code, message: refused.message });
  } else if (held !== undefined) {
    const remedy = held.isQuota ? remedyOf({ reason: "Forbidden", message: held.why }) : null;
    memory.refuse(uid, { ...objectOf(held.action), ...withRemedy(remedy), code: null, message: held.why });
  } else if (of.acted.some(({ action }) => isCreate(action))) {
    memory.refuseNothing(uid);
  }
}

/** Decides from all outcomes what the job does next. */
function worstOf(
  told: readonly RefusedAction[],
  of: { readonly quotas: QuotaMemory; readonly held: readonly HeldAction[]; readonly monotonicMs: number },
): Learned {
  const { quotas, held, monotonicMs } = of;
  if (told.some(({ refusal }) => refusal.kind === "permanent")) return { kind: "refused" };
  const [failed] = told.filter(({ refusal }) => refusal.kind === "transient");
  if (failed !== undefined) return { kind: "failed", waitMs: quotas.aloneMs(failed.action, monotonicMs) };
  const [waiting] = [...held, ...told];
  return waiting === undefined
    ? { kind: "fine" }
    : { kind: "held", waitMs: quotas.waitMs(waiting.action, monotonicMs) };
}

type RefusedAction = ReturnType<typeof refusalOf>[number];

/** Why an action was refused. Refusals are told apart only for pods; any other failure is transient. */
function refusalOf({ action, outcome }: Acted) {
  if (outcome.kind !== "failed") return [];
  const refusal: PodRefusal = action.kind === "createPod" ? readRefusal(outcome) : { kind: "transient" };
  const { message, retryAfterMs = null } = outcome;
  return [{ action, refusal, remedy: remedyOf(outcome), message, retryAfterMs }];
}

function withRemedy(remedy: string | null): { readonly remedy?: string } {
  return remedy === null ? {} : { remedy };
}

function objectOf(action: Action) {
  const labels = stringMapAt("manifest" in action ? objectAt(action.manifest, "metadata") : {}, "labels");
  return {
    name: actionName(action),
    reason: failureReasonOf(action),
    admission: Number(labels[LABEL.admission]),
    attempt: Number(labels[LABEL.attempt] ?? 0),
  };
}
