/**
 * Writes calls that were refused for lack of a permission to the audit log. A caller that repeats a refused call gets
 * one entry at once, and one with the number of its repetitions, so that it cannot flood the log.
 */
import type { AuditNote } from "../core/admin/audit.ts";
import type { Clock } from "../runtime/clock.ts";
import { servedCall } from "../runtime/served-call.ts";

/** Repetitions of a call are written together after this time. */
const REPEATED_MS = 60_000;
/** How often repetitions are looked for. */
const LOOK_MS = 5_000;
/** More calls than are refused in a minute of ordinary work. Those beyond it are written together, as a number. */
const KEPT_MAX = 1_000;
/** No name is longer. A refused call was not checked, and may name anything. */
const NAME_MAX = 256;

export type RefusedCall = {
  readonly rpc: string;
  readonly subject: string;
  readonly method: string;
  readonly resource: string;
  /** Empty: the RPC is unknown, or what the call is about does not exist for the caller. */
  readonly permission: string;
  readonly scope: string;
  readonly outcome: string;
};

export type RefusalPorts = {
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs" | "sleep">;
  readonly append: (note: AuditNote) => Promise<void>;
  /** Called if an entry could not be written. The call is refused all the same. */
  readonly onError: (error: unknown) => void;
};

export type RefusalLog = {
  /** Notes a refusal, and does not wait until it is written. */
  readonly note: (refused: RefusedCall) => void;
  /** Writes repetitions, until the signal is aborted; then writes those that are left. */
  readonly run: (signal: AbortSignal) => Promise<void>;
};

type Kept = { readonly first: AuditNote; readonly atMs: number; repeated: number };

export function refusalLog({ clock, append, onError }: RefusalPorts): RefusalLog {
  const kept = new Map<string, Kept>();
  let others = 0;
  const write = (note: AuditNote) => append(note).catch(onError);
  const note = ({ rpc, subject: actor, method, permission, outcome, ...of }: RefusedCall) => {
    const [resource = "", scope = ""] = [of.resource, of.scope].map(cut);
    const key = JSON.stringify([actor, rpc, resource, permission, scope]);
    const known = kept.get(key);
    if (known !== undefined) {
      known.repeated += 1;
      return;
    }
    if (kept.size >= KEPT_MAX) {
      others += 1;
      return;
    }
    const { peer = "", requestId = "" } = servedCall() ?? {};
    const call = { actor, method, peer, rpc, requestId, outcome };
    const details = { permission, scope };
    const first: AuditNote = { timeMs: clock.nowMs(), action: "PermissionDenied", subject: resource, details, ...call };
    kept.set(key, { first, atMs: clock.monotonicMs(), repeated: 0 });
    void write(first);
  };
  /** Writes what was repeated since before this time. */
  const settle = async (beforeMs: number) => {
    const due = [...kept].filter(([, { atMs }]) => atMs <= beforeMs);
    for (const [key] of due) kept.delete(key);
    for (const [, { first, repeated }] of due) {
      if (repeated === 0) continue;
      await write({ ...first, timeMs: clock.nowMs(), requestId: "", details: { ...first.details, repeated } });
    }
    if (others === 0) return;
    const details = { otherCalls: others };
    others = 0;
    await write({ timeMs: clock.nowMs(), action: "PermissionDenied", subject: "", details });
  };
  const run = async (signal: AbortSignal) => {
    while (!signal.aborted) {
      await clock.sleep(LOOK_MS, signal);
      await settle(signal.aborted ? Number.POSITIVE_INFINITY : clock.monotonicMs() - REPEATED_MS);
    }
  };
  return { note, run };
}

function cut(name: string): string {
  return name.length <= NAME_MAX ? name : `${name.slice(0, NAME_MAX)}…`;
}
