import type { Admission } from "../job/status.ts";
import type { PluginRecord } from "../job/task-info.ts";
import { changeAdmission, type Draft, type Inputs, reasonOf } from "./draft.ts";
import { endByDeadline } from "./follow.ts";

/** What a plugin has before it has put anything. */
export const NO_STATE = { version: 0, value: null } as const;

/**
 * A job without pods as far as its record decides: which call of its plugin is due is recorded before the call is made, and what the call came to
 * after it (see `afterCall`). A crash in between repeats the call, under the same name.
 */
export const serviceRunner = { handle, abort, finalize };

function handle(draft: Draft, inputs: Inputs, admission: Admission): void {
  const { plugin } = draft.status;
  if (plugin === undefined || plugin.admission !== admission.number) start(draft, inputs, admission);
  endByDeadline(draft, inputs);
}

/** Names the attempt and the first call, before anything is started at the service. */
function start(draft: Draft, { job, nowMs }: Inputs, admission: Admission): void {
  const first: PluginRecord = {
    admission: admission.number,
    attempt: draft.status.plugin?.attempt ?? 1,
    stage: "handle",
    state: NO_STATE,
    failedCalls: 0,
    notBeforeMs: nowMs,
  };
  const { info: _info, ...status } = draft.status;
  draft.status = {
    ...status,
    phase: "STARTING",
    startTimeMs: status.startTimeMs ?? nowMs,
    waiting: null,
    plugin: first,
  };
  const message = `${job.spec.kind} ${job.name} is starting.`;
  draft.events.push({ type: "Normal", reason: reasonOf(job, "Starting"), message });
  changeAdmission(draft, { ...admission, belowMinSinceMs: null });
  draft.recheckAtMs.push(nowMs);
}

/** What its plugin has not ended itself is aborted. */
function abort(draft: Draft, { nowMs }: Inputs): void {
  const { plugin } = draft.status;
  if (plugin === undefined || isLive(draft, plugin.admission) || plugin.stage !== "handle") return;
  const { lastFailure: _lastFailure, ...rest } = plugin;
  draft.status = { ...draft.status, plugin: { ...rest, stage: "abort", failedCalls: 0, notBeforeMs: nowMs } };
}

/** The tokens are free and nothing is left once the plugin has finalized. */
function finalize(draft: Draft, { nowMs }: Inputs): void {
  const { plugin } = draft.status;
  if (plugin !== undefined && isAwaited(plugin, nowMs)) draft.recheckAtMs.push(Math.max(nowMs, plugin.notBeforeMs));
  if (draft.stopped) return;
  const settled = draft.admissions.filter(({ state, goneMs, number }) => {
    return state !== "live" && goneMs === null && (plugin?.admission !== number || plugin.stage === "done");
  });
  for (const admission of settled) {
    changeAdmission(draft, { ...admission, tokensReleasedMs: admission.tokensReleasedMs ?? nowMs, goneMs: nowMs });
    const message = `Admission ${admission.number} has released its tokens.`;
    draft.events.push({ type: "Normal", reason: "TokensReleased", message });
    if (draft.deleteTimeMs !== null) draft.recheckAtMs.push(nowMs);
  }
}

/** True if the next call has a time of its own. When the next `handle` is due the last one has said, and the job's time to look again keeps it. */
function isAwaited({ stage, notBeforeMs }: PluginRecord, nowMs: number): boolean {
  return stage !== "done" && (stage !== "handle" || notBeforeMs > nowMs);
}

export function isLive(draft: Draft, number: number): boolean {
  return draft.admissions.some((admission) => admission.number === number && admission.state === "live");
}
