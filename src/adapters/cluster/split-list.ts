/**
 * Splits the text of a JSON object while it arrives: each item of its member `items` for itself, and the rest of the
 * object. Items are parsed one by one, so that a list of any length never blocks the process for long.
 */
import { GrowingBytes } from "./growing-bytes.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;
const ITEMS = Buffer.from('"items"');
/** Objects of Kubernetes nest a few dozen deep. */
const DEPTH_MAX = 1_000;

/** Where a part of the text begins or ends. */
type Cut = "list begins" | "item ends" | "list ends";

export type SplitLimits = {
  /** The most bytes of one item, and of the rest of the object. */
  readonly partBytesMax: number;
  readonly itemsMax: number;
};

/**
 * Reads bytes of one JSON text. It need not be valid: `onItem` gets texts that may be no JSON, and so does the caller
 * of `rest`.
 */
export class SplitList {
  readonly #limits: SplitLimits;
  readonly #onItem: (text: string) => void;
  readonly #rest = new GrowingBytes();
  readonly #item = new GrowingBytes();
  #items = 0;
  #depth = 0;
  #inText = false;
  #escaped = false;
  /** How much of the key `"items"` and its colon the last bytes of the object's own level are. */
  #key = 0;
  #place: "before" | "within" | "after" = "before";

  constructor(limits: SplitLimits, onItem: (text: string) => void) {
    this.#limits = limits;
    this.#onItem = onItem;
  }

  /** Throws if a part is too long, or if there are too many. */
  append(chunk: Uint8Array): void {
    let from = 0;
    for (let at = 0; at < chunk.length; at += 1) {
      const cut = this.#read(chunk[at] as number);
      if (cut === null) continue;
      if (cut === "list begins") this.#keep(this.#rest, chunk.subarray(from, at + 1));
      else this.#endItem(chunk.subarray(from, at));
      // The end of the list belongs to the rest.
      from = cut === "list ends" ? at : at + 1;
    }
    this.#keep(this.#place === "within" ? this.#item : this.#rest, chunk.subarray(from));
  }

  /** The text of the object, with an empty list in place of the items. */
  rest(): string {
    return this.#rest.take();
  }

  /** Follows texts and brackets. Null: no part begins or ends here. */
  #read(byte: number): Cut | null {
    if (this.#inText) return this.#readText(byte);
    switch (byte) {
      case QUOTE:
        this.#inText = true;
        this.#key = this.#depth === 1 && this.#place === "before" ? 1 : 0;
        return null;
      case OPEN_LIST:
      case OPEN_OBJECT:
        return this.#open(byte);
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        return this.#close();
      case COMMA:
        this.#key = 0;
        return this.#place === "within" && this.#depth === 2 ? "item ends" : null;
      case COLON:
        if (this.#key === ITEMS.length) this.#key += 1;
        return null;
      default:
        if (byte > SPACE) this.#key = 0;
        return null;
    }
  }

  #readText(byte: number): null {
    if (this.#key > 0 && this.#key < ITEMS.length) this.#key = byte === ITEMS[this.#key] ? this.#key + 1 : 0;
    else this.#key = 0;
    if (this.#escaped) this.#escaped = false;
    else if (byte === BACKSLASH) this.#escaped = true;
    else if (byte === QUOTE) this.#inText = false;
    return null;
  }

  #open(byte: number): Cut | null {
    this.#depth += 1;
    if (this.#depth > DEPTH_MAX) throw new Error(`the answer nests deeper than ${DEPTH_MAX} levels`);
    const begins = byte === OPEN_LIST && this.#key > ITEMS.length;
    this.#key = 0;
    if (!begins) return null;
    this.#place = "within";
    return "list begins";
  }

  #close(): Cut | null {
    this.#depth -= 1;
    if (this.#place !== "within" || this.#depth !== 1) return null;
    this.#place = "after";
    return "list ends";
  }

  #endItem(end: Uint8Array): void {
    this.#keep(this.#item, end);
    const text = this.#item.take();
    const isLast = this.#place === "after";
    if (isLast && text.trim() === "" && this.#items === 0) return;
    this.#items += 1;
    if (this.#items > this.#limits.itemsMax) throw new Error(`the answer has more than ${this.#limits.itemsMax} items`);
    this.#onItem(text);
  }

  #keep(part: GrowingBytes, bytes: Uint8Array): void {
    const { partBytesMax } = this.#limits;
    if (part.length + bytes.byteLength > partBytesMax) {
      throw new Error(`the answer has a part of more than ${partBytesMax} bytes`);
    }
    part.append(bytes);
  }
}
