/** Finds what a JobSet says that JobSet refuses, or that Gangway does not serve. Source: `ValidateCreate` of JobSet. */
import { arrayAt, type Json, type JsonObject, numberAt, objectAt, stringAt } from "../../../runtime/json.ts";
import { compileLinear } from "../../../runtime/linear-pattern.ts";
import { append } from "../../../runtime/lists.ts";
import { DNS_1035_LABEL } from "../../job/names.ts";
import type { FieldError, SentSpec } from "../../job/request/sent.ts";
import { childErrors, policyErrors } from "../batch/validate-batch.ts";
import { childFields, countsOf } from "./jobset-spec.ts";
import { claimErrors } from "./volume-claims.ts";

const RULES_MAX = 20;
const PATTERNS_MAX = 20;
const PATTERN_CHARS_MAX = 200;
const MUST_BE_LABEL = "must be a DNS label: lower-case letters, digits and dashes, with a letter first";
/** What says how a JobSet restarts, in place of its run policy. */
const INSTEAD = {
  backoffLimit: "failurePolicy.maxRestarts and the child jobs' backoffLimit count",
  restartScope: "the failure policy says what restarts as a whole",
};
const FIELDS = "spec.kindSpec";
const GROUPS = `${FIELDS}.replicatedJobs`;

type Group = { readonly at: number; readonly name: string; readonly field: JsonObject; readonly jobs: number };

/** The errors in a JobSet that has passed its schema. */
export function validateJobSet({ replicaSpecs, runPolicy, kindSpec: fields = {} }: SentSpec): readonly FieldError[] {
  const groups = arrayAt(fields, "replicatedJobs").map((group, at): Group => {
    const field = objectAt({ group }, "group");
    return { at, name: stringAt(group, "name") ?? "", field, jobs: numberAt(group, "replicas") ?? 1 };
  });
  const names = new Set<string>();
  return [
    ...countErrors(groups, replicaSpecs),
    ...policyErrors(runPolicy, INSTEAD),
    ...groups.flatMap((group) => groupErrors(group, names, replicaSpecs)),
    ...orderErrors(fields, groups),
    ...targetErrors(fields, groups),
    ...coordinatorErrors(fields, groups),
    ...ruleErrors(fields, groups),
    ...subdomainErrors(fields),
    ...claimErrors(fields, {
      path: FIELDS,
      podSpecs: Object.values(replicaSpecs).map(({ template }) => objectAt(template, "spec")),
    }),
  ];
}

/** Each group has the replica type of its name, with the pods of all its child jobs. */
function countErrors(groups: readonly Group[], replicaSpecs: SentSpec["replicaSpecs"]): readonly FieldError[] {
  const wanted = new Map(groups.map(({ name, field, jobs }) => [name, jobs * countsOf(childFields(field)).pods]));
  const errors: FieldError[] = [];
  for (const [role, { replicas = 1 }] of Object.entries(replicaSpecs)) {
    const count = wanted.get(role);
    const path = `spec.replicaSpecs.${role}`;
    if (count === undefined) errors.push({ path, message: "is not the name of one of kindSpec.replicatedJobs" });
    else if (count !== replicas) {
      errors.push({ path: `${path}.replicas`, message: `must be ${count}: the pods of all child jobs of the group` });
    }
  }
  for (const [name, count] of wanted) {
    if (count > 0 && !Object.hasOwn(replicaSpecs, name)) {
      errors.push({ path: `spec.replicaSpecs.${name}`, message: "is required, with the pods of this group" });
    }
  }
  return errors;
}

/** `names`: of the groups before, to which this one's is added. */
function groupErrors(
  { at, name, field }: Group,
  names: Set<string>,
  replicaSpecs: SentSpec["replicaSpecs"],
): readonly FieldError[] {
  const path = `${GROUPS}[${at}]`;
  const errors: FieldError[] = [];
  if (!DNS_1035_LABEL.test(name)) errors.push({ path: `${path}.name`, message: MUST_BE_LABEL });
  if (names.has(name)) {
    errors.push({ path: `${path}.name`, message: `is ${name.slice(0, 63)}, which an earlier group has` });
  }
  names.add(name);
  const groupName = stringAt(field, "groupName");
  if (groupName !== undefined && !DNS_1035_LABEL.test(groupName)) {
    errors.push({ path: `${path}.groupName`, message: MUST_BE_LABEL });
  }
  const { template, restartPolicy = "OnFailure" } = replicaSpecs[name] ?? {};
  const { pods } = countsOf(childFields(field));
  const paths = { fields: `${path}.template.spec`, replica: `spec.replicaSpecs.${name}` };
  append(errors, childErrors(childFields(field), { members: pods, restartPolicy, template: template ?? {}, paths }));
  return errors;
}

