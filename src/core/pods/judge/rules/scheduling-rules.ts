/** The rules for where a pod may run: affinities, tolerations, spread, selectors. */
import { arrayAt, isJsonObject, type JsonObject, numberAt, objectAt, stringAt } from "../../../../runtime/json.ts";
import type { Finding, Findings } from "../finding.ts";
import { labelFindings } from "../label-findings.ts";
import { inside, type PodPlace } from "../place.ts";
import {
  checkText,
  evenEmpty,
  numberRule,
  type ObjectRule,
  oneOf,
  required,
  type TypeRules,
  text,
  texts,
  unsupported,
} from "../rule.ts";
import { isAbsent } from "../set.ts";
import { SYNTAX } from "../syntax.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";

/** How many values each operator takes. */
const OPERATORS = { some: ["In", "NotIn"], none: ["Exists", "DoesNotExist"], one: ["Gt", "Lt"] };

type Requirement = { readonly value: JsonObject; readonly place: PodPlace; readonly findings: Findings };

/** Judges one requirement of a selector. `one`: the operators that take one value. */
function judgeOperator({ value, place, findings }: Requirement, one: readonly string[]): void {
  const operator = stringAt(value, "operator") ?? "";
  const count = arrayAt(value, "values").length;
  const at = inside(place, "values");
  if (OPERATORS.some.includes(operator)) {
    if (count > 0) return;
    findings.add({ kind: "required", place: at, detail: "must be specified when `operator` is 'In' or 'NotIn'" });
  } else if (OPERATORS.none.includes(operator)) {
    const detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
    if (count > 0) findings.add({ kind: "forbidden", place: at, detail });
  } else if (one.includes(operator)) {
    const detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
    if (count !== 1) findings.add({ kind: "required", place: at, detail });
  } else {
    const allowed = `must be one of ${[...OPERATORS.some, ...OPERATORS.none, ...one].join(", ")}`;
    const detail = "not a valid selector operator";
    findings.add({ kind: "invalid", place: inside(place, "operator"), value: operator, detail, allowed });
  }
}

const LABEL_REQUIREMENT: ObjectRule = {
  says: "operator must be In or NotIn, with values, or Exists or DoesNotExist, without",
  judge: (value, place, { findings }) => judgeOperator({ value, place, findings }, []),
};

/** A field of nodes is judged as its own rule says: `matchFields` holds requirements of the same type. */
const NODE_REQUIREMENT: ObjectRule = {
  says: "operator must be In or NotIn, with values, Exists or DoesNotExist, without, or Gt or Lt, with one value",
  judge: (value, place, { findings }) => {
    if (place?.up?.step === "matchFields") judgeField({ value, place, findings });
    else {
      judgeOperator({ value, place, findings }, OPERATORS.one);
      checkText(SYNTAX.labelKey, stringAt(value, "key") ?? "", inside(place, "key"), findings);
      // Kubernetes does not judge the values of terms that are only preferred.
      if (isWithin(place, REQUIRED)) judgeValues(value, place, findings);
    }
  },
};

function judgeValues(requirement: JsonObject, place: PodPlace, findings: Findings): void {
  const at = inside(place, "values");
  for (const [index, item] of arrayAt(requirement, "values").entries()) {
    checkText(SYNTAX.labelValue, item ?? "", inside(at, index), findings);
  }
}

function isWithin(place: PodPlace, step: string): boolean {
  for (let at = place; at !== null; at = at.up) if (at.step === step) return true;
  return false;
}

function judgeField({ value, place, findings }: Requirement): void {
  const operator = stringAt(value, "operator") ?? "";
  const values = arrayAt(value, "values");
  if (!OPERATORS.some.includes(operator)) {
    const detail = "not a valid selector operator";
    findings.add({ kind: "invalid", place: inside(place, "operator"), value: operator, detail });
  } else if (values.length !== 1) {
    const detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
    findings.add({ kind: "required", place: inside(place, "values"), detail });
  }
  const key = stringAt(value, "key") ?? "";
  if (key !== "metadata.name") {
    findings.add({
      kind: "invalid",
      place: inside(place, "key"),
      value: key,
      detail: "not a valid field selector key",
    });
    return;
  }
  for (const [index, item] of values.entries()) {
    checkText(SYNTAX.subdomain, item ?? "", inside(inside(place, "values"), index), findings);
  }
}

const SELECTOR_LABELS: ObjectRule = {
  says: "matchLabels must have keys and values of labels",
  judge: (selector, place, { findings }) => {
    for (const finding of labelFindings(objectAt(selector, "matchLabels"), inside(place, "matchLabels"))) {
      findings.add(finding);
    }
  },
};

