/** Every place of a request that can grow, from its descriptor: each list, map, text and document. */
import { type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import { field as rulesExtension } from "../../../../src/gen/buf/validate/validate_pb.ts";
import type { Tree } from "../tree.ts";
import { type Filling, longText, nameOf } from "./texts.ts";

/** A place that can grow. */
export type Place = {
  /** Such as `job.metadata.labels`. */
  readonly name: string;
  /** How large it may be by its rules, in items or characters. Null: they name no limit. */
  readonly limit: number | null;
  /** About as many bytes as one more item or character costs, of names of one character. */
  readonly itemBytes: number;
  /** Changes the request in place. */
  readonly grow: (request: Tree, size: number, filling: Filling) => void;
};

type Container = (request: Tree) => Tree;

const DEPTH_MAX = 7;
/** This process cannot encode documents that are much deeper. */
export const DOCUMENT_DEPTH_MAX = 400;
const STRUCT = "google.protobuf.Struct";
/** Nothing of these grows. */
const FIXED = new Set(["google.protobuf.Duration", "google.protobuf.Timestamp"]);

export function placesOf(desc: DescMessage): readonly Place[] {
  return placesIn(desc, "", (request) => request, [desc.typeName]);
}

function placesIn(desc: DescMessage, prefix: string, container: Container, above: readonly string[]): Place[] {
  if (above.length > DEPTH_MAX) return [];
  return desc.fields.flatMap((field) => {
    const name = `${prefix}${field.name}`;
    const set = setter(field, container);
    const own: Place[] = placesOfField(field, name, set);
    if (field.message === undefined || above.includes(field.message.typeName) || isLeaf(field.message)) return own;
    const suffix = field.fieldKind === "list" ? "[0]." : field.fieldKind === "map" ? "[k]." : ".";
    return [
      ...own,
      ...placesIn(field.message, name + suffix, inner(field, container), [...above, field.message.typeName]),
    ];
  });
}

function isLeaf({ typeName }: DescMessage): boolean {
  return typeName === STRUCT || FIXED.has(typeName) || typeName === "google.protobuf.Any";
}

type Setter = (request: Tree, value: unknown) => void;

function setter(field: DescField, container: Container): Setter {
  return (request, value) => {
    const holder = container(request);
    if (field.oneof === undefined) holder[field.localName] = value;
    else holder[field.oneof.localName] = { case: field.localName, value };
  };
}

/** The message in a field, or in the first item of a list or map. Makes what is not there. */
function inner(field: DescField, container: Container): Container {
  return (request) => {
    const holder = container(request);
    const value = presentValue(field, holder);
    if (field.fieldKind === "list") {
      const list = value as Tree[];
      list[0] ??= {};
      return list[0];
    }
    if (field.fieldKind !== "map") return value as Tree;
    const map = value as Record<string, Tree>;
    const key = Object.keys(map)[0] ?? keyOf(field, "k", 0);
    map[key] ??= {};
    return map[key];
  };
}

function presentValue(field: DescField, holder: Tree): unknown {
  const empty = () => (field.fieldKind === "list" ? [] : {});
  if (field.oneof === undefined) {
    holder[field.localName] ??= empty();
    return holder[field.localName];
  }
  const chosen = holder[field.oneof.localName] as { case?: string; value?: unknown } | undefined;
  if (chosen?.case === field.localName) return chosen.value;
  const value = empty();
  holder[field.oneof.localName] = { case: field.localName, value };
  return value;
}

function placesOfField(field: DescField, name: string, set: Setter): Place[] {
  if (field.fieldKind === "list") {
    const grow = (request: Tree, size: number, filling: Filling) =>
      set(
        request,
        Array.from({ length: size }, (_, at) => itemOf(field, nameOf(filling, at), at)),
      );
    return [{ name: `${name}[]`, limit: limitOf(field, "maxItems"), itemBytes: bytesOfItem(field), grow }];
  }
  if (field.fieldKind === "map") {
    const grow = (request: Tree, size: number, { unit }: Filling) =>
      set(request, Object.fromEntries(range(size, (at) => [keyOf(field, unit, at), itemOf(field, `v${at}`, at)])));
    return [{ name: `${name}{}`, limit: limitOf(field, "maxPairs"), itemBytes: 9 + bytesOfItem(field), grow }];
  }
  if (field.message?.typeName === STRUCT) return [...documents(name, set)];
  if (field.scalar === ScalarType.BYTES) {
    const grow = (request: Tree, size: number, filling: Filling) => set(request, Buffer.from(longText(filling, size)));
    return [{ name, limit: limitOf(field, "maxLen"), itemBytes: 1, grow }];
  }
  if (field.scalar !== ScalarType.STRING) return [];
  const grow = (request: Tree, size: number, filling: Filling) => set(request, longText(filling, size));
  return [{ name, limit: limitOf(field, "maxLen") ?? limitOf(field, "maxBytes"), itemBytes: 1, grow }];
}

/** A document of JSON grows in members, in items, in depth, and in one text. */
function documents(name: string, set: Setter): readonly Place[] {
  const of = (suffix: string, itemBytes: number, make: (size: number, filling: Filling) => unknown): Place => ({
    name: `${name} ${suffix}`,
    limit: null,
    itemBytes,
    grow: (request, size, filling) => set(request, make(size, filling)),
  });
  return [
    of("members", 12, (size, { unit }) => Object.fromEntries(range(size, (at) => [`${unit}${at}`, at]))),
    of("items", 10, (size, filling) => ({ a: range(size, (at) => nameOf(filling, at)) })),
    of("text", 1, (size, filling) => ({ a: longText(filling, size) })),
    of("depth", 8, (size) => nested(Math.min(size, DOCUMENT_DEPTH_MAX))),
  ];
}

function nested(depth: number): Tree {
  let value: Tree = {};
  for (let level = 0; level < depth; level += 1) value = { a: value };
  return value;
}

function range<T>(size: number, make: (at: number) => T): T[] {
  return Array.from({ length: size }, (_, at) => make(at));
}

function keyOf(field: DescField & { fieldKind: "map" }, unit: string, at: number): string {
  return field.mapKey === ScalarType.STRING ? `${unit}${at}` : String(at);
}

/** A small value, with this name wherever it has texts. */
function itemOf(field: DescField, name: string, at: number): unknown {
  if (field.message !== undefined) return messageOf(field.message, name, at);
  if (field.enum !== undefined) return field.enum.values[1]?.number ?? 0;
  switch (field.scalar) {
    case ScalarType.STRING:
      return name;
    case ScalarType.BYTES:
      return Buffer.from(name);
    case ScalarType.BOOL:
      return true;
    case ScalarType.INT64:
    case ScalarType.UINT64:
      return BigInt(at);
    default:
      return at;
  }
}

function messageOf(desc: DescMessage, name: string, at: number): Tree {
  if (desc.typeName === STRUCT) return { a: name };
  if (isLeaf(desc)) return {};
  const texts = desc.fields.filter((field) => field.fieldKind === "scalar" && field.scalar === ScalarType.STRING);
  return Object.fromEntries(
    texts
      .filter((field) => field.oneof === undefined)
      .slice(0, 2)
      .map((field) => [field.localName, itemOf({ ...field, fieldKind: "scalar" } as DescField, name, at)]),
  );
}

function bytesOfItem(field: DescField): number {
  return field.message === undefined ? 8 : 24;
}

function limitOf(field: DescField, rule: "maxItems" | "maxPairs" | "maxLen" | "maxBytes"): number | null {
  const rules = getOption(field, rulesExtension).type.value as Readonly<Record<string, unknown>> | undefined;
  const value = rules?.[rule];
  return typeof value === "bigint" && value > 0n ? Number(value) : null;
}
