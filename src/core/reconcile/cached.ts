import { canonicalJson } from "../../runtime/json.ts";
import { awaitsResult } from "../job/cached.ts";
import type { Job } from "../job/job.ts";
import { isTerminal } from "../job/status.ts";
import type { RecordedInfo } from "../job/task-info.ts";
import { kindOfJob } from "../kinds/registry.ts";
import type { Decision } from "./decision.ts";
import { type Draft, finishDraft, type Inputs, type ReconcileConfig, reasonOf, startDraft } from "./draft.ts";
import { finish } from "./finish.ts";

/** Nobody tells a job that the one it waits for has ended: it looks again after so long. */
const LOOK_MS = 5_000;

/** Who answers for a job: one that has succeeded, one that is still to, or nobody. */
type Answer = { readonly kind: "hit" | "pending"; readonly by: Job } | { readonly kind: "miss" };

/**
 * Finds who answers for a job among the jobs of its namespace with its cache key: of the same kind, replica specs and kind spec. A result that is
 * there comes first; then a job that is on its way to it, which is one that found no result itself, or else one made before this. So of jobs
 * that are alike one runs, and no two wait for each other.
 */
export function answerFor(job: Job, others: readonly Job[]): Answer {
  const payload = payloadOf(job);
  const alike = others.filter((other) => {
    const goes = other.cancel === null && other.deleteTimeMs === null && other.status.phase !== "SUSPENDED";
    return other.uid !== job.uid && (goes || isTerminal(other.status)) && payloadOf(other) === payload;
  });
  const hit = alike.find(({ status, deleteTimeMs }) => status.phase === "SUCCEEDED" && deleteTimeMs === null);
  if (hit !== undefined) return { kind: "hit", by: hit };
  const ahead = alike.find((other) => !isTerminal(other.status) && (!awaitsResult(other) || isBefore(other, job)));
  return ahead === undefined ? { kind: "miss" } : { kind: "pending", by: ahead };
}

function payloadOf({ namespace, spec: { kind, replicaSpecs, kindSpec, inputs, runPolicy } }: Job): string {
  return canonicalJson([namespace, kind, replicaSpecs, kindSpec, inputs ?? {}, runPolicy.cacheKey ?? ""]);
}

function isBefore(one: Job, other: Job): boolean {
  if (one.createTimeMs !== other.createTimeMs) return one.createTimeMs < other.createTimeMs;
  return one.uid < other.uid;
}

/** Ends a waiting job with an earlier one's result, lets it wait for one that is on its way, or lets it board. Its planner leaves it alone until then. */
export function takeAnswer(
  job: Job,
  answer: Answer,
  at: { readonly nowMs: number; readonly config: ReconcileConfig },
): Decision {
  const kind = kindOfJob(job);
  const inputs: Inputs = { job, kind, observed: [], refused: null, ...at };
  const draft = startDraft(job);
  if (answer.kind === "hit") end(draft, inputs, answer.by);
  else if (answer.kind === "pending") wait(draft, inputs, answer.by);
  else miss(draft, inputs);
  return finishDraft(draft, job);
}

const NOTHING = {
  version: 0,
  logs: [],
  externalResources: [],
  additionalReasons: [],
  customInfo: null,
} as const;

function end(draft: Draft, inputs: Inputs, by: Job): void {
  const { job, nowMs } = inputs;
  const reason = `the result is that of ${by.namespace}/${by.name}`;
  const made = by.status.info;
  const source = {
    externalId: by.uid,
    index: 0,
    retryAttempt: 0,
    phase: "SUCCESS",
    cacheStatus: "HIT",
    logs: made?.logs ?? [],
  } as const;
  const info: RecordedInfo = {
    ...NOTHING,
    phase: "SUCCESS",
    reason,
    externalResources: [source],
    customInfo: made?.customInfo ?? null,
    occurredAtMs: by.status.completionTimeMs,
    reportedAtMs: nowMs,
  };
  const name = `${by.namespace}/${by.name}`;
  draft.status = { ...draft.status, info, cache: { state: "hit", by: name } };
  finish(draft, inputs, { phase: "SUCCEEDED", message: `${job.spec.kind} ${job.name} has succeeded: ${reason}.` });
}

function wait(draft: Draft, { job, nowMs }: Inputs, by: Job): void {
  draft.recheckAtMs.push(nowMs + LOOK_MS);
  const name = `${by.namespace}/${by.name}`;
  const known = draft.status.cache;
  if (known?.state === "waiting" && known.by === name) return;
  const reason = `${name} is about to make the same result`;
  const told = { ...NOTHING, phase: "WAITING_FOR_CACHE", reason, occurredAtMs: nowMs, reportedAtMs: nowMs } as const;
  draft.status = {
    ...draft.status,
    info: told,
    cache: { state: "waiting", by: name },
    waiting: { reason: "WaitingForCache", message: reason, sinceMs: draft.status.waiting?.sinceMs ?? nowMs },
  };
  const message = `${job.spec.kind} ${job.name} waits: ${reason}.`;
  draft.events.push({ type: "Normal", reason: reasonOf(job, "WaitingForCache"), message });
}

function miss(draft: Draft, { job, nowMs }: Inputs): void {
  const { info: _info, ...status } = draft.status;
  const waiting = { reason: "NotEvaluated", message: "the planner has not looked at it yet", sinceMs: nowMs };
  draft.status = { ...status, cache: { state: "miss", by: "" }, waiting };
  const message = `No earlier job has made the result of ${job.spec.kind} ${job.name}.`;
  draft.events.push({ type: "Normal", reason: reasonOf(job, "CacheMiss"), message });
}
