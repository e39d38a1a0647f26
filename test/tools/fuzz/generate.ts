/** Builds requests from descriptors alone: every field, with values that its rules allow, and with others. */
import { type DescField, type DescMessage, type DescMethod, ScalarType } from "@bufbuild/protobuf";
import type { Bank } from "./bank.ts";
import type { Chance } from "./chance.ts";
import { copies } from "./copies.ts";
import { anyMap, deepJson, podTemplate } from "./json.ts";
import { enumNumber, oddText, scalar, size } from "./scalars.ts";
import type { Tree } from "./tree.ts";

/** The use of a value: known values of the method's service are better than any other. */
export type Maker = { readonly chance: Chance; readonly bank: Bank; readonly method: DescMethod };

const DEPTH_MAX = 6;
const KNOWN_SHARE = 0.6;
const STRUCT = "google.protobuf.Struct";

export function generateMessage(maker: Maker, desc: DescMessage, depth = 0): Tree {
  const special = wellKnown(maker, desc);
  if (special !== null) return special;
  const tree: Tree = {};
  for (const member of desc.members) {
    if (depth > DEPTH_MAX || maker.chance.is(depth === 0 ? 0.2 : 0.5)) continue;
    if (member.kind === "oneof") {
      const field = maker.chance.pick(member.fields);
      tree[member.localName] = { case: field.localName, value: generateField(maker, field, depth) };
    } else {
      tree[member.localName] = generateField(maker, member, depth);
    }
  }
  return tree;
}

/** A value for a field, a list or map included. */
export function generateField(maker: Maker, field: DescField, depth: number): unknown {
  const { chance } = maker;
  if (field.fieldKind === "list") {
    const items = size(chance, field);
    // A list as long as its rules allow repeats one item: making thousands of items would cost more than the call.
    const item = generateSingle(maker, field, depth + 1);
    if (items > 8) return copies(item, items);
    return Array.from({ length: items }, () => generateSingle(maker, field, depth + 1));
  }
  if (field.fieldKind === "map") {
    const keys = Array.from({ length: size(chance, field) }, (_, at) => (at > 4 ? `k${at}` : mapKey(maker, field)));
    return Object.fromEntries(keys.map((key) => [key, generateSingle(maker, field, depth + 1)]));
  }
  return generateSingle(maker, field, depth);
}

/** A value of a field, or of one item of a list or map. */
export function generateSingle(maker: Maker, field: DescField, depth: number): unknown {
  const { chance, bank, method } = maker;
  if (field.message !== undefined) {
    return field.message.typeName === STRUCT ? struct(chance, field) : generateMessage(maker, field.message, depth + 1);
  }
  if (field.enum !== undefined) return enumNumber(chance, field.enum);
  const type = field.scalar ?? ScalarType.STRING;
  if (chance.is(KNOWN_SHARE)) {
    const known = bank.find(chance, method, field.name);
    if (typeof known === "string" && type === ScalarType.STRING) return known;
    if (typeof known === "bigint" && type === ScalarType.INT64) return known + BigInt(chance.int(-1, 1));
  }
  return scalar(chance, field, type);
}

const MAP_KEYS = ["Worker", "Master", "Launcher", "PS", "worker", "Chief", "team", "example.com/team", "cpu"];

function mapKey({ chance }: Maker, field: DescField & { fieldKind: "map" }): string | number {
  if (field.mapKey !== ScalarType.STRING) return chance.int(-1, 3);
  return chance.is(0.8) ? chance.pick(MAP_KEYS) : oddText(chance);
}

function struct(chance: Chance, field: DescField): Tree {
  if (chance.is(0.02)) return deepJson(chance, chance.pick([20, 90, 110, 400]));
  return field.name === "template" ? podTemplate(chance) : anyMap(chance);
}

const SECONDS = [0n, 1n, -1n, 59n, 3600n, 31_622_400n, 31_622_401n, 315_576_000_000n, 315_576_000_001n, 2n ** 62n];
const NANOS = [0, 0, 1, -1, 999_999_999, 1_000_000_000, 2 ** 31 - 1];
const PATHS = ["spec.priority", "metadata.labels", "spec.run_policy.suspend", "spec.replica_specs"];
const ODD_PATHS = ["*", "", "spec", ".", "spec..priority", "spec.replica_specs.Worker.replicas", "status.phase"];

/** Messages of google.protobuf, whose fields have rules of their own. Null: an ordinary message. */
function wellKnown({ chance }: Maker, { typeName }: DescMessage): Tree | null {
  if (typeName === "google.protobuf.Duration" || typeName === "google.protobuf.Timestamp") {
    return { seconds: chance.pick(SECONDS), nanos: chance.pick(NANOS) };
  }
  if (typeName === "google.protobuf.FieldMask") {
    const path = () =>
      chance.is(0.8) ? chance.pick(PATHS) : chance.is(0.7) ? chance.pick(ODD_PATHS) : oddText(chance);
    return { paths: Array.from({ length: chance.int(0, 3) }, path) };
  }
  if (typeName === "google.protobuf.Any") return { typeUrl: oddText(chance), value: chance.bytes(4) };
  return null;
}
