/** The JSON Schema of the fields of a batch Job. Source: `JobSpec` of `batch/v1`. */

import { RANGES_CHARS_MAX } from "../../../runtime/index-ranges.ts";
import type { JsonObject } from "../../../runtime/json.ts";
import { integerSchema } from "../kind-spec.ts";
import { FAILURE_ACTIONS } from "./batch-spec.ts";

const EXIT_CODES: JsonObject = {
  title: "onExitCodes",
  type: "object",
  additionalProperties: false,
  required: ["operator", "values"],
  properties: {
    containerName: { type: "string", minLength: 1, description: "Omitted: any container or init container." },
    operator: { type: "string", enum: ["In", "NotIn"], description: "Exit code 0 never matches." },
    values: { type: "array", minItems: 1, items: integerSchema("An exit code.", { minimum: 0 }) },
  },
};

const CONDITION: JsonObject = {
  title: "onPodConditions",
  type: "object",
  additionalProperties: false,
  required: ["type"],
  properties: {
    type: { type: "string", minLength: 1 },
    status: { type: "string", enum: ["True", "False", "Unknown"], default: "True" },
  },
};

export const BATCH_FIELDS: JsonObject = {
  completionMode: {
    type: "string",
    enum: ["NonIndexed", "Indexed"],
    default: "NonIndexed",
    description: "Indexed: each pod has a number of its own, JOB_COMPLETION_INDEX, which must succeed once.",
  },
  completions: integerSchema(
    "How many pods must succeed. Omitted: with Indexed, the number of replicas; else the job is over when a pod has " +
      "succeeded and none runs.",
    { minimum: 1 },
  ),
  backoffLimit: integerSchema("How many failures are allowed. Omitted: 6, or no limit with backoffLimitPerIndex.", {
    minimum: 0,
  }),
  backoffLimitPerIndex: integerSchema("How many failures of one index are allowed.", { minimum: 0 }),
  maxFailedIndexes: integerSchema("How many indexes may fail before the job does.", { minimum: 0 }),
  podReplacementPolicy: {
    type: "string",
    enum: ["TerminatingOrFailed", "Failed"],
    description: "When a pod is replaced. Gangway never starts a second pod before the first is gone.",
  },
  podFailurePolicy: {
    title: "podFailurePolicy",
    type: "object",
    additionalProperties: false,
    required: ["rules"],
    description: "What a failure does. The first rule that matches decides; without one, the failure counts.",
    properties: {
      rules: {
        type: "array",
        minItems: 1,
        items: {
          title: "podFailurePolicy",
          type: "object",
          additionalProperties: false,
          required: ["action"],
          properties: {
            action: { type: "string", enum: [...FAILURE_ACTIONS] },
            onExitCodes: EXIT_CODES,
            onPodConditions: { type: "array", items: CONDITION },
          },
        },
      },
    },
  },
  successPolicy: {
    title: "successPolicy",
    type: "object",
    additionalProperties: false,
    required: ["rules"],
    description: "The job has succeeded when a rule is met. Without one, all completions must be reached.",
    properties: {
      rules: {
        type: "array",
        minItems: 1,
        items: {
          title: "successPolicy",
          type: "object",
          additionalProperties: false,
          properties: {
            succeededIndexes: {
              type: "string",
              minLength: 1,
              description: `Indexes such as 0,2-5, of at most ${RANGES_CHARS_MAX} characters. Omitted: all.`,
            },
            succeededCount: integerSchema("How many of them must succeed. Omitted: all.", { minimum: 1 }),
          },
        },
      },
    },
  },
};