function orderErrors(fields: JsonObject, groups: readonly Group[]): readonly FieldError[] {
  const inOrder = stringAt(objectAt(fields, "startupPolicy"), "startupPolicyOrder") === "InOrder";
  const errors: FieldError[] = [];
  const earlier = new Set<string>();
  for (const { at, name: own, field } of groups) {
    const names = arrayAt(field, "dependsOn").map((one) => stringAt(one, "name") ?? "");
    if (inOrder && names.length > 0) {
      return [{ path: FIELDS, message: "must not have both startupPolicyOrder InOrder and dependsOn" }];
    }
    for (const [index, name] of names.slice(0, groups.length).entries()) {
      if (earlier.has(name)) continue;
      errors.push({
        path: `${GROUPS}[${at}].dependsOn[${index}].name`,
        message: "must be the name of an earlier group",
      });
    }
    if (names.length > groups.length) {
      errors.push({ path: `${GROUPS}[${at}].dependsOn`, message: "must name each earlier group at most once" });
    }
    earlier.add(own);
  }
  return errors;
}

function targetErrors(fields: JsonObject, groups: readonly Group[]): readonly FieldError[] {
  return unknownGroups(objectAt(fields, "successPolicy"), groups, `${FIELDS}.successPolicy`);
}

function unknownGroups(of: JsonObject, groups: readonly Group[], path: string): readonly FieldError[] {
  const known = new Set(groups.map(({ name }) => name));
  const names = arrayAt(of, "targetReplicatedJobs");
  if (names.length > groups.length) {
    return [{ path: `${path}.targetReplicatedJobs`, message: "must name each group at most once" }];
  }
  return names.flatMap((name, at) => {
    if (typeof name === "string" && known.has(name)) return [];
    return [{ path: `${path}.targetReplicatedJobs[${at}]`, message: "must be the name of a group" }];
  });
}

function coordinatorErrors(fields: JsonObject, groups: readonly Group[]): readonly FieldError[] {
  if (fields["coordinator"] === undefined) return [];
  const coordinator = objectAt(fields, "coordinator");
  const path = `${FIELDS}.coordinator`;
  const group = groups.find(({ name }) => name === stringAt(coordinator, "replicatedJob"));
  if (group === undefined) return [{ path: `${path}.replicatedJob`, message: "must be the name of a group" }];
  const job = numberAt(coordinator, "jobIndex") ?? 0;
  const pod = numberAt(coordinator, "podIndex") ?? 0;
  const child = childFields(group.field);
  if (stringAt(child, "completionMode") !== "Indexed") {
    return [{ path: `${path}.replicatedJob`, message: "must be a group whose completionMode is Indexed" }];
  }
  if (job >= group.jobs) return [{ path: `${path}.jobIndex`, message: `must be below ${group.jobs}` }];
  const { parts } = countsOf(child);
  return pod >= parts ? [{ path: `${path}.podIndex`, message: `must be below ${parts}` }] : [];
}

function ruleErrors(fields: JsonObject, groups: readonly Group[]): readonly FieldError[] {
  const rules = arrayAt(objectAt(fields, "failurePolicy"), "rules");
  const path = `${FIELDS}.failurePolicy.rules`;
  if (rules.length > RULES_MAX) return [{ path, message: `must have at most ${RULES_MAX} rules` }];
  const names = new Set<string>();
  return rules.flatMap((rule, at) => {
    const name = stringAt(rule, "name") ?? `failurePolicyRule${at}`;
    const twice = names.has(name) ? [{ path: `${path}[${at}].name`, message: "is the name of an earlier rule" }] : [];
    names.add(name);
    const targets = unknownGroups(objectAt({ rule }, "rule"), groups, `${path}[${at}]`);
    return [...twice, ...targets, ...patternErrors(rule, `${path}[${at}].onJobFailureMessagePatterns`)];
  });
}

function patternErrors(rule: Json, path: string): readonly FieldError[] {
  const patterns = arrayAt(rule, "onJobFailureMessagePatterns");
  if (patterns.length > PATTERNS_MAX) return [{ path, message: `must have at most ${PATTERNS_MAX} patterns` }];
  return patterns.flatMap((pattern, at) => {
    const text = String(pattern);
    if (text.length > PATTERN_CHARS_MAX) {
      return [{ path: `${path}[${at}]`, message: `must have at most ${PATTERN_CHARS_MAX} characters` }];
    }
    if (compileLinear(text) !== null) return [];
    return [{ path: `${path}[${at}]`, message: "must be a regular expression of RE2" }];
  });
}

function subdomainErrors(fields: JsonObject): readonly FieldError[] {
  const subdomain = stringAt(objectAt(fields, "network"), "subdomain");
  if (subdomain === undefined || DNS_1035_LABEL.test(subdomain)) return [];
  return [{ path: `${FIELDS}.network.subdomain`, message: MUST_BE_LABEL }];
}
