/** Bytes that no honest client sends: requests cut, spliced and overwritten, and messages that lie about themselves. */
import { type DescMessage, ScalarType } from "@bufbuild/protobuf";
import type { Chance } from "./chance.ts";

const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const GROUP_START = 3;
const GROUP_END = 4;
const FIXED32 = 5;

export function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let left = BigInt.asUintN(64, value);
  do {
    const low = Number(left & 0x7fn);
    left >>= 7n;
    bytes.push(left > 0n ? low | 0x80 : low);
  } while (left > 0n);
  return Buffer.from(bytes);
}

function tag(field: number, type: number): Buffer {
  return varint((BigInt(field) << 3n) | BigInt(type));
}

function delimited(field: number, content: Buffer): Buffer {
  return Buffer.concat([tag(field, LENGTH), varint(BigInt(content.length)), content]);
}

/** A message within a message, `depth` times: each is field `fields[0]`, and within it `fields[1]` and so on. */
function nested(fields: readonly number[], depth: number): Buffer {
  const tags = fields.toReversed().map((field) => tag(field, LENGTH));
  // From the inside: each level needs the length of the one within it.
  const parts: Buffer[] = [];
  let length = 0;
  for (let level = 0; level < depth * tags.length; level += 1) {
    const head = Buffer.concat([tags[level % tags.length] ?? Buffer.alloc(0), varint(BigInt(length))]);
    parts.push(head);
    length += head.length;
  }
  return Buffer.concat(parts.reverse());
}

function repeated(bytes: Buffer, count: number): Buffer {
  return Buffer.alloc(bytes.length * count, bytes);
}

type Change = (chance: Chance, bytes: Buffer, desc: DescMessage) => Buffer;

const fieldNumber = (chance: Chance, desc: DescMessage) =>
  chance.is(0.8) && desc.fields.length > 0
    ? chance.pick(desc.fields).number
    : chance.pick([0, 99, 2 ** 29 - 1, 19_000]);

const CHANGES: readonly Change[] = [
  // Cut short.
  (chance, bytes) => bytes.subarray(0, chance.int(0, Math.max(0, bytes.length - 1))),
  // Some bytes overwritten.
  (chance, bytes) => {
    const changed = Buffer.from(bytes);
    for (let left = chance.int(1, 4); left > 0 && changed.length > 0; left -= 1) {
      changed[chance.int(0, changed.length - 1)] = chance.int(0, 255);
    }
    return changed;
  },
  // Some bytes inserted.
  (chance, bytes) => {
    const at = chance.int(0, bytes.length);
    return Buffer.concat([bytes.subarray(0, at), chance.bytes(chance.int(1, 8)), bytes.subarray(at)]);
  },
  // A message twice: the second merges with the first.
  (_, bytes) => Buffer.concat([bytes, bytes]),
  // A field of another wire type.
  (chance, bytes, desc) => {
    const type = chance.pick([VARINT, FIXED64, LENGTH, FIXED32]);
    const content =
      type === LENGTH ? Buffer.concat([varint(3n), chance.bytes(3)]) : chance.bytes(type === FIXED64 ? 8 : 4);
    return Buffer.concat([bytes, tag(fieldNumber(chance, desc), type), type === VARINT ? varint(2n ** 63n) : content]);
  },
  // A length beyond the message, and beyond what fits into 32 bits.
  (chance, bytes, desc) => {
    const length = chance.pick([
      2n ** 31n - 1n,
      2n ** 31n,
      2n ** 32n - 1n,
      2n ** 32n,
      2n ** 63n,
      2n ** 64n - 1n,
      1000n,
    ]);
    return Buffer.concat([
      bytes,
      tag(fieldNumber(chance, desc), LENGTH),
      varint(length),
      chance.bytes(chance.int(0, 9)),
    ]);
  },
  // A varint of more than ten bytes, and a tag that is cut.
  (chance, bytes) => Buffer.concat([bytes, Buffer.alloc(chance.pick([1, 5, 10, 11, 20]), 0xff)]),
  // Text that is not UTF-8.
  (chance, bytes, desc) => {
    const texts = desc.fields.filter((field) => field.scalar === ScalarType.STRING || field.message !== undefined);
    const field = texts.length > 0 ? chance.pick(texts).number : 1;
    const odd = chance.pick(["ff", "c0af", "eda080", "f5808080", "61fe62", "80"]);
    return Buffer.concat([bytes, delimited(field, Buffer.from(odd, "hex"))]);
  },
  // Fields that the message does not have.
  (chance, bytes) => {
    const unknown = Array.from({ length: chance.pick([1, 3, 50, 5000]) }, () =>
      delimited(chance.int(1000, 5000), chance.is(0.5) ? Buffer.alloc(0) : Buffer.from("unknown")),
    );
    return Buffer.concat([bytes, ...unknown]);
  },
  // Groups: closed, within each other, open, and closed by another number.
  (chance, bytes) => {
    const depth = chance.pick([1, 2, 99, 101, 3000, 60_000]);
    const starts = repeated(tag(77, GROUP_START), depth);
    const ends = repeated(tag(77, GROUP_END), chance.is(0.6) ? depth : chance.int(0, 2));
    return Buffer.concat([bytes, starts, ends, chance.is(0.2) ? tag(78, GROUP_END) : Buffer.alloc(0)]);
  },
  // A message within itself. Fields of type Struct hold themselves, so that any depth decodes.
  (chance, bytes, desc) =>
    Buffer.concat([bytes, nested([fieldNumber(chance, desc)], chance.pick([10, 99, 101, 5000]))]),
  (chance, bytes, desc) => {
    const ways = waysToStruct(desc, []);
    if (ways.length === 0) return bytes;
    // Struct.fields (1) holds an entry, whose value (2) is a Value, whose list_value (6) or struct_value (5) nests.
    const depth = chance.pick([10, 60, 99, 200, 1000, 3000, 10_000]);
    const value = nested([6, 1], depth);
    const struct = delimited(1, Buffer.concat([delimited(1, Buffer.from("a")), delimited(2, value)]));
    return Buffer.concat([
      bytes,
      chance.pick(ways).reduceRight<Buffer>((inner, field) => delimited(field, inner), struct),
    ]);
  },
  // Any bytes.
  (chance) => chance.bytes(chance.pick([0, 1, 2, 5, 20, 200, 5000])),
];

/** Paths of field numbers to every Struct of a message. Entries of maps hold their value as field 2. */
function waysToStruct(desc: DescMessage, way: readonly number[]): readonly (readonly number[])[] {
  if (way.length > 8) return [];
  return desc.fields.flatMap((field) => {
    if (field.message === undefined) return [];
    const next = field.fieldKind === "map" ? [...way, field.number, 2] : [...way, field.number];
    if (field.message.typeName === "google.protobuf.Struct") return [next];
    return field.message.typeName.startsWith("gangway.") ? waysToStruct(field.message, next) : [];
  });
}

/** The bytes of a good request, made bad in one to three ways. */
export function badBytes(chance: Chance, good: Buffer, desc: DescMessage): Buffer {
  let bytes = good;
  for (
    let left = chance.weighted([
      [7, 1],
      [2, 2],
      [1, 3],
    ]);
    left > 0;
    left -= 1
  ) {
    bytes = chance.pick(CHANGES)(chance, bytes, desc);
  }
  return bytes;
}
