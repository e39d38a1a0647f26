/** Judges pods as an API server does when it is asked to create them. */
import { isJsonObject, type JsonObject, objectAt } from "../../../runtime/json.ts";
import { FindingList, type Findings, type PodFindings } from "./finding.ts";
import { walkObject } from "./judge-value.ts";
import { inside, type PodPlace } from "./place.ts";
import type { MemberRule, ObjectRule } from "./rule.ts";
import { judgeMetadata } from "./rules/metadata-rules.ts";
import { POD_RULES } from "./rules/pod-rules.ts";
import { isAbsent, isEmpty } from "./set.ts";
import { type WholePod, wholePod } from "./whole-pod.ts";

/**
 * Judges a pod as it will be created: the types of its members, then every rule. Kubernetes fills in defaults before it
 * judges; the rules know them. Never throws, and takes linear time.
 */
export function judgePod(pod: JsonObject): PodFindings {
  const findings = new FindingList();
  const facts = wholePod(pod);
  const metadata = objectAt(pod, "metadata");
  walkObject({ findings }, metadata, "ObjectMeta", inside(null, "metadata"));
  judgeMetadata(metadata, facts, findings);
  const spec = isJsonObject(pod["spec"]) ? pod["spec"] : {};
  // As Kubernetes does, judges the members of the spec itself after its containers and volumes.
  const visit = (object: JsonObject, type: string, at: PodPlace) => {
    if (object !== spec) judgeMembers(object, { type, at, findings });
  };
  const leave = (object: JsonObject, type: string, at: PodPlace) => {
    judgeWhole(object, { type, at, pod: facts, findings });
    if (object === spec) judgeMembers(object, { type, at, findings });
  };
  walkObject({ findings, visit, leave }, spec, "PodSpec", inside(null, "spec"));
  return findings;
}

type CompiledRules = {
  readonly members: readonly (readonly [string, MemberRule])[];
  readonly whole: readonly ObjectRule[];
};

const RULES: ReadonlyMap<string, CompiledRules> = new Map(
  Object.entries(POD_RULES).map(([type, { members = {}, whole = [] }]) => [
    type,
    { members: Object.entries(members), whole },
  ]),
);

type JudgedObject = { readonly type: string; readonly at: PodPlace; readonly findings: Findings };

function judgeMembers(object: JsonObject, { type, at, findings }: JudgedObject): void {
  const rules = RULES.get(type);
  if (rules === undefined) return;
  for (const [name, rule] of rules.members) judgeMember(object, { name, rule, at, findings });
}

function judgeWhole(object: JsonObject, { type, at, pod, findings }: JudgedObject & { readonly pod: WholePod }): void {
  const rules = RULES.get(type);
  if (rules === undefined) return;
  for (const rule of rules.whole) rule.judge(object, at, { pod, findings });
}

function judgeMember(
  object: JsonObject,
  of: { readonly name: string; readonly rule: MemberRule; readonly at: PodPlace; readonly findings: Findings },
): void {
  const { name, rule, at, findings } = of;
  const value = object[name];
  const counts = !isAbsent(value) && (rule.seesEmpty === true || !isEmpty(value));
  if (counts && rule.passes?.(value) === true) return;
  if (counts) rule.check?.(value, inside(at, name), findings);
  else if (rule.required !== undefined) {
    findings.add({ kind: "required", place: inside(at, name), detail: rule.required });
  }
}
