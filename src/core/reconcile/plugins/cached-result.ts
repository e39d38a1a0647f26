import { compareText } from "../../../runtime/compare-text.ts";
import { canonicalJson } from "../../../runtime/json.ts";
import { awaitsResult, type Job } from "../../job/job.ts";
import { isTerminal } from "../../job/status.ts";
import type { RecordedInfo } from "../../job/task-info.ts";
import { kindOfJob } from "../../kinds/registry.ts";
import type { Decision } from "../decision.ts";
import { type Draft, finishDraft, type Inputs, type ReconcileConfig, reasonOf, startDraft } from "../decision-draft.ts";
import { finishJob } from "../finish-job.ts";

/** How often a job checks whether the job that it waits for has ended: no event reports it. */
const LOOK_MS = 5_000;

/** Whether an identical job has succeeded (`hit`), may still succeed (`pending`), or does not exist (`miss`). */
type CacheLookup = { readonly kind: "hit" | "pending"; readonly by: Job } | { readonly kind: "miss" };

/**
 * Finds a job with the result that this job needs, among jobs of its namespace with its cache key. Identical jobs have
 * the same kind, replica specs, kind spec and inputs. A job that has succeeded comes first. Otherwise the job waits for
 * one that has found no result itself, or for one that was created before it. So one of several identical jobs runs,
 * and no two wait for each other.
 */
export function lookUpCache(job: Job, others: readonly Job[]): CacheLookup {
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
  return (one.createTimeMs - other.createTimeMs || compareText(one.uid, other.uid)) < 0;
}

/**
 * Ends a waiting job with an earlier job's result, lets it wait for a job that may produce the result, or lets the
 * planner admit it. Until this is decided the planner does not consider the job.
 */
export function applyCacheLookup(
  job: Job,
  answer: CacheLookup,
  at: { readonly nowMs: number; readonly config: ReconcileConfig },
): Decision {
  const kind = kindOfJob(at.config.kinds, job);
  const inputs: Inputs = { job, kind, observed: [], refused: null, placement: null, ...at };
  const draft = startDraft(job);
  if (answer.kind === "hit") end(draft, inputs, answer.by);
  else if (answer.kind === "pending") wait(draft, inputs, answer.by);
  else miss(draft, inputs);
  return finishDraft(draft, job, at.nowMs);
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
  const reason = `reused the result of ${by.namespace}/${by.name}`;
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
  const { outputs } = by.status;
  const reused = outputs === undefined ? {} : { outputs };
  draft.status = { ...draft.status, info, ...reused, cache: { state: "hit", by: name } };
  finishJob(draft, inputs, {
    phase: "SUCCEEDED",
    message: `${job.spec.kind} ${job.name} has succeeded: it ${reason}.`,
  });
}

function wait(draft: Draft, { job, nowMs }: Inputs, by: Job): void {
  draft.recheckAtMs.push(nowMs + LOOK_MS);
  const name = `${by.namespace}/${by.name}`;
  const known = draft.status.cache;
  if (known?.state === "waiting" && known.by === name) return;
  const reason = `${name} may produce the same result`;
  const info = { ...NOTHING, phase: "WAITING_FOR_CACHE", reason, occurredAtMs: nowMs, reportedAtMs: nowMs } as const;
  draft.status = {
    ...draft.status,
    info,
    cache: { state: "waiting", by: name },
    waiting: { reason: "WaitingForCache", message: reason, sinceMs: draft.status.waiting?.sinceMs ?? nowMs },
  };
  const message = `${job.spec.kind} ${job.name} waits because ${reason}.`;
  draft.events.push({ type: "Normal", reason: reasonOf(job, "WaitingForCache"), message });
}

function miss(draft: Draft, { job, nowMs }: Inputs): void {
  const { info: _info, ...status } = draft.status;
  const waiting = { reason: "NotEvaluated", message: "the planner has not evaluated it yet", sinceMs: nowMs };
  draft.status = { ...status, cache: { state: "miss", by: "" }, waiting };
  const message = `No other job has the result that ${job.spec.kind} ${job.name} needs: it runs itself.`;
  draft.events.push({ type: "Normal", reason: reasonOf(job, "CacheMiss"), message });
}
