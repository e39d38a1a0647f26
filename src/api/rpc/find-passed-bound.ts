/**
 * Finds the first limit that a request passes, from its bytes alone: before they are decoded, and before anything else
 * that costs more than reading them. Reads what the decoder would read, in its order.
 */
import type { DescMessage } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import type { FieldNote } from "../../core/job/request/sent.ts";
import type { ContentBounds } from "../../gen/gangway/v1/bounds_pb.ts";
import { cutText } from "../../runtime/cut-text.ts";
import { boundsOf, type FieldBounds, type WireForm } from "./declared-bounds.ts";

/** Twice the values of 1,000 jobs with four large templates each. A value takes up to 200 bytes of memory. */
export const REQUEST_VALUES_MAX = 1_000_000;
/** As in the decoder. */
const MESSAGE_DEPTH_MAX = 100;
const LENGTH_DELIMITED = 2;
const KEY_SHOWN_CHARS = 63;
const JSON_LISTS: ReadonlySet<string> = new Set(["google.protobuf.Struct", "google.protobuf.ListValue"]);
const JSON_VALUE = "google.protobuf.Value";

/** Items of a request that pass a limit, where each item has an answer of its own. */
export type PassedItems = {
  /** By the place of the item. Paths start at the item. */
  readonly notes: ReadonlyMap<number, FieldNote>;
  /** The request, with these items empty. */
  readonly bytes: Uint8Array;
};

export type BoundsOutcome =
  | { readonly kind: "passed"; readonly note: FieldNote }
  | {
      readonly kind: "within";
      /** Null: no item passes a limit. */
      readonly passedItems: PassedItems | null;
      /** True: a google.protobuf.Value has no kind of value. The decoder makes null of it. */
      readonly hasEmptyValue: boolean;
    };

/**
 * Compares a request with the limits of its fields. `itemsOf`: a repeated field of messages that have answers of their
 * own. Bytes that are no message at all pass no limit up to there; the decoder refuses them.
 */
export function findPassedBound(schema: DescMessage, bytes: Uint8Array, itemsOf?: string): BoundsOutcome {
  const walk = new BoundsWalk(bytes, itemsOf);
  const note = walk.request(schema);
  if (note !== null) return { kind: "passed", note };
  const passedItems = walk.items.size === 0 ? null : walk.withoutItems();
  return { kind: "within", passedItems, hasEmptyValue: walk.hasEmptyValue };
}

/** The counts of one message. The decoder merges a field that is sent twice, so its parts count together. */
type Seen = { items: number[] | null; parts: Seen[] | null; budgets: Budget[] | null };

/** The rest of a field's limits for its content. */
type Budget = { readonly of: ContentBounds; bytes: number; values: number };

type ContentPlace = { readonly depth: number; readonly budget: Budget; readonly lists: number };
type Cut = { readonly from: number; readonly to: number };

class BoundsWalk {
  /** Notes of items that have answers of their own. */
  readonly items = new Map<number, FieldNote>();
  hasEmptyValue = false;
  readonly #reader: BinaryReader;
  readonly #bytes: Uint8Array;
  readonly #itemsOf: string | undefined;
  readonly #cuts: Cut[] = [];
  #values = 0;

  constructor(bytes: Uint8Array, itemsOf: string | undefined) {
    this.#reader = new BinaryReader(bytes);
    this.#bytes = bytes;
    this.#itemsOf = itemsOf;
  }

  request(schema: DescMessage): FieldNote | null {
    try {
      const note = this.#message(schema, this.#bytes.length, 1, nothingSeen());
      return note === null ? null : withoutDot(note);
    } catch {
      return null;
    }
  }

