/** Connects the hints of this process with those of the other processes on its database. */
import type { Hints } from "../adapters/store/db/hints.ts";
import { createHints } from "../adapters/store/db/notify.ts";
import type { DatabaseConfig } from "../config/config.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Telemetry } from "../telemetry/events.ts";

/** Passes hints that arrive on to `heard`. Returns the hints that reach every process, this one too. */
export function shareHints(
  heard: StageHints,
  of: {
    readonly database: DatabaseConfig;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
    readonly parts: AsyncDisposableStack;
  },
): StageHints {
  const { database, clock, telemetry, parts } = of;
  const line = createHints({
    url: database.directUrl,
    connectTimeoutMs: database.connectTimeoutMs,
    clock,
    random: Math.random,
    onError: (error) => telemetry.loopFailed({ loop: "notifications", error }),
  });
  parts.defer(() => line.close());
  parts.defer(passOn(line, heard));
  return {
    appended: () => line.send({ kind: "log" }),
    planner: () => line.send({ kind: "planner" }),
    job: (uid) => line.send({ kind: "job", uid }),
  };
}

/** The hints that reach this process alone. */
export function ownHints(heard: StageHints): StageHints {
  return { appended: () => heard.appended(), planner: () => heard.planner(), job: (uid) => heard.job(uid) };
}

/** A hint that many jobs are due reaches no stage: the worker's next poll finds them. */
function passOn(line: Hints, heard: StageHints): () => void {
  return line.onHint((hint) => {
    if (hint.kind === "log") heard.appended();
    else if (hint.kind === "planner") heard.planner();
    else if (hint.kind === "job") heard.job(hint.uid);
  });
}

/** Wakes a stage: the one of this process, or those of all processes. Nothing is lost if a hint reaches no stage. */
export type StageHints = { appended: () => void; planner: () => void; job: (uid: string) => void };
