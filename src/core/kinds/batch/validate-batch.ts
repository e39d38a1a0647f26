/** Finds what a batch Job says that Kubernetes refuses, or that Gangway does not serve. */

import { countOf, readRanges } from "../../../runtime/index-ranges.ts";
import { arrayAt, type Json, type JsonObject, numberAt, objectAt, stringAt } from "../../../runtime/json.ts";
import { append } from "../../../runtime/lists.ts";
import type { FieldError, SentSpec } from "../../job/request/sent.ts";
import { containerNames } from "../containers.ts";
import { BATCH_ROLE, type BatchSpec, batchSpecOf } from "./batch-spec.ts";

const RULES_MAX = 20;
const EXIT_CODES_MAX = 255;
const CONDITIONS_MAX = 20;
/** Each part of the work that has ended is in the job's record. */
const PARTS_MAX = 10_000;

/** Paths of a spec in Gangway's own form. */
const PATHS = { fields: "spec.kindSpec", replica: `spec.replicaSpecs.${BATCH_ROLE}` };

/** The parts of a job that the rules below ask. */
type Sent = Pick<BatchSpec, "isIndexed" | "completions"> & {
  readonly fields: JsonObject;
  readonly members: number;
  readonly restartPolicy: string;
  readonly containers: readonly string[];
  readonly paths: typeof PATHS;
};

/** The errors in a batch Job that has passed its schema. Source: `ValidateJobSpec` of Kubernetes. */
export function validateBatch({ replicaSpecs, runPolicy, kindSpec: fields = {} }: SentSpec): readonly FieldError[] {
  const replica = Object.entries(replicaSpecs).find(([role]) => role.toLowerCase() === BATCH_ROLE.toLowerCase())?.[1];
  const { replicas: members = 1, restartPolicy = "Never", template = {} } = replica ?? {};
  return [
    ...policyErrors(runPolicy, INSTEAD),
    ...childErrors(fields, { members, restartPolicy, template, paths: PATHS }),
  ];
}

/** The errors in the fields of a batch Job that may be one of several. `members`: its pods that run at once. */
export function childErrors(
  fields: JsonObject,
  of: {
    readonly members: number;
    readonly restartPolicy: string;
    readonly template: Json;
    /** Where its fields stand, and its replica type. */
    readonly paths: { readonly fields: string; readonly replica: string };
  },
): readonly FieldError[] {
  const { isIndexed, completions } = batchSpecOf(fields, of);
  const containers = containerNames(objectAt(of.template, "spec"));
  const sent: Sent = { ...of, fields, isIndexed, completions, containers };
  return [
    ...restartErrors(sent),
    ...completionErrors(sent),
    ...indexErrors(sent),
    ...failureErrors(sent),
    ...successErrors(sent),
  ];
}

function restartErrors({ restartPolicy, paths }: Sent): readonly FieldError[] {
  if (restartPolicy === "OnFailure" || restartPolicy === "Never") return [];
  return [{ path: `${paths.replica}.restartPolicy`, message: "must be OnFailure or Never" }];
}

const INSTEAD = { backoffLimit: "kindSpec.backoffLimit counts", restartScope: "pods of a Job restart one by one" };

/** The errors in a run policy whose limit and scope of restarts say nothing. `instead`: what says it. */
export function policyErrors(runPolicy: SentSpec["runPolicy"], instead: typeof INSTEAD): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (runPolicy?.backoffLimit !== undefined) {
    errors.push({ path: "spec.runPolicy.backoffLimit", message: `must be omitted: ${instead.backoffLimit}` });
  }
  if (runPolicy?.restartScope === "GANG") {
    errors.push({ path: "spec.runPolicy.restartScope", message: `must be REPLICA: ${instead.restartScope}` });
  }
  return errors;
}

function completionErrors({ members, completions, paths }: Sent): readonly FieldError[] {
  const errors: FieldError[] = [];
  if (completions !== null && completions > members && completions > PARTS_MAX) {
    const message = `must be at most ${PARTS_MAX}, or the number of pods that run at once`;
    errors.push({ path: `${paths.fields}.completions`, message });
  }
  if (completions !== null && completions < members) {
    const message = `must be at most the number of completions, ${completions}`;
    errors.push({ path: `${paths.replica}.replicas`, message });
  }
  return errors;
}

function indexErrors({ fields, isIndexed, completions, paths }: Sent): readonly FieldError[] {
  const [perIndex, maxFailed] = ["backoffLimitPerIndex", "maxFailedIndexes"].map((name) => numberAt(fields, name));
  const errors: FieldError[] = [];
  if (perIndex !== undefined && !isIndexed) {
    errors.push({ path: `${paths.fields}.backoffLimitPerIndex`, message: "needs completionMode Indexed" });
  }
  if (maxFailed !== undefined && perIndex === undefined) {
    errors.push({ path: `${paths.fields}.maxFailedIndexes`, message: "needs backoffLimitPerIndex" });
  } else if (maxFailed !== undefined && completions !== null && maxFailed > completions) {
    errors.push({ path: `${paths.fields}.maxFailedIndexes`, message: `must be at most completions, ${completions}` });
  }
  return errors;
}