  withoutItems(): PassedItems {
    const kept: Uint8Array[] = [];
    let at = 0;
    for (const { from, to } of this.#cuts) {
      // The length of an empty item.
      kept.push(this.#bytes.subarray(at, from), Uint8Array.of(0));
      at = to;
    }
    kept.push(this.#bytes.subarray(at));
    return { notes: this.items, bytes: Buffer.concat(kept) };
  }

  #message(schema: DescMessage, end: number, depth: number, seen: Seen): FieldNote | null {
    const bounds = boundsOf(schema);
    const reader = this.#reader;
    while (reader.pos < end) {
      const tag = reader.uint32();
      const field = bounds.get(tag >>> 3);
      this.#values += 1;
      if (this.#values > REQUEST_VALUES_MAX) return TOO_MANY_VALUES;
      if (field === undefined) {
        reader.skip(tag & 7, tag >>> 3, MESSAGE_DEPTH_MAX - depth);
        continue;
      }
      const note = this.#field(field, tag & 7, depth, seen);
      if (note !== null) return under(note, `.${field.name}`);
    }
    return null;
  }

  #field(field: FieldBounds, wireType: number, depth: number, seen: Seen): FieldNote | null {
    if (field.content !== null) return this.#content(field, depth, seen);
    if (field.kind === "one") {
      return this.#value(field, depth, field.form === "message" ? partOf(field, seen) : seen);
    }
    if (isPacked(field, wireType)) return this.#packed(field, seen);
    const index = count(field, seen, 1);
    if (index === null) return tooMany(field);
    if (field.kind === "map") return this.#ownEntry(field, depth);
    if (depth === 1 && field.name === this.#itemsOf && field.form === "message") return this.#item(field, index);
    const note = this.#value(field, depth, nothingSeen());
    return note === null ? null : under(note, `[${index}]`);
  }

  #ownEntry(field: FieldBounds, depth: number): FieldNote | null {
    const part = nothingSeen();
    return this.#entry(
      () => this.#key(field),
      (keyAt) => {
        const note = this.#value(field, depth, part);
        return note === null ? null : under(note, this.#keyPath(field, keyAt));
      },
    );
  }

  /** Reads an item that has an answer of its own. */
  #item(field: FieldBounds, index: number): FieldNote | null {
    const from = this.#reader.pos;
    const note = this.#value(field, 1, nothingSeen());
    if (note === null) return null;
    if (this.#values > REQUEST_VALUES_MAX) return under(note, `[${index}]`);
    this.#reader.pos = from;
    const to = this.#lengthEnd();
    this.items.set(index, withoutDot(note));
    this.#cuts.push({ from, to });
    this.#reader.pos = to;
    return null;
  }

  #value(field: FieldBounds, depth: number, part: Seen): FieldNote | null {
    if (field.form === "text") return this.#text(field.bytesMax);
    if (field.form !== "message") return this.#number(field.form);
    const end = this.#lengthEnd();
    if (depth >= MESSAGE_DEPTH_MAX) return TOO_DEEP;
    return this.#message(field.message as DescMessage, end, depth + 1, part);
  }

  #text(bytesMax: number): FieldNote | null {
    const length = this.#skipText();
    return length <= bytesMax ? null : passed(`must have at most ${bytesMax} bytes, but has ${length}`);
  }

  #skipText(): number {
    const length = this.#reader.uint32();
    this.#reader.pos += length;
    // The decoder refuses a text that goes on after the end of the request.
    return this.#reader.pos > this.#bytes.length ? 0 : length;
  }

  #number(form: WireForm): null {
    if (form === "varint") this.#reader.uint32();
    else this.#reader.pos += Number(form);
    return null;
  }

  #packed(field: FieldBounds, seen: Seen): FieldNote | null {
    const end = Math.min(this.#lengthEnd(), this.#bytes.length);
    const from = this.#reader.pos;
    this.#reader.pos = end;
    let items = 0;
    // The last byte of a varint, and no other one, has its highest bit clear.
    if (field.form === "varint") for (let at = from; at < end; at += 1) items += Number((this.#bytes[at] ?? 0) < 0x80);
    else items = (end - from) / Number(field.form);
    return count(field, seen, Math.ceil(items)) === null ? tooMany(field) : null;
  }

  /** Reads an entry of a map: a message with a key in field 1 and a value in field 2. */
  #entry(readKey: () => FieldNote | null, readValue: (keyAt: number) => FieldNote | null): FieldNote | null {
    const reader = this.#reader;
    const end = this.#lengthEnd();
    let keyAt = -1;
    while (reader.pos < end) {
      const tag = reader.uint32();
      const number = tag >>> 3;
      let note: FieldNote | null = null;
      if (number === 1) {
        keyAt = reader.pos;
        note = readKey();
      } else if (number === 2) note = readValue(keyAt);
      else reader.skip(tag & 7, number);
      if (note !== null) return note;
    }
    return null;
  }

  #key({ key, keyBytesMax }: FieldBounds): FieldNote | null {
    if (key !== "text") return this.#number(key);
    const note = this.#text(keyBytesMax);
    return note === null ? null : passed(`must not have such a key: a key ${note.message}`);
  }

  /** The path of an entry's value, with the start of its key, which is at this place of the request. */
  #keyPath(field: FieldBounds, keyAt: number): string {
    if (keyAt < 0 || field.key !== "text") return "[]";
    this.#reader.pos = keyAt;
    const key = cutText(Buffer.from(this.#reader.bytes()).toString(), KEY_SHOWN_CHARS);
    return `[${key}]`;
  }

  /** Reads a field whose content is limited in all. A note of it has no path within the field. */
  #content(field: FieldBounds, depth: number, seen: Seen): FieldNote | null {
    const budget = budgetOf(field, seen);
    return this.#spendValues(budget, 1) ?? this.#spend(field, { depth, budget, lists: 0 });
  }

  #spend(field: FieldBounds, place: ContentPlace): FieldNote | null {
    if (field.kind !== "map") return this.#spendValue(field, place);
    return this.#entry(
      () => (field.key === "text" ? this.#spendText(place.budget) : this.#number(field.key)),
      () => this.#spendValue(field, place),
    );
  }

  #spendValue(field: FieldBounds, { depth, budget, lists }: ContentPlace): FieldNote | null {
    if (field.form === "text") return this.#spendText(budget);
    if (field.form !== "message") return this.#number(field.form);
    const schema = field.message as DescMessage;
    const within = lists + (JSON_LISTS.has(schema.typeName) ? 1 : 0);
    const end = this.#lengthEnd();
    const { maxDepth } = budget.of;
    if (maxDepth > 0 && within > maxDepth) {
      return passed(`must not have more than ${maxDepth} lists and objects within each other`);
    }
    if (depth >= MESSAGE_DEPTH_MAX) return TOO_DEEP;
    return this.#spendMessage(schema, end, { depth: depth + 1, budget, lists: within });
  }

  #spendMessage(schema: DescMessage, end: number, place: ContentPlace): FieldNote | null {
    const bounds = boundsOf(schema);
    const reader = this.#reader;
    const { budget, depth } = place;
    const cost = schema.typeName === JSON_VALUE ? 0 : 1;
    let isSet = cost > 0;
    while (reader.pos < end) {
      const tag = reader.uint32();
      const field = bounds.get(tag >>> 3);
      const beyond = this.#spendValues(budget, cost);
      if (beyond !== null) return beyond;
      if (field === undefined) {
        reader.skip(tag & 7, tag >>> 3, MESSAGE_DEPTH_MAX - depth);
        continue;
      }
      isSet = true;
      const note = isPacked(field, tag & 7) ? this.#spendPacked(budget) : this.#spend(field, place);
      if (note !== null) return note;
    }
    this.hasEmptyValue ||= !isSet;
    return null;
  }

  #spendValues(budget: Budget, values: number): FieldNote | null {
    budget.values -= values;
    this.#values += values;
    if (budget.values < 0) return tooManyValues(budget);
    return this.#values > REQUEST_VALUES_MAX ? TOO_MANY_VALUES : null;
  }

  #spendPacked(budget: Budget): FieldNote | null {
    const end = this.#lengthEnd();
    const values = end - this.#reader.pos;
    this.#reader.pos = end;
    // Each value has at least one byte.
    return this.#spendValues(budget, values);
  }

  #spendText(budget: Budget): FieldNote | null {
    budget.bytes -= this.#skipText();
    return budget.bytes >= 0 ? null : passed(`must have at most ${budget.of.maxBytes} bytes of keys and texts in all`);
  }

  /** Reads a length, and returns where what has this length ends. */
  #lengthEnd(): number {
    const length = this.#reader.uint32();
    return this.#reader.pos + length;
  }
}

