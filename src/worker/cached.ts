import type { Job } from "../core/job/job.ts";
import { isService } from "../core/kinds/kind.ts";
import { kindOf } from "../core/kinds/registry.ts";
import { answerFor, takeAnswer } from "../core/reconcile/cached.ts";
import type { Decision } from "../core/reconcile/decision.ts";
import type { ReconcileConfig } from "../core/reconcile/draft.ts";
import type { WorkerPorts } from "./ports.ts";
import type { PluginCalls } from "./service.ts";

/**
 * Decides whether a waiting job is answered by the result of another. Plugins may say that their results are not to be used again; where one
 * cannot be asked, the job goes on by itself, and its first call tells why.
 */
export async function decideCached(
  { clock, store }: Pick<WorkerPorts, "clock" | "store">,
  { config, calls }: { readonly config: ReconcileConfig; readonly calls: PluginCalls },
  job: Job,
  signal: AbortSignal,
): Promise<Decision | null> {
  const { kind } = job.spec;
  const properties = isService(kindOf(kind)) ? await calls.propertiesOf(kind, signal) : {};
  if (signal.aborted) return null;
  const others = properties === null || properties.disableCaching === true ? [] : await store.findAlike(job);
  return takeAnswer(job, answerFor(job, others), { nowMs: clock.nowMs(), config });
}
