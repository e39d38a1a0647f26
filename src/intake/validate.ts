import { queueOf } from "../core/job/defaults.ts";
import { QUEUE_LABEL } from "../core/job/labels.ts";
import type { FieldNote, SentJob } from "../core/job/sent.ts";
import type { PodConfig } from "../core/pods/pod-config.ts";
import { checkMetadata, isDnsLabel } from "./check-metadata.ts";
import { checkSpec, ignoredSpec } from "./check-spec.ts";
import { checkTemplates } from "./check-templates.ts";
import type { IntakeFacts } from "./ports.ts";
import { requestPath } from "./request-path.ts";

/** Everything that is wrong with a job, and what is merely odd; one note a field and finding, in the order of the fields. */
export type Findings = { readonly violations: readonly FieldNote[]; readonly warnings: readonly FieldNote[] };

/** Finds every problem at once. Without facts (the namespace's name is wrong already) references are not looked at. */
export async function validate(sent: SentJob, facts: IntakeFacts | null, podConfig: PodConfig): Promise<Findings> {
  const templates = checkTemplates(sent, podConfig);
  const queue = facts === null ? [] : await checkQueue(sent, facts);
  return {
    violations: [...checkMetadata(sent), ...checkSpec(sent), ...templates.violations, ...queue],
    warnings: [...templates.warnings, ...ignoredSpec(sent)],
  };
}

/** The namespace's own queue; null where it has none or is not there yet. */
export function namespaceQueueOf(facts: IntakeFacts): string | null {
  const { namespace } = facts;
  return namespace === null || namespace === "open" ? null : namespace.defaultQueue || null;
}

async function checkQueue(sent: SentJob, facts: IntakeFacts): Promise<readonly FieldNote[]> {
  if (facts.namespace === null) return [];
  const queue = queueOf(sent.spec, { labels: sent.labels, namespaceQueue: namespaceQueueOf(facts) });
  if (isDnsLabel(queue) && (await facts.queueExists(queue))) return [];
  const fromPolicy = Boolean(sent.spec.runPolicy?.schedulingPolicy?.queue);
  const fromLabel = !fromPolicy && Boolean(sent.labels[QUEUE_LABEL]);
  const steps = fromLabel ? ["labels", QUEUE_LABEL] : ["spec", "runPolicy", "schedulingPolicy", "queue"];
  const whose = fromPolicy || fromLabel ? "" : `; it is the default of namespace ${sent.namespace}`;
  return [{ field: requestPath(steps), message: `there is no queue ${queue}${whose}` }];
}