const WEIGHT = evenEmpty(
  numberRule("must be from 1 to 100", (value) => value >= 1 && value <= 100, "must be in the range 1-100"),
);

/** Kubernetes reads an absent weight as 0. */
const WEIGHT_RULE: ObjectRule = {
  says: "weight must be set",
  judge: (term, place, { findings }) => {
    if (!isAbsent(term["weight"])) return;
    const detail = "must be in the range 1-100";
    findings.add({ kind: "invalid", place: inside(place, "weight"), value: 0, detail });
  },
};

/** Keys of labels whose values the pod's own labels give. Kubernetes adds them to the selector before it judges. */
const LABEL_KEYS: ObjectRule = {
  says: "matchLabelKeys and mismatchLabelKeys need a labelSelector, must differ, and must not be keys of that selector",
  judge: (term, place, { pod, findings }) => {
    const match = textsAt(term, "matchLabelKeys");
    const mismatch = textsAt(term, "mismatchLabelKeys");
    const selector = term["labelSelector"];
    for (const [member, keys] of [
      ["matchLabelKeys", match],
      ["mismatchLabelKeys", mismatch],
    ] as const) {
      const at = inside(place, member);
      if (keys.length > 0 && !isJsonObject(selector)) {
        findings.add({ kind: "forbidden", place: at, detail: "must not be specified when labelSelector is not set" });
      }
    }
    const added = [...match, ...mismatch].filter((key) => pod.labels[key] !== undefined);
    for (const key of isJsonObject(selector) ? repeatedKeys(selector, match, added) : []) {
      const detail = "exists in both matchLabelKeys and labelSelector";
      findings.add({ kind: "invalid", place: inside(place, "matchLabelKeys"), value: key, detail });
    }
    const others = new Set(mismatch);
    for (const [index, key] of match.entries()) {
      if (!others.has(key)) continue;
      const at = inside(inside(place, "matchLabelKeys"), index);
      const detail = "exists in both matchLabelKeys and mismatchLabelKeys";
      findings.add({ kind: "invalid", place: at, value: key, detail });
    }
  },
};

function textsAt(object: JsonObject, member: string): readonly string[] {
  return arrayAt(object, member).map((item) => (typeof item === "string" ? item : ""));
}

function repeatedKeys(selector: JsonObject, match: readonly string[], added: readonly string[]): readonly string[] {
  const keys = new Set(Object.keys(objectAt(selector, "matchLabels")));
  const matched = new Set(match);
  const own = arrayAt(selector, "matchExpressions").map((one) => stringAt(one, "key") ?? "");
  return [...own, ...added].filter((key) => {
    const isRepeated = matched.has(key) && keys.has(key);
    keys.add(key);
    return isRepeated;
  });
}

/** The topology key of an affinity is a label; that of a spread constraint may be any text. */
const TOPOLOGY_KEY = required(text(SYNTAX.labelKey), "can not be empty");

const TOLERATION: ObjectRule = {
  says:
    "without a key, operator must be Exists; a value needs the operator Equal, and must be the value of a label; " +
    "tolerationSeconds need the effect NoExecute",
  judge: (toleration, place, { findings }) => {
    const operator = stringAt(toleration, "operator") ?? "";
    const value = stringAt(toleration, "value") ?? "";
    const effect = stringAt(toleration, "effect") ?? "";
    const at = inside(place, "operator");
    if (!stringAt(toleration, "key") && operator !== "Exists") {
      const detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"';
      findings.add({ kind: "invalid", place: at, value: operator, detail });
    }
    if (!isAbsent(toleration["tolerationSeconds"]) && effect !== "NoExecute") {
      const detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
      findings.add({ kind: "invalid", place: inside(place, "effect"), value: effect, detail });
    }
    for (const finding of operatorFindings(operator, value, { at, value: inside(place, "value") }))
      findings.add(finding);
  },
};

function operatorFindings(
  operator: string,
  value: string,
  { at, value: place }: { readonly at: PodPlace; readonly value: PodPlace },
): readonly Finding[] {
  if (operator === "Exists") {
    const detail = "value must be empty when `operator` is 'Exists'";
    return value === "" ? [] : [{ kind: "invalid", place, field: at, value, detail }];
  }
  if (operator !== "" && operator !== "Equal") {
    // The other operators of Kubernetes 1.36 need a feature that is not enabled by default.
    const known = operator === "Lt" || operator === "Gt" ? ["Equal", "Exists", "Lt", "Gt"] : ["Equal", "Exists"];
    return [{ ...unsupported(at, operator, known), allowed: "must be Equal or Exists" }];
  }
  const problems = SYNTAX.labelValue.problems(value);
  const { allowed } = SYNTAX.labelValue;
  return problems.length === 0
    ? []
    : [{ kind: "invalid", place, field: at, value, detail: problems.join(";"), allowed }];
}

