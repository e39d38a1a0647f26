import { parseDurationMs } from "../../../runtime/duration.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../runtime/json.ts";
import { NoteList } from "../../job/request/notes.ts";
import type { FieldError } from "../../job/request/sent.ts";

export type NumberBounds = { readonly wide?: boolean; readonly least?: number; readonly most?: number };

/** Reads members of untyped JSON. Collects errors by the path of their field instead of throwing. */
export class SentReader {
  readonly #errors = new NoteList<FieldError>();

  /** The first errors; the last one says how many more there are. */
  get errors(): readonly FieldError[] {
    return this.#errors.list((rest) => ({ path: "", ...rest }));
  }

  fail(path: string, message: string): undefined {
    this.#errors.add(() => ({ path, message }));
    return undefined;
  }

  object(value: Json | undefined, path: string): JsonObject | undefined {
    if (value === undefined || value === null) return undefined;
    return isJsonObject(value) ? value : this.fail(path, "must be an object");
  }

  text(value: Json | undefined, path: string): string | undefined {
    if (value === undefined || value === null) return undefined;
    return typeof value === "string" ? value : this.fail(path, "must be text");
  }

  flag(value: Json | undefined, path: string): boolean | undefined {
    if (value === undefined || value === null) return undefined;
    return typeof value === "boolean" ? value : this.fail(path, "must be true or false");
  }

  /**
   * A whole number of 32 bits. `wide`: of 53 bits, and also as text, as the JSON of protobuf writes 64-bit numbers.
   * `least` and `most`: what the error says; the service refuses numbers beyond them.
   */
  wholeNumber(value: Json | undefined, path: string, of: NumberBounds = {}): number | undefined {
    if (value === undefined || value === null) return undefined;
    const { wide = false } = of;
    const number = typeof value === "string" && wide && /^-?\d+$/.test(value) ? Number(value) : value;
    const limit = wide ? Number.MAX_SAFE_INTEGER : 2 ** 31 - 1;
    if (typeof number !== "number" || !Number.isInteger(number)) return this.fail(path, "must be a whole number");
    const { least = -limit, most = limit } = of;
    return Math.abs(number) <= limit ? number : this.fail(path, `must be from ${least} to ${most}`);
  }

  /** The milliseconds of a duration such as `90s`, `10m` or `1h30m`, also as protobuf writes it: `5400s`. */
  durationMs(value: Json | undefined, path: string): number | undefined {
    if (value === undefined || value === null) return undefined;
    const spanMs = typeof value === "string" ? parseDurationMs(value) : null;
    return spanMs ?? this.fail(path, "must be a duration with its unit, such as 90s, 10m or 1h30m");
  }

  /** One of the words, in any case, with or without the prefix of the enum: `All`, `ALL`, `CLEAN_POD_POLICY_ALL`. */
  word<Word extends string>(value: Json | undefined, path: string, words: readonly Word[]): Word | undefined {
    const text = this.text(value, path);
    if (text === undefined || text === "") return undefined;
    const plain = (word: string) => word.replaceAll("_", "").toLowerCase();
    const found = words.find((word) => plain(word) === plain(text) || plain(text).endsWith(`policy${plain(word)}`));
    const scoped = words.find((word) => plain(text).endsWith(`scope${plain(word)}`));
    return found ?? scoped ?? this.fail(path, `must be one of ${words.join(", ")}, not ${text}`);
  }

  texts(value: Json | undefined, path: string): readonly string[] | undefined {
    if (value === undefined || value === null) return undefined;
    if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value;
    return this.fail(path, "must be a list of texts");
  }

  /** A map of texts. `lenient`: takes numbers too, because authors of YAML forget the quotes of quantities. */
  textMap(value: Json | undefined, path: string, lenient = false): Readonly<Record<string, string>> | undefined {
    const object = this.object(value, path);
    if (object === undefined) return undefined;
    const map: Record<string, string> = {};
    for (const [key, inner] of Object.entries(object)) {
      if (typeof inner === "string" || (lenient && typeof inner === "number")) map[key] = String(inner);
      else this.fail(`${path}[${JSON.stringify(key)}]`, "must be text");
    }
    return map;
  }

  /** Fails members that are not in the list. */
  onlyKnown(object: JsonObject, path: string, known: readonly string[]): void {
    for (const name of Object.keys(object)) {
      if (!known.includes(name)) this.fail(path === "" ? name : `${path}.${name}`, "is not a known field");
    }
  }
}

/** The object without its undefined members. */
export function sentOnly<T extends object>(object: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
