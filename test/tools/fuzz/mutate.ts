/** Changes a request that is known to be good in one to three places, at any depth. */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { copies } from "./copies.ts";
import { generateField, generateSingle, type Maker } from "./generate.ts";
import { changedJson, type Json } from "./json.ts";
import type { Tree } from "./tree.ts";

/** A place in a message that can hold another value. */
export type Slot = {
  readonly field: DescField;
  readonly value: unknown;
  readonly depth: number;
  readonly set: (value: unknown) => void;
  readonly drop: () => void;
  /** A list or a map as a whole, or one of its items. */
  readonly isItem: boolean;
};

const STRUCT = "google.protobuf.Struct";
const COPIES = [2, 3, 65, 1001];

/** Changes the tree in place. */
export function mutate(maker: Maker, desc: DescMessage, tree: Tree): void {
  for (
    let left = maker.chance.weighted([
      [6, 1],
      [3, 2],
      [1, 3],
    ]);
    left > 0;
    left -= 1
  ) {
    const slots = slotsOf(desc, tree);
    if (slots.length === 0) return;
    changeSlot(maker, maker.chance.pick(slots));
  }
}

function changeSlot(maker: Maker, slot: Slot): void {
  const { chance } = maker;
  const { field, value } = slot;
  if (field.message?.typeName === STRUCT && value !== undefined && isSingle(slot) && chance.is(0.85)) {
    slot.set(changedJson(chance, value as Json));
    return;
  }
  if (value !== undefined && chance.is(0.15)) {
    slot.drop();
    return;
  }
  if (field.fieldKind === "list" && !slot.isItem && Array.isArray(value) && value.length > 0 && chance.is(0.3)) {
    slot.set(copies(value[0], chance.pick(COPIES)));
    return;
  }
  slot.set(slot.isItem ? generateSingle(maker, field, slot.depth) : generateField(maker, field, slot.depth));
}

function isSingle({ field, isItem }: Slot): boolean {
  return isItem || field.fieldKind === "message";
}

/** Every place of a message, also those of fields that are not set. */
export function slotsOf(desc: DescMessage, tree: Tree, depth = 0): Slot[] {
  const slots: Slot[] = [];
  for (const member of desc.members) {
    if (member.kind === "field") {
      const key = member.localName;
      slots.push(fieldSlot(member, tree, key, depth), ...inner(member, tree[key], depth));
      continue;
    }
    const chosen = tree[member.localName] as { case?: string; value?: unknown } | undefined;
    for (const field of member.fields) {
      const isSet = chosen?.case === field.localName;
      slots.push({
        field,
        value: isSet ? chosen.value : undefined,
        depth,
        isItem: false,
        set: (value) => {
          tree[member.localName] = { case: field.localName, value };
        },
        drop: () => {
          delete tree[member.localName];
        },
      });
      if (isSet) slots.push(...inner(field, chosen.value, depth));
    }
  }
  return slots;
}

function fieldSlot(field: DescField, tree: Tree, key: string, depth: number): Slot {
  return {
    field,
    value: tree[key],
    depth,
    isItem: false,
    set: (value) => {
      tree[key] = value;
    },
    drop: () => {
      delete tree[key];
    },
  };
}

/** The places within the value of a field. */
function inner(field: DescField, value: unknown, depth: number): Slot[] {
  if (value === undefined || value === null) return [];
  if (field.fieldKind === "message") return within(field, value, depth);
  if (field.fieldKind === "list") {
    // Items of a long list are alike.
    return (value as unknown[])
      .slice(0, 4)
      .flatMap((_, at) => items(field, value as unknown as Tree, String(at), depth));
  }
  if (field.fieldKind !== "map") return [];
  return Object.keys(value as Tree)
    .slice(0, 4)
    .flatMap((key) => items(field, value as Tree, key, depth));
}

function items(field: DescField, holder: Tree, key: string, depth: number): Slot[] {
  const slot: Slot = {
    ...fieldSlot(field, holder, key, depth),
    isItem: true,
    drop: () => {
      if (Array.isArray(holder)) holder.splice(Number(key), 1);
      else delete holder[key];
    },
  };
  return [slot, ...within(field, holder[key], depth)];
}

function within(field: DescField, value: unknown, depth: number): Slot[] {
  if (field.message === undefined || field.message.typeName.startsWith("google.protobuf.")) return [];
  return slotsOf(field.message, value as Tree, depth + 1);
}
