/** Shows to the watchdog of this process which code it runs, and tells the operator of code that blocks it. */
import { type Section, sectionText } from "../core/blame/watch-sections.ts";
import type { Clock } from "../runtime/clock.ts";
import { RunningCode, sharedCode } from "../runtime/running-code.ts";
import { BLOCKS_FROM_MS } from "../runtime/slow-down.ts";
import type { Telemetry } from "../telemetry/events.ts";

export type Sections = {
  /** The memory that the watchdog reads. */
  readonly shared: SharedArrayBuffer;
  readonly run: <T>(section: Section, code: () => T) => T;
};

export function createSections(clock: Clock, telemetry: Pick<Telemetry, "codeRan" | "codeBlocked">): Sections {
  const shared = sharedCode();
  const running = new RunningCode(shared);
  return {
    shared,
    run: (section, code) => {
      const startedMs = clock.monotonicMs();
      try {
        return running.run(sectionText(section), code);
      } finally {
        const tookMs = clock.monotonicMs() - startedMs;
        // The client of a cluster adds up its times: it reads an answer in many parts.
        if (section.of !== "cluster") {
          telemetry.codeRan({ of: section.of, tookMs });
          if (tookMs >= BLOCKS_FROM_MS) telemetry.codeBlocked({ ...section, tookMs: Math.round(tookMs) });
        }
      }
    },
  };
}
