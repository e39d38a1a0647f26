/** The fields of a batch Job that decide how it runs and when it ends. */
import { arrayAt, type Json, type JsonObject, numberAt, objectAt, stringAt } from "../../../runtime/json.ts";

/** The only replica type of a batch Job. */
export const BATCH_ROLE = "Worker";

const BACKOFF_LIMIT = 6;
const NO_LIMIT = 2 ** 31 - 1;

/** What a rule of a failure policy does with a failed pod that it matches. */
export const FAILURE_ACTIONS = ["FailJob", "FailIndex", "Ignore", "Count"] as const;

/** A rule of a pod failure policy. */
export type FailureRule = {
  readonly action: (typeof FAILURE_ACTIONS)[number];
  /** `containerName` omitted: any container. */
  readonly onExitCodes?: {
    readonly containerName?: string;
    readonly isIn: boolean;
    readonly values: readonly number[];
  };
  readonly onPodConditions: readonly { readonly type: string; readonly status: string }[];
};

/** A rule of a success policy. Omitted indexes: all. Omitted count: all of the indexes. */
export type SuccessRule = { readonly succeededIndexes?: string; readonly succeededCount?: number };

/** A batch Job with its defaults. Source: `SetDefaults_Job` of Kubernetes. */
export type BatchSpec = {
  readonly isIndexed: boolean;
  /** How many pods must succeed. Null: a work queue, which is over when a pod has succeeded and none runs. */
  readonly completions: number | null;
  /** How many failures are allowed. */
  readonly backoffLimit: number;
  /** How many failures of one index are allowed. Null: only those of all indexes together count. */
  readonly backoffLimitPerIndex: number | null;
  readonly maxFailedIndexes: number | null;
  readonly restartsInPlace: boolean;
  readonly failureRules: readonly FailureRule[];
  readonly successRules: readonly SuccessRule[];
};

/** Reads the fields of a batch Job, which `validate` has taken, or may refuse: it never throws. */
export function batchSpecOf(
  fields: JsonObject,
  of: { readonly members: number; readonly restartPolicy: string | undefined },
): BatchSpec {
  const isIndexed = stringAt(fields, "completionMode") === "Indexed";
  const backoffLimitPerIndex = numberAt(fields, "backoffLimitPerIndex") ?? null;
  return {
    isIndexed,
    completions: numberAt(fields, "completions") ?? (isIndexed ? of.members : null),
    backoffLimit: numberAt(fields, "backoffLimit") ?? (backoffLimitPerIndex === null ? BACKOFF_LIMIT : NO_LIMIT),
    backoffLimitPerIndex,
    maxFailedIndexes: numberAt(fields, "maxFailedIndexes") ?? null,
    restartsInPlace: of.restartPolicy === "OnFailure",
    failureRules: arrayAt(objectAt(fields, "podFailurePolicy"), "rules").map(failureRule),
    successRules: arrayAt(objectAt(fields, "successPolicy"), "rules").map(successRule),
  };
}

function failureRule(rule: Json): FailureRule {
  const codes = objectAt(rule, "onExitCodes");
  const container = stringAt(codes, "containerName");
  const values = arrayAt(codes, "values").filter((value) => typeof value === "number");
  return {
    action: FAILURE_ACTIONS.find((action) => action === stringAt(rule, "action")) ?? "Count",
    ...(Object.keys(codes).length === 0
      ? {}
      : {
          onExitCodes: {
            ...(container === undefined ? {} : { containerName: container }),
            isIn: stringAt(codes, "operator") === "In",
            values,
          },
        }),
    onPodConditions: arrayAt(rule, "onPodConditions").map((one) => ({
      type: stringAt(one, "type") ?? "",
      status: stringAt(one, "status") ?? "True",
    })),
  };
}

function successRule(rule: Json): SuccessRule {
  const [succeededIndexes, succeededCount] = [stringAt(rule, "succeededIndexes"), numberAt(rule, "succeededCount")];
  return {
    ...(succeededIndexes === undefined ? {} : { succeededIndexes }),
    ...(succeededCount === undefined ? {} : { succeededCount }),
  };
}
