/** The shapes of rules, and makers of the common ones. */
import type { Json, JsonObject } from "../../../runtime/json.ts";
import type { Findings } from "./finding.ts";
import type { PodPlace } from "./place.ts";
import type { Syntax } from "./syntax.ts";
import type { WholePod } from "./whole-pod.ts";

/** A rule for one member of a type. An empty text, zero and an empty list count as absent, as in Kubernetes. */
export type MemberRule = {
  /** What is allowed, for people. Empty: any value. */
  readonly says: string;
  /** Kubernetes' words for a member that must be set; may be empty. Omitted: it may be absent. */
  readonly required?: string;
  /** True: the check also sees an empty text or zero, which Kubernetes does not take for absent here. */
  readonly seesEmpty?: true;
  readonly check?: (value: Json, place: PodPlace, findings: Findings) => void;
  /** True for a value in which the check finds nothing. It only saves time. Omitted: the check decides. */
  readonly passes?: (value: Json) => boolean;
};

/** By member. */
export type MemberRules = Readonly<Record<string, MemberRule>>;

/** A rule about several members of an object, or about an object and its pod. */
export type ObjectRule = {
  readonly says: string;
  readonly judge: (
    object: JsonObject,
    place: PodPlace,
    of: { readonly pod: WholePod; readonly findings: Findings },
  ) => void;
};

/** The rules of types, by type. */
export type TypeRules = Readonly<
  Record<string, { readonly members?: MemberRules; readonly whole?: readonly ObjectRule[] }>
>;

/** A text that must follow a syntax. */
export function text(syntax: Syntax): MemberRule {
  return {
    says: syntax.allowed,
    check: (value, place, findings) => checkText(syntax, value, place, findings),
    passes: (value) => typeof value === "string" && syntax.fits(value),
  };
}

/** The same for each text of a list. */
export function texts(syntax: Syntax): MemberRule {
  const check: MemberRule["check"] = (value, place, findings) => {
    if (!Array.isArray(value)) return;
    for (const [index, item] of (value as readonly Json[]).entries()) {
      checkText(syntax, item ?? "", { up: place, step: index }, findings);
    }
  };
  return { says: `each ${syntax.allowed}`, check };
}

export function checkText(syntax: Syntax, value: Json, place: PodPlace, findings: Findings): void {
  if (typeof value !== "string" || syntax.fits(value)) return;
  for (const detail of syntax.problems(value)) {
    findings.add({ kind: "invalid", place, value, detail, allowed: syntax.allowed });
  }
}

/** One of some texts. */
export function oneOf(...values: readonly string[]): MemberRule {
  const check: MemberRule["check"] = (value, place, findings) => {
    if (typeof value === "string" && !values.includes(value)) findings.add(unsupported(place, value, values));
  };
  return { says: choiceText(values), check, passes: (value) => values.includes(value as string) };
}

export function unsupported(place: PodPlace, value: Json, values: readonly string[]) {
  const detail = `supported values: ${values.map((one) => JSON.stringify(one)).join(", ")}`;
  return { kind: "unsupported", place, value, detail, allowed: choiceText(values) } as const;
}

const CHOICES_SHOWN_MAX = 12;

function choiceText(values: readonly string[]): string {
  const named = values.filter((value) => value !== "");
  const shown = named.slice(0, CHOICES_SHOWN_MAX);
  const more = named.length > shown.length ? [`one of ${named.length - shown.length} more`] : [];
  const all = [...shown, ...more];
  return all.length === 1 ? `must be ${all[0]}` : `must be ${all.slice(0, -1).join(", ")} or ${all.at(-1)}`;
}

/** A number within bounds. */
export function range(min: number, max: number): MemberRule {
  const says = `must be between ${min} and ${max}, inclusive`;
  return numberRule(says, (value) => value >= min && value <= max);
}

export function numberRule(says: string, holds: (value: number) => boolean, detail = says): MemberRule {
  const check: MemberRule["check"] = (value, place, findings) => {
    if (typeof value === "number" && !holds(value))
      findings.add({ kind: "invalid", place, value, detail, allowed: says });
  };
  return { says, check, passes: (value) => typeof value === "number" && holds(value) };
}

export const NOT_NEGATIVE = numberRule(
  "must be 0 or more",
  (value) => value >= 0,
  "must be greater than or equal to 0",
);
export const FILE_MODE = numberRule(
  "must be from 0 to 511, which is 0777 in octal",
  (value) => value >= 0 && value <= 0o777,
  "must be a number between 0 and 0777 (octal), both inclusive",
);
export const USER_ID = range(0, 2 ** 31 - 1);
export const ANY: MemberRule = { says: "" };

/** A member that must be set, and follow a rule. */
export function required(rule: MemberRule = ANY, detail = ""): MemberRule {
  return { ...rule, required: detail };
}

/** A rule that also counts for an empty text or zero, which are values here. */
export function evenEmpty(rule: MemberRule): MemberRule {
  return { ...rule, seesEmpty: true };
}