function failureErrors(sent: Sent): readonly FieldError[] {
  const { fields, restartPolicy, paths } = sent;
  const policy = objectAt(fields, "podFailurePolicy");
  if (Object.keys(policy).length === 0) return [];
  const path = `${paths.fields}.podFailurePolicy`;
  const rules = arrayAt(policy, "rules");
  const errors: FieldError[] = [];
  if (restartPolicy !== "Never") {
    errors.push({ path: `${paths.replica}.restartPolicy`, message: "must be Never beside a podFailurePolicy" });
  }
  if (stringAt(fields, "podReplacementPolicy") === "TerminatingOrFailed") {
    errors.push({ path: `${paths.fields}.podReplacementPolicy`, message: "must be Failed beside a podFailurePolicy" });
  }
  if (rules.length > RULES_MAX) errors.push({ path: `${path}.rules`, message: `must have at most ${RULES_MAX} rules` });
  else {
    append(
      errors,
      rules.flatMap((rule, at) => ruleErrors(sent, rule, `${path}.rules[${at}]`)),
    );
  }
  return errors;
}

function ruleErrors({ fields, containers }: Sent, rule: Json, path: string): readonly FieldError[] {
  const codes = objectAt(rule, "onExitCodes");
  const conditions = arrayAt(rule, "onPodConditions");
  const hasCodes = Object.keys(codes).length > 0;
  const errors: FieldError[] = [];
  if (hasCodes === conditions.length > 0) {
    errors.push({ path, message: "must have one of onExitCodes and onPodConditions" });
  }
  if (stringAt(rule, "action") === "FailIndex" && numberAt(fields, "backoffLimitPerIndex") === undefined) {
    errors.push({ path: `${path}.action`, message: "is FailIndex, which needs backoffLimitPerIndex" });
  }
  if (conditions.length > CONDITIONS_MAX) {
    errors.push({ path: `${path}.onPodConditions`, message: `must have at most ${CONDITIONS_MAX} conditions` });
  }
  if (hasCodes) append(errors, codeErrors(codes, containers, `${path}.onExitCodes`));
  return errors;
}

function codeErrors(codes: JsonObject, containers: readonly string[], path: string): readonly FieldError[] {
  const values = arrayAt(codes, "values").map(Number);
  const container = stringAt(codes, "containerName");
  const errors: FieldError[] = [];
  if (container !== undefined && !containers.includes(container)) {
    errors.push({ path: `${path}.containerName`, message: "must be a container or init container of the template" });
  }
  if (values.length > EXIT_CODES_MAX) {
    errors.push({ path: `${path}.values`, message: `must have at most ${EXIT_CODES_MAX} exit codes` });
  } else if (values.some((value, at) => at > 0 && value <= (values[at - 1] ?? 0))) {
    errors.push({ path: `${path}.values`, message: "must rise" });
  }
  if (stringAt(codes, "operator") === "In" && values.includes(0)) {
    errors.push({ path: `${path}.values`, message: "must not have 0 with the operator In: 0 is no failure" });
  }
  return errors;
}

function successErrors({ fields, isIndexed, completions, paths }: Sent): readonly FieldError[] {
  const policy = objectAt(fields, "successPolicy");
  if (Object.keys(policy).length === 0) return [];
  const path = `${paths.fields}.successPolicy`;
  if (!isIndexed) return [{ path, message: "needs completionMode Indexed" }];
  const rules = arrayAt(policy, "rules");
  if (rules.length > RULES_MAX) return [{ path: `${path}.rules`, message: `must have at most ${RULES_MAX} rules` }];
  return rules.flatMap((rule, at) => successRuleErrors(rule, `${path}.rules[${at}]`, completions ?? 0));
}

function successRuleErrors(rule: Json, path: string, completions: number): readonly FieldError[] {
  const indexes = stringAt(rule, "succeededIndexes");
  const count = numberAt(rule, "succeededCount");
  if (indexes === undefined && count === undefined) {
    return [{ path, message: "must have succeededIndexes, succeededCount or both" }];
  }
  const ranges = indexes === undefined ? null : readRanges(indexes);
  if (indexes !== undefined && ranges === null) {
    return [{ path: `${path}.succeededIndexes`, message: "must be rising indexes and ranges, such as 0,2-5" }];
  }
  if (ranges !== null && (ranges.at(-1)?.last ?? 0) >= completions) {
    return [{ path: `${path}.succeededIndexes`, message: `must have indexes below completions, ${completions}` }];
  }
  const most = ranges === null ? completions : countOf(ranges);
  if (count === undefined || count <= most) return [];
  return [{ path: `${path}.succeededCount`, message: `must be at most the number of its indexes, ${most}` }];
}
