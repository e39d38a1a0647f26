import { QUEUE_LABEL } from "../core/job/labels.ts";
import { queueOf } from "../core/job/request/defaults.ts";
import { joinNotes } from "../core/job/request/notes.ts";
import type { FieldNote, SentJob } from "../core/job/request/sent.ts";
import { checkMetadata, isDnsLabel } from "./check-metadata.ts";
import { classOfNew, type FoundClass } from "./check-priority.ts";
import { checkResources } from "./check-resources.ts";
import { checkSpec, ignoredSpec } from "./check-spec.ts";
import type { JudgedTemplates, TemplateJudge } from "./judged-templates.ts";
import { wholeName } from "./new-job.ts";
import type { IntakeFacts, IntakeRules } from "./ports.ts";
import { requestPath } from "./request-path.ts";

/**
 * The errors (violations) and the probable mistakes (warnings) in a job, in the order of its fields.
 */
export type JobFindings = { readonly violations: readonly FieldNote[]; readonly warnings: readonly FieldNote[] };

/** The findings in a new job, its priority class, and what it is made of. */
type NewFindings = JobFindings & Pick<FoundClass, "priorityClass"> & Pick<JudgedTemplates, "made">;

/** Finds all problems at once. Null facts, because the namespace's name is invalid: does not check references. */
export async function validate(
  sent: SentJob,
  facts: IntakeFacts | null,
  { rules, templateJudge }: { readonly rules: IntakeRules; readonly templateJudge: TemplateJudge },
): Promise<NewFindings> {
  const spec = checkSpec(sent, rules.kinds);
  const named = spec.length === 0 && isDnsLabel(wholeName(sent));
  const templates = templateJudge.judge(sent, rules, named);
  const queue = facts === null ? [] : await checkQueue(sent, facts);
  const { priorityClass, notes, warnings } = facts === null ? NO_CLASS : await classOfNew(sent, facts);
  const { gpuResourceName } = rules.podConfig;
  const resources =
    facts === null ? [] : await checkResources(sent, facts, { gpuResourceName, tooLarge: templates.tooLarge });
  return {
    violations: joinNotes(
      checkMetadata(sent, rules.isReserved),
      spec,
      templates.violations,
      templates.pods,
      queue,
      notes,
    ),
    warnings: joinNotes(templates.warnings, warnings, resources, ignoredSpec(sent, rules.kinds)),
    priorityClass,
    made: templates.made,
  };
}

const NO_CLASS: FoundClass = { priorityClass: null, notes: [], warnings: [] };

/** Returns the namespace's default queue. Null: it has none, or the namespace does not exist yet. */
export function namespaceQueueOf(facts: IntakeFacts): string | null {
  const { namespace } = facts;
  return namespace === null || namespace === "open" ? null : namespace.defaultQueue || null;
}

/** The queue that the job would be in. */
export function queueNamed(sent: SentJob, facts: IntakeFacts): string {
  return queueOf(sent.spec, { labels: sent.labels, namespaceQueue: namespaceQueueOf(facts) });
}

async function checkQueue(sent: SentJob, facts: IntakeFacts): Promise<readonly FieldNote[]> {
  if (facts.namespace === null) return [];
  const queue = queueNamed(sent, facts);
  if (isDnsLabel(queue) && (await facts.queueExists(queue))) return [];
  const fromPolicy = Boolean(sent.spec.runPolicy?.schedulingPolicy?.queue);
  const fromLabel = !fromPolicy && Boolean(sent.labels[QUEUE_LABEL]);
  const steps = fromLabel ? ["labels", QUEUE_LABEL] : ["spec", "runPolicy", "schedulingPolicy", "queue"];
  const whose = fromPolicy || fromLabel ? "" : `, although it is the default queue of namespace ${sent.namespace}`;
  const way = isDnsLabel(queue) ? `. An admin makes it with: gangway queue create ${queue}` : "";
  return [{ field: requestPath(steps), message: `queue ${queue} does not exist${whose}${way}` }];
}
