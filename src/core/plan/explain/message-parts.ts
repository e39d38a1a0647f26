import { ofRole } from "../../job/flavor-labels.ts";
import { isBytes, type Resources } from "../../pods/resources.ts";
import { AMOUNT_ABOVE, amountText } from "../../quota/allocations.ts";
import { compareResources } from "../capacity/fit.ts";
import type { FlavorChoice } from "../model/flavors.ts";
import { type MemberGroup, podCount } from "../model/gang.ts";

/** A gang's request as an on-call engineer reads it: `4 pods of 8 nvidia.com/gpu (gpu/h100)`. */
export function describeNeed(groups: readonly MemberGroup[], choice: FlavorChoice): string {
  const kinds = new Map<string, number>();
  for (const group of groups) {
    const words = describePod(group.requests, ofRole(choice, group.role));
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
    .sort(([a], [b]) => compareResources(a, b))
    .map(([name, amount]) => (name === "cpu" ? `${units(amount)} cpu` : `${bytes(amount)} ${name}`));
  return plain.length > 0 ? ` of ${plain.join(" and ")}` : "";
}

/** A whole amount of more than 2^53 thousandths is exact again once it is in units. */
function unitsOf(milli: number): number {
  return Number.isSafeInteger(milli) ? milli / 1000 : Math.round(milli / 1000);
}

function units(milli: number): string {
  return amountText(unitsOf(milli));
}

const BINARY_UNITS = ["", "Ki", "Mi", "Gi", "Ti"];

/** An amount above 0 in the largest binary unit that leaves no fraction. */
function bytes(milli: number): string {
  let amount = unitsOf(milli);
  if (amount >= AMOUNT_ABOVE) return `${AMOUNT_ABOVE / 1024 ** 4}Ti or more`;
  let at = 0;
  while (at < BINARY_UNITS.length - 1 && amount % 1024 === 0) {
    amount /= 1024;
    at += 1;
  }
  return `${amount}${BINARY_UNITS[at]}`;
}

/** An exact amount of bytes has at most so many characters. A longer one is rounded. */
const BYTES_LENGTH_MAX = 7;

/** An amount to read. A long one of bytes gets two decimals, and `round` keeps a need above what is free. */
export function amountWords(resource: string, milli: number, round: (amount: number) => number): string {
  if (!isBytes(resource) || milli === 0) return units(milli);
  const exact = bytes(milli);
  if (exact.length <= BYTES_LENGTH_MAX) return exact;
  if (unitsOf(milli) >= AMOUNT_ABOVE) return exact;
  const at = Math.min(BINARY_UNITS.length - 1, Math.floor(Math.log2(milli / 1000) / 10));
  return `${round((milli / 1000 / 1024 ** at) * 100) / 100}${BINARY_UNITS[at]}`;
}