const TOO_DEEP: FieldNote = passed("must not be nested so deeply");
const TOO_MANY_VALUES: FieldNote = passed(`is in a request with more than ${REQUEST_VALUES_MAX} values in all`);

function passed(message: string): FieldNote {
  return { field: "", message };
}

function tooMany({ kind, itemsMax }: FieldBounds): FieldNote {
  return passed(`must have at most ${itemsMax} ${kind === "map" ? "entries" : "items"}`);
}

function tooManyValues({ of }: Budget): FieldNote {
  return passed(`must have at most ${of.maxValues} values in all`);
}

/** Puts a step before the path of a note. */
function under(note: FieldNote, step: string): FieldNote {
  return { ...note, field: step + note.field };
}

function withoutDot(note: FieldNote): FieldNote {
  return note.field.startsWith(".") ? { ...note, field: note.field.slice(1) } : note;
}

function isPacked({ kind, form }: FieldBounds, wireType: number): boolean {
  return kind === "list" && wireType === LENGTH_DELIMITED && form !== "message" && form !== "text";
}

function nothingSeen(): Seen {
  return { items: null, parts: null, budgets: null };
}

/** Counts items of a list or entries of a map. Returns the place of the first one; null: they are too many. */
function count({ at, itemsMax }: FieldBounds, seen: Seen, items: number): number | null {
  seen.items ??= [];
  const before = seen.items[at] ?? 0;
  seen.items[at] = before + items;
  return before + items <= itemsMax ? before : null;
}

function partOf({ at }: FieldBounds, seen: Seen): Seen {
  seen.parts ??= [];
  const part = seen.parts[at] ?? nothingSeen();
  seen.parts[at] = part;
  return part;
}

function budgetOf({ at, content }: FieldBounds, seen: Seen): Budget {
  seen.budgets ??= [];
  const of = content as ContentBounds;
  const budget = seen.budgets[at] ?? { of, bytes: of.maxBytes, values: of.maxValues };
  seen.budgets[at] = budget;
  return budget;
}
