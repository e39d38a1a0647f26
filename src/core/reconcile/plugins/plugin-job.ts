import { doublingMs } from "../../../runtime/doubling.ts";
import { foreignText } from "../../../runtime/foreign-text.ts";
import type { Admission } from "../../job/status.ts";
import type { PluginRecord } from "../../job/task-info.ts";
import { changeAdmission, type Draft, type Inputs, reasonOf } from "../decision-draft.ts";
import { endByDeadline } from "../finish-job.ts";

const CALL_BACKOFF = { firstMs: 1_000, longestMs: 60_000 };
/** The longest backoff after a call of a plugin that failed. */
export const CALL_BACKOFF_MS_MAX = CALL_BACKOFF.longestMs;
const MESSAGE_BYTES_MAX = 1_024;

/** A plugin's state before it has stored anything. */
export const NO_STATE = { version: 0, value: null } as const;

/**
 * Decides the steps of a job without pods, which a plugin runs. The record names the plugin call that is due before the
 * call is made, and the outcome is recorded after it (see `afterCall`). A crash in between repeats the call under the
 * same task name.
 */
export const pluginRunner = { handle, abort, finalize };

function handle(draft: Draft, inputs: Inputs, admission: Admission): void {
  const { plugin } = draft.status;
  if (plugin === undefined || plugin.admission !== admission.number) start(draft, inputs, admission);
  endByDeadline(draft, inputs);
}

/** Records the attempt and its first call, before the plugin starts anything. */
function start(draft: Draft, { job, nowMs }: Inputs, admission: Admission): void {
  const first: PluginRecord = {
    admission: admission.number,
    attempt: draft.status.plugin?.attempt ?? 1,
    stage: "handle",
    state: NO_STATE,
    failedCalls: 0,
    notBeforeMs: nowMs,
  };
  const { info: _info, outputs: _outputs, ...status } = draft.status;
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

/** Aborts an attempt that its plugin has not ended itself. */
function abort(draft: Draft, { nowMs }: Inputs): void {
  const { plugin } = draft.status;
  if (plugin === undefined || isLive(draft, plugin.admission) || plugin.stage !== "handle") return;
  const { lastFailure: _lastFailure, ...rest } = plugin;
  draft.status = { ...draft.status, plugin: { ...rest, stage: "abort", failedCalls: 0, notBeforeMs: nowMs } };
}

/** Releases the tokens of stopped admissions once the plugin has finalized them. */
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

/**
 * True if the record must name the time of the next call. The time of the next `handle` was set by the call before it,
 * as the job's time to look again.
 */
function isAwaited({ stage, notBeforeMs }: PluginRecord, nowMs: number): boolean {
  return stage !== "done" && (stage !== "handle" || notBeforeMs > nowMs);
}

export function isLive(draft: Draft, number: number): boolean {
  return draft.admissions.some((admission) => admission.number === number && admission.state === "live");
}

/**
 * The record of a failed call of a plugin: how many calls have failed in a row, why the last one failed, and when to
 * call again. `before` is the number of failures before this one.
 */
export function failedCall(before: number, errorText: string, nowMs: number) {
  return {
    failedCalls: before + 1,
    lastFailure: foreignText(errorText, MESSAGE_BYTES_MAX),
    notBeforeMs: nowMs + doublingMs(CALL_BACKOFF, before),
  };
}
