import type { Section } from "../core/blame/watch-sections.ts";
import type { WorkerPorts } from "./ports.ts";
import type { SlowPlugins } from "./slow-plugins.ts";

/** Runs code of a step that cannot pause, measures how long it blocks this worker, and slows a plugin that does. */
export function timedSection<T>(
  { clock, runSection }: Pick<WorkerPorts, "clock" | "runSection">,
  of: { readonly slow: SlowPlugins; readonly onRan?: (jobUid: string, tookMs: number) => void },
  section: Section,
  code: () => T,
): T {
  const startedMs = clock.monotonicMs();
  try {
    return runSection === undefined ? code() : runSection(section, code);
  } finally {
    const endedMs = clock.monotonicMs();
    if (section.of === "plugin") of.slow.ran(section.name, endedMs - startedMs, endedMs);
    else if (section.jobUid !== null) of.onRan?.(section.jobUid, endedMs - startedMs);
  }
}
