/** Selectors of labels as kubectl has them: `a=b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a` and `!a`. */
import { usageFailure } from "../shell/exit.ts";

/** A condition of a selector on the label of a key. `values`: empty for `exists` and `missing`. */
export type LabelRequirement = {
  readonly key: string;
  readonly is: "in" | "notIn" | "exists" | "missing";
  readonly values: readonly string[];
};

/** A selector: labels with one value each, which the service compares, and the rest, which this program does. */
export type LabelSelector = {
  readonly labels: Readonly<Record<string, string>>;
  readonly others: readonly LabelRequirement[];
};

/** Collects the parts of a selector, which may be repeated. Commas within parentheses separate values. */
export function selectorParts(value: string, before: readonly string[] | undefined): readonly string[] {
  const parts = [""];
  let isWithin = false;
  for (const letter of value) {
    if (letter === "(" || letter === ")") isWithin = letter === "(";
    if (letter === "," && !isWithin) parts.push("");
    else parts.push(`${parts.pop() ?? ""}${letter}`);
  }
  return [...(before ?? []), ...parts.map((part) => part.trim()).filter((part) => part !== "")];
}

const EQUAL = /^([^=!,()\s]+)\s*==?\s*([^=!,()\s]*)$/;
const UNEQUAL = /^([^=!,()\s]+)\s*!=\s*([^=!,()\s]*)$/;
const IN_SET = /^([^=!,()\s]+)\s+(in|notin)\s*\(([^()]*)\)$/;
const EXISTS = /^(!?)\s*([^=!,()\s]+)$/;

/** Reads the parts of a selector. */
export function labelSelectorOf(parts: readonly string[]): LabelSelector {
  const labels: Record<string, string> = {};
  const others: LabelRequirement[] = [];
  for (const part of parts) {
    const requirement = requirementOf(part);
    const [only = "", ...more] = requirement.values;
    if (requirement.is !== "in" || more.length > 0) {
      others.push(requirement);
      continue;
    }
    const { key } = requirement;
    const other = labels[key];
    if (other !== undefined && other !== only)
      throw usageFailure(`--selector gives ${key} two values, ${other} and ${only}: no job has both`);
    labels[key] = only;
  }
  return { labels, others };
}

function requirementOf(part: string): LabelRequirement {
  const [, equalKey, equal = ""] = EQUAL.exec(part) ?? [];
  if (equalKey !== undefined) return { key: equalKey, is: "in", values: [equal] };
  const [, otherKey, other = ""] = UNEQUAL.exec(part) ?? [];
  if (otherKey !== undefined) return { key: otherKey, is: "notIn", values: [other] };
  const [, setKey, word, set = ""] = IN_SET.exec(part) ?? [];
  if (setKey !== undefined) return { key: setKey, is: word === "in" ? "in" : "notIn", values: valuesOf(set, part) };
  const [, not, key] = EXISTS.exec(part) ?? [];
  if (key !== undefined) return { key, is: not === "!" ? "missing" : "exists", values: [] };
  throw usageFailure(
    `--selector must be KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY or !KEY, not ${part}`,
  );
}

function valuesOf(set: string, part: string): readonly string[] {
  const values = [...new Set(set.split(",").map((value) => value.trim()))];
  if (values.length === 1 && values[0] === "") throw usageFailure(`--selector: ${part} has no values`);
  return values;
}

/** True if labels are as all of these ask. As in Kubernetes, a missing label passes `notin` and `!=`. */
export function passes(labels: Readonly<Record<string, string>>, requirements: readonly LabelRequirement[]): boolean {
  return requirements.every(({ key, is, values }) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    if (is === "exists") return value !== undefined;
    if (is === "missing") return value === undefined;
    const isAmong = value !== undefined && values.includes(value);
    return is === "in" ? isAmong : !isAmong;
  });
}
