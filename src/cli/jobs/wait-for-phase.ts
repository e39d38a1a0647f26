/** Waits until jobs are in a phase, as `kubectl wait --for=condition=…` does. */

import { type Job, JobPhase } from "../../gen/gangway/v1/job_pb.ts";
import { abortAfter } from "../../runtime/abort-after.ts";
import { linkedController } from "../../runtime/linked-controller.ts";
import { parsePhase, qualifiedName } from "../output/job-text.ts";
import { phaseWord, TERMINAL } from "../output/job-words.ts";
import type { Run } from "../run/run-command.ts";
import { CommandFailure, EXIT, timeoutFailure, usageFailure } from "../shell/exit.ts";
import { filterOfJobs } from "./job-filter.ts";
import { type JobStreamEvent, streamJobs } from "./stream-jobs.ts";

/** The goal of a wait: the end of jobs, their deletion, or a phase. */
export type WaitGoal =
  | { readonly kind: "end" }
  | { readonly kind: "deletion" }
  | { readonly kind: "phase"; readonly phase: JobPhase };

/** Reads `condition=Succeeded`, `delete`, `jsonpath={.status.phase}=JOB_PHASE_RUNNING`, or a phase. */
export function parseGoal(text: string): WaitGoal {
  const [, ofPath] = /^jsonpath=\{?\.status\.phase\}?=(\w+)$/.exec(text) ?? [];
  const word = (ofPath ?? text.replace(/^condition=/i, "").replace(/=true$/i, "")).toLowerCase();
  if (word === "delete") return { kind: "deletion" };
  if (word === "complete" || word === "ended" || word === "succeeded") return { kind: "end" };
  if (/[=./]/.test(word))
    throw usageFailure(`--for must be delete, a phase, condition=PHASE or jsonpath={.status.phase}=PHASE, not ${text}`);
  return { kind: "phase", phase: parsePhase(word) };
}

/** A job in these phases has been in the earlier ones. */
const PROGRESS: readonly JobPhase[] = [
  JobPhase.WAITING,
  JobPhase.ADMITTED,
  JobPhase.STARTING,
  JobPhase.RUNNING,
  JobPhase.SUCCEEDED,
];

function hasReached(job: Job, wanted: JobPhase): boolean {
  const phase = job.status?.phase ?? JobPhase.UNSPECIFIED;
  const [at, goal] = [PROGRESS.indexOf(phase), PROGRESS.indexOf(wanted)];
  return phase === wanted || (goal >= 0 && at > goal);
}

type PhaseWait = {
  readonly phase: JobPhase;
  /** Null: no timeout. */
  readonly timeoutMs: number | null;
  readonly report: (line: string) => void;
};

/** Returns exit status 1 if a job ended or was deleted before it was in the phase. Fails with 124 after the timeout. */
export async function waitForPhase(run: Run, jobs: readonly Job[], wait: PhaseWait): Promise<number> {
  const pending = new Map(jobs.map((job) => [job.metadata?.uid ?? "", qualifiedName(job)]));
  using stop = linkedController(run.deps.signal);
  abortAfter(run.deps.clock, wait.timeoutMs, stop);
  const seen = new Set<string>();
  let failed = 0;
  const events = streamJobs(run, { filter: filterOfJobs(jobs), retriesFirstCall: true, signal: stop.signal });
  for await (const event of events) {
    for (const { uid, line, isReached } of stepsOf(event, { pending, seen, phase: wait.phase })) {
      wait.report(line);
      pending.delete(uid);
      if (!isReached) failed += 1;
    }
    if (pending.size === 0) return failed > 0 ? EXIT.jobFailed : EXIT.ok;
  }
  throw endOfWait(run, [...pending.values()], wait.phase);
}

function endOfWait({ deps }: Run, left: readonly string[], phase: JobPhase): CommandFailure {
  if (deps.signal.aborted) return new CommandFailure(EXIT.interrupted, []);
  return timeoutFailure(`not ${phaseWord(phase)} yet: ${left.join(", ")}`);
}

type Step = { readonly uid: string; readonly line: string; readonly isReached: boolean };

function stepsOf(
  event: JobStreamEvent,
  of: { readonly pending: ReadonlyMap<string, string>; readonly seen: Set<string>; readonly phase: JobPhase },
): readonly Step[] {
  const { pending, seen, phase } = of;
  const gone = (uid: string): Step => ({ uid, line: `${pending.get(uid)} was deleted`, isReached: false });
  if (event.kind === "relisting") seen.clear();
  if (event.kind === "listed") return [...pending.keys()].filter((uid) => !seen.has(uid)).map(gone);
  if (event.kind !== "changed" && event.kind !== "deleted") return [];
  const uid = event.job.metadata?.uid ?? "";
  const name = pending.get(uid);
  if (name === undefined) return [];
  seen.add(uid);
  if (hasReached(event.job, phase)) return [{ uid, line: `${name} is or was ${phaseWord(phase)}`, isReached: true }];
  const now = event.job.status?.phase ?? JobPhase.UNSPECIFIED;
  if (event.kind === "deleted") return [gone(uid)];
  return TERMINAL.includes(now) ? [{ uid, line: `${name} has ended: ${phaseWord(now)}`, isReached: false }] : [];
}
