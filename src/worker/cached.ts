import type { Job } from "../core/job/job.ts";
import { isService } from "../core/kinds/kind.ts";
import { kindOf } from "../core/kinds/registry.ts";
import { answerFor, takeAnswer } from "../core/reconcile/cached.ts";
import type { Decision } from "../core/reconcile/decision.ts";
import type { ReconcileConfig } from "../core/reconcile/draft.ts";
import type { WorkerPorts } from "./ports.ts";

/** Decides whether a waiting job is answered by the result of another. Plugins may say that their results are not to be used again. */
export async function decideCached(
  { clock, store, plugins }: Pick<WorkerPorts, "clock" | "store" | "plugins">,
  config: ReconcileConfig,
  job: Job,
): Promise<Decision> {
  const plugin = isService(kindOf(job.spec.kind)) ? await plugins?.pluginOf(job.spec.kind) : undefined;
  const others = plugin?.properties?.disableCaching === true ? [] : await store.findAlike(job);
  return takeAnswer(job, answerFor(job, others), { nowMs: clock.nowMs(), config });
}
