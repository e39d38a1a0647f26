import type { MemberCounts } from "../model/gang.ts";
import { type AskShape, partOf, type SizedAsk } from "../queues/ask-shape.ts";

/**
 * The answer for the largest part of a gang for which there is one, between all members and the fewest. A larger part
 * leaves out of each replica type the same portion of the members that it may start without. Expects that there is no
 * answer for all members, and that `least` is the one for the fewest. If there is one for some part, there is one for
 * every smaller part, so that few parts are tried.
 */
export function largestPart<T>(shape: AskShape, least: T, answer: (part: SizedAsk) => T | null): T {
  const { all, fewest } = shape;
  const spare = without(all.members, fewest?.members ?? all.members);
  const steps = Object.values(spare).reduce((sum, count) => sum + count, 0);
  let best = least;
  let [low, high] = [1, steps];
  while (low < high) {
    const middle = (low + high) >> 1;
    const left = Object.entries(spare).map(([role, count]) => [role, Math.floor((count * middle) / steps)] as const);
    const found = answer(partOf(shape, without(all.members, Object.fromEntries(left))));
    if (found === null) low = middle + 1;
    else {
      best = found;
      high = middle;
    }
  }
  return best;
}

/** A part of a gang with these members. Null: the gang does not start with them. */
export function partWith(shape: AskShape, members: MemberCounts): SizedAsk | null {
  const { all, fewest } = shape;
  if (hasMembers(all, members)) return all;
  if (fewest === null || hasMembers(fewest, members)) return fewest;
  const isPart = Object.entries(all.members).every(([role, most]) => {
    const count = members[role] ?? 0;
    return count <= most && count >= (fewest.members[role] ?? 0);
  });
  const isKnown = Object.keys(members).every((role) => role in all.members);
  return isPart && isKnown ? partOf(shape, members) : null;
}

function hasMembers({ members }: SizedAsk, named: MemberCounts): boolean {
  const roles = new Set([...Object.keys(members), ...Object.keys(named)]);
  return [...roles].every((role) => (members[role] ?? 0) === (named[role] ?? 0));
}

function without(all: MemberCounts, left: MemberCounts): MemberCounts {
  return Object.fromEntries(Object.entries(all).map(([role, count]) => [role, count - (left[role] ?? 0)]));
}
