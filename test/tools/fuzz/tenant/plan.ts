/** Makes the calls of a tenant: those of every run, with names of the other tenant mixed in on purpose. */
import type { Bank } from "../bank.ts";
import { Chance } from "../chance.ts";
import { type Slot, slotsOf } from "../mutate.ts";
import { decode, encode, type PlannedCall, type PlanOptions, planCall, type Style } from "../plan.ts";
import type { Tree } from "../tree.ts";
import { OUR, THEIRS } from "./names.ts";
import { ROLES, type Role } from "./world.ts";

export type TenantPlan = PlanOptions & {
  /** What an admin learned of the other tenant. */
  readonly theirs: Bank;
};

export type TenantCall = PlannedCall & { readonly role: Role };

const STYLES: readonly Style[] = ["valid", "valid", "mutated", "mutated", "generated", "bytes"];
/**
 * A field that is set gets a name of the other tenant with one of these probabilities, the same for all fields of a
 * call. Calls about the callers' own things make them have some.
 */
const THEIRS_SHARES = [0, 0, 0, 0.1, 0.35, 0.8];
/** A field that is not set gets one more rarely: most would change what the call asks for. */
const UNSET_PART = 0.1;
/** Fields whose values an admin learned, and that would do nothing else. */
const KEPT_FIELDS = ["kind", "message", "reason", "image", "version"];

export function planTenantCall(plan: TenantPlan, number: number): TenantCall {
  const chance = Chance.ofCall(plan.seed + 11, number);
  const role = chance.pick(ROLES);
  const call = planCall(plan, number, STYLES);
  const tree = call.style === "bytes" ? null : decode(call);
  if (tree === null) return { ...call, role };
  mixIn({ chance, theirs: plan.theirs, call }, tree);
  return { ...call, role, request: encode(call.method, tree) };
}

type Mixer = { readonly chance: Chance; readonly theirs: Bank; readonly call: PlannedCall };

/** Puts the request into the callers' own place, and names of the other tenant into some of its fields. */
function mixIn(mixer: Mixer, tree: Tree): void {
  const { chance, call } = mixer;
  const theirShare = chance.pick(THEIRS_SHARES);
  for (const slot of slotsOf(call.method.input, tree)) {
    if (slot.field.scalar !== STRING || KEPT_FIELDS.includes(slot.field.name)) continue;
    if (slot.field.fieldKind !== "scalar" && !slot.isItem) continue;
    const share = slot.value === undefined || slot.value === "" ? theirShare * UNSET_PART : theirShare;
    const value = chance.is(share) ? theirName(mixer, slot) : ourName(chance, slot);
    if (value !== undefined) slot.set(value);
  }
  keepApart(tree);
}

const STRING = 9;

function theirName({ chance, theirs, call }: Mixer, { field }: Slot): string | undefined {
  const known = theirs.find(chance, call.method, field.name);
  return typeof known === "string" ? known : undefined;
}

function ourName(chance: Chance, { field, value }: Slot): string | undefined {
  if (value === undefined) return undefined;
  if (field.name === "namespace") return chance.is(0.9) ? OUR.namespace : undefined;
  if (field.name === "queue" || field.name === "default_queue")
    return chance.is(0.2) ? undefined : chance.is(0.2) ? OUR.strictQueue : OUR.queue;
  if (field.name === "project") return chance.is(0.5) ? OUR.project : undefined;
  return undefined;
}

/**
 * Jobs of the callers get no name of the other tenant: two calls that differ in it would then do something different.
 * Jobs of the other tenant are in its namespace.
 */
function keepApart(tree: Tree): void {
  const { namespace, name } = tree;
  if (typeof namespace === "string" && typeof name === "string") {
    const isTheirs = name.startsWith(THEIRS);
    if (isTheirs && namespace !== `${THEIRS}-space`) tree["namespace"] = `${THEIRS}-space`;
  }
  for (const part of Object.values(tree)) {
    if (Array.isArray(part)) for (const item of part) if (isTree(item)) keepApart(item);
    if (isTree(part)) keepApart(part);
  }
}

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}
