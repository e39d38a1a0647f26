import type { Job } from "../core/job/job.ts";
import { isTerminal, type JobPhase, type JobStatus } from "../core/job/status.ts";
import { type Registry, servedName } from "../core/kinds/registry.ts";
import type { Action, Decision } from "../core/reconcile/decision.ts";
import type { Telemetry } from "./events.ts";

/** The telemetry that counts, and the kinds that name its series. */
export type CountPorts = { readonly telemetry: Telemetry; readonly kinds: Registry };

/** An action and how it ended. */
export type ActedLike = { readonly action: Action; readonly outcome: { readonly kind: string } };

type IntakeLike = {
  submit(submission: unknown): Promise<unknown>;
  submitAll(submissions: readonly unknown[]): Promise<readonly unknown[]>;
};

const OBJECTS: Readonly<Record<string, string>> = { Pod: "pod", Service: "service", PodGroup: "podgroup" };
const CHANGES: Readonly<Partial<Record<JobPhase, string>>> = {
  RESTARTING: "restarted",
  SUCCEEDED: "succeeded",
  FAILED: "failed",
  CANCELLED: "cancelled",
};

/** Counts created and deleted objects, and failed attempts to do so. Actions that found nothing to do do not count. */
export function countActions({ telemetry, kinds }: CountPorts, job: Job, acted: readonly ActedLike[]): void {
  const counts = new Map<string, { object: string; change: string; cluster: string; count: number }>();
  for (const { action, outcome } of acted) {
    const [, verb = "", what = ""] = /^(create|delete)(.+)$/.exec(action.kind) ?? [];
    const object = OBJECTS[what];
    if (object === undefined || outcome.kind === "already") continue;
    const change = outcome.kind === "failed" ? `${verb}_failed` : `${verb}d`;
    const { cluster } = action;
    const known = counts.get(`${cluster} ${object} ${change}`) ?? { object, change, cluster, count: 0 };
    counts.set(`${cluster} ${object} ${change}`, { ...known, count: known.count + 1 });
  }
  for (const count of counts.values()) telemetry.objectsChanged({ kind: servedName(kinds, job), ...count });
}

/** Counts the changes of a record: jobs that restart, end or are deleted, and pods whose failure it counts. */
export function countRecord({ telemetry, kinds }: CountPorts, job: Job, decision: Decision): void {
  const of = { kind: servedName(kinds, job), cluster: job.admissions.at(-1)?.cluster ?? null };
  if (decision.forget) telemetry.jobChanged({ ...of, change: "deleted" });
  if (decision.record === null) return;
  const { status } = decision.record;
  if (status.info !== undefined && status.info.phase !== job.status.info?.phase) {
    telemetry.taskPhaseReached({ kind: of.kind, phase: status.info.phase.toLowerCase() });
  }
  countPhase(telemetry, of, { before: job.status, after: status });
  const failed = failures(status.replicaStatuses) - failures(job.status.replicaStatuses);
  if (failed > 0) telemetry.objectsChanged({ ...of, object: "pod", change: "failed", count: failed });
}

function countPhase(
  telemetry: Telemetry,
  of: { readonly kind: string; readonly cluster: string | null },
  { before, after }: { readonly before: JobStatus; readonly after: JobStatus },
): void {
  const { phase, attempts, failure } = after;
  const change = CHANGES[phase];
  const restarts = sumOf(attempts.byReplica) > sumOf(before.attempts.byReplica);
  if (change === undefined || (phase === before.phase && !(phase === "RESTARTING" && restarts))) return;
  telemetry.jobChanged({ ...of, change });
  if (isTerminal(after)) telemetry.jobEnded({ phase, reason: failure?.code ?? "" });
}

/** Counts the jobs that an intake creates. */
export function countCreated<Intake extends IntakeLike>({ telemetry, kinds }: CountPorts, intake: Intake): Intake {
  const count = (outcome: unknown) => {
    const { kind, job } = outcome as { readonly kind?: string; readonly job?: Job };
    if (kind === "created" && job !== undefined) {
      telemetry.jobChanged({ kind: servedName(kinds, job), cluster: null, change: "created" });
    }
  };
  return {
    ...intake,
    submit: async (submission: unknown) => {
      const outcome = await intake.submit(submission);
      count(outcome);
      return outcome;
    },
    submitAll: async (submissions: readonly unknown[]) => {
      const outcomes = await intake.submitAll(submissions);
      for (const outcome of outcomes) count(outcome);
      return outcomes;
    },
  };
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

function failures(statuses: Job["status"]["replicaStatuses"]): number {
  return sumOf(Object.fromEntries(Object.entries(statuses).map(([role, { failed }]) => [role, failed])));
}
