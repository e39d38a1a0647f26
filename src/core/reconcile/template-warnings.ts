import { objectAt, stringAt } from "../../runtime/json.ts";
import type { Job } from "../job/job.ts";
import { type GangScheduler, namesOtherScheduler } from "../pods/pod-group.ts";
import type { JobEvent } from "./decision.ts";

/** What of a job's templates has no effect, or another than was probably meant; in the words of Kubeflow's operator. */
export function templateWarnings({ spec }: Job, scheduler: GangScheduler | null): readonly JobEvent[] {
  const warnings: JobEvent[] = [];
  const restarts = Object.values(spec.replicaSpecs).some(({ template }) =>
    stringAt(objectAt(template, "spec"), "restartPolicy"),
  );
  if (restarts) {
    const message = "Restart policy in pod template will be overwritten by restart policy in replica spec";
    warnings.push({ type: "Warning", reason: "SettedPodTemplateRestartPolicy", message });
  }
  if (scheduler !== null && namesOtherScheduler(spec, scheduler)) {
    const message = "Another scheduler is specified when gang-scheduling is enabled and it will not be overwritten";
    warnings.push({ type: "Warning", reason: "SettedPodTemplateSchedulerName", message });
  }
  return warnings;
}
