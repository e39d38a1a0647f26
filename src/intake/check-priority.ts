import { PRIORITY_CLASS_LABEL } from "../core/job/labels.ts";
import type { JobPriorityClass } from "../core/job/priority-class.ts";
import type { FieldNote, SentJob } from "../core/job/request/sent.ts";
import { nearestName } from "../core/pods/nearest-name.ts";
import type { IntakeFacts } from "./ports.ts";
import { requestPath } from "./request-path.ts";

const NAMES_MAX = 5;

/** The priority class of a job, and what is wrong with how the job names it. */
type NamedClass = { readonly priorityClass: JobPriorityClass | null; readonly notes: readonly FieldNote[] };

/** The same for a new job, and what it names in vain. */
export type FoundClass = NamedClass & { readonly warnings: readonly FieldNote[] };

/** Finds the priority class that a job names. A priority that the job has too must be that of the class. */
export async function namedClass(
  { priority, priorityClassName: name }: { readonly priority?: number; readonly priorityClassName: string },
  { priorityClasses }: Pick<IntakeFacts, "priorityClasses">,
): Promise<NamedClass> {
  const priorityClass = await priorityClasses.find(name);
  if (priorityClass === null) {
    const field = requestPath(["spec", "priorityClassName"]);
    return { priorityClass, notes: [{ field, message: unknownWords(name, await priorityClasses.names()) }] };
  }
  if (priority === undefined || priority === priorityClass.value) return { priorityClass, notes: [] };
  const message = `must be omitted or ${priorityClass.value}, the value of priority class ${name}`;
  return { priorityClass, notes: [{ field: requestPath(["spec", "priority"]), message }] };
}

/**
 * The priority class of a new job. One that names neither a class nor a priority gets the class of Kueue's label, else
 * the default class. Kueue's classes may have other names than ours, so a label that names none is a warning.
 */
export async function classOfNew({ spec, labels }: SentJob, facts: IntakeFacts): Promise<FoundClass> {
  const { priority, priorityClassName } = spec;
  if (priorityClassName) return { ...(await namedClass({ ...spec, priorityClassName }, facts)), warnings: [] };
  const { priorityClasses } = facts;
  const name = labels[PRIORITY_CLASS_LABEL];
  if (priority !== undefined || !name) {
    return { priorityClass: priority === undefined ? priorityClasses.default : null, notes: [], warnings: [] };
  }
  const labelled = await priorityClasses.find(name);
  if (labelled !== null) return { priorityClass: labelled, notes: [], warnings: [] };
  const message = `is ignored: ${unknownWords(name, await priorityClasses.names())}`;
  const warning = { field: requestPath(["labels", PRIORITY_CLASS_LABEL]), message };
  return { priorityClass: priorityClasses.default, notes: [], warnings: [warning] };
}

/** Names the class that was probably meant, else some that there are. */
function unknownWords(name: string, names: readonly string[]): string {
  const missing = `priority class ${name} does not exist`;
  if (names.length === 0) return `${missing}: there are none`;
  const meant = nearestName(name, names);
  if (meant !== null) return `${missing}; did you mean ${meant}?`;
  const some = names.slice(0, NAMES_MAX).join(", ");
  return `${missing}; there are: ${some}${names.length > NAMES_MAX ? ", …" : ""}`;
}
