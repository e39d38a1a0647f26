/** Makes a failing request smaller: drops one field after the other as long as it still fails. */

import { slotsOf } from "./mutate.ts";
import { decode, encode, type PlannedCall } from "./plan.ts";
import { treeOf } from "./tree.ts";

const TRIES_MAX = 150;

/** `fails` sends a request and tells whether it has the same problem. */
export async function shrunk(call: PlannedCall, fails: (call: PlannedCall) => Promise<boolean>): Promise<PlannedCall> {
  let smallest = call;
  let tries = 0;
  for (let at = 0; tries < TRIES_MAX; ) {
    const tree = decode(smallest);
    if (tree === null) return smallest;
    const slot = slotsOf(call.method.input, tree)[at];
    if (slot === undefined) return smallest;
    at += 1;
    if (slot.value === undefined) continue;
    slot.drop();
    const request = encode(call.method, treeOf(tree));
    if (request.length >= smallest.request.length) continue;
    tries += 1;
    const smaller = { ...call, request };
    if (!(await fails(smaller))) continue;
    smallest = smaller;
    at = 0;
  }
  return smallest;
}