const MIN_DOMAINS: ObjectRule = {
  says: "minDomains needs whenUnsatisfiable: DoNotSchedule",
  judge: (constraint, place, { findings }) => {
    const action = stringAt(constraint, "whenUnsatisfiable") ?? "";
    const value = constraint["minDomains"];
    if (isAbsent(value) || action === "DoNotSchedule") return;
    const detail = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${action}`;
    findings.add({ kind: "invalid", place: inside(place, "minDomains"), value, detail });
  },
};

const MAX_SKEW: ObjectRule = {
  says: "maxSkew must be more than 0",
  judge: (constraint, place, { findings }) => {
    const value = numberAt(constraint, "maxSkew") ?? 0;
    if (value > 0) return;
    findings.add({ kind: "invalid", place: inside(place, "maxSkew"), value, detail: "must be greater than zero" });
  },
};

/** No two constraints are for the same key and action. */
export const SPREAD_REPEATS: ObjectRule = {
  says: "topologySpreadConstraints must differ in topologyKey or whenUnsatisfiable",
  judge: (spec, place, { findings }) => {
    const seen = new Set<string>();
    const list = arrayAt(spec, "topologySpreadConstraints");
    for (const [index, one] of list.entries()) {
      const value = `{${stringAt(one, "topologyKey") ?? ""}, ${stringAt(one, "whenUnsatisfiable") ?? ""}}`;
      const at = inside(inside(place, "topologySpreadConstraints"), index);
      if (seen.has(value)) {
        const allowed = "must be unique: another constraint has this topologyKey and whenUnsatisfiable";
        const field = inside(at, "{topologyKey, whenUnsatisfiable}");
        findings.add({ kind: "duplicate", place: at, field, value, detail: "", allowed });
      }
      seen.add(value);
    }
  },
};

/** The labels that nodes must have. */
export const NODE_SELECTOR: ObjectRule = {
  says: "nodeSelector must have keys and values of labels",
  judge: (spec, place, { findings }) => {
    for (const finding of labelFindings(objectAt(spec, "nodeSelector"), inside(place, "nodeSelector"))) {
      findings.add(finding);
    }
  },
};

const POLICY = evenEmpty(oneOf("Honor", "Ignore"));
const MORE_THAN_ZERO = numberRule("must be more than 0", (value) => value > 0, "must be greater than zero");

export const SCHEDULING_RULES: TypeRules = {
  NodeSelector: { members: { nodeSelectorTerms: required(undefined, "must have at least one node selector term") } },
  NodeSelectorRequirement: { whole: [NODE_REQUIREMENT] },
  PreferredSchedulingTerm: { members: { weight: WEIGHT }, whole: [WEIGHT_RULE] },
  WeightedPodAffinityTerm: { members: { weight: WEIGHT, podAffinityTerm: required() }, whole: [WEIGHT_RULE] },
  PodAffinityTerm: {
    members: {
      topologyKey: TOPOLOGY_KEY,
      namespaces: texts(SYNTAX.label),
      matchLabelKeys: texts(SYNTAX.labelKey),
      mismatchLabelKeys: texts(SYNTAX.labelKey),
    },
    whole: [LABEL_KEYS],
  },
  LabelSelector: { whole: [SELECTOR_LABELS] },
  LabelSelectorRequirement: {
    members: { key: required(text(SYNTAX.labelKey)), values: texts(SYNTAX.labelValue) },
    whole: [LABEL_REQUIREMENT],
  },
  Toleration: {
    members: { key: text(SYNTAX.labelKey), effect: oneOf("NoSchedule", "PreferNoSchedule", "NoExecute") },
    whole: [TOLERATION],
  },
  TopologySpreadConstraint: {
    members: {
      topologyKey: required(undefined, "can not be empty"),
      whenUnsatisfiable: required(oneOf("DoNotSchedule", "ScheduleAnyway")),
      minDomains: evenEmpty(MORE_THAN_ZERO),
      nodeAffinityPolicy: POLICY,
      nodeTaintsPolicy: POLICY,
      matchLabelKeys: texts(SYNTAX.labelKey),
    },
    whole: [MAX_SKEW, MIN_DOMAINS, LABEL_KEYS],
  },
  PodReadinessGate: { members: { conditionType: required(text(SYNTAX.labelKey)) } },
  PodSchedulingGate: { members: { name: required(text(SYNTAX.labelKey)) } },
};
