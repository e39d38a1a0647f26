import type { Resources } from "../pods/resources.ts";
import type { FlavorChoice } from "./flavors.ts";
import { type MemberGroup, podCount } from "./gang.ts";

/** A gang's request as an on-call engineer reads it: `4 pods of 8 nvidia.com/gpu (gpu/h100)`. */
export function describeNeed(groups: readonly MemberGroup[], choice: FlavorChoice): string {
  const kinds = new Map<string, number>();
  for (const group of groups) {
    const words = describePod(group.requests, choice);
    kinds.set(words, (kinds.get(words) ?? 0) + group.count);
  }
  const [first = "", ...more] = kinds.keys();
  if (more.length === 0) return pods(podCount(groups)) + first;
  const parts = [...kinds].map(([words, count]) => `${count}${words}`);
  return `${pods(podCount(groups))} (${parts.join(", ")})`;
}

function pods(count: number): string {
  return count === 1 ? "1 pod" : `${count} pods`;
}

/** The flavored resources of a pod, if it requests any, else its processors and memory. */
function describePod(requests: Resources, choice: FlavorChoice): string {
  const flavored = Object.entries(choice)
    .filter(([resource]) => (requests[resource] ?? 0) > 0)
    .map(([resource, flavor]) => `${units(requests[resource] ?? 0)} ${resource} (${flavor})`);
  if (flavored.length > 0) return ` of ${flavored.join(" and ")}`;
  const plain = Object.entries(requests)
    .filter(([name, amount]) => name !== "pods" && amount > 0)
    .map(([name, amount]) => (name === "cpu" ? `${units(amount)} cpu` : `${bytes(amount)} ${name}`));
  return plain.length > 0 ? ` of ${plain.join(" and ")}` : "";
}

function units(milli: number): string {
  return String(milli / 1000);
}

/** An amount above 0 in the largest binary unit that leaves no fraction. */
function bytes(milli: number): string {
  const names = ["", "Ki", "Mi", "Gi", "Ti"];
  let amount = milli / 1000;
  let at = 0;
  while (at < names.length - 1 && amount % 1024 === 0) {
    amount /= 1024;
    at += 1;
  }
  return `${amount}${names[at]}`;
}
