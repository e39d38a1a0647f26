import { parseDurationMs } from "../../../runtime/duration.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../runtime/json.ts";
import { NoteList } from "../../job/request/notes.ts";
import type { FieldError } from "../../job/request/sent.ts";
import { notShown } from "../../job/request/shown-value.ts";
import { nameHelp } from "../../pods/nearest-name.ts";

export type NumberBounds = { readonly wide?: boolean; readonly least?: number; readonly most?: number };

const DURATION = "must be a duration with its unit, such as 90s, 10m or 1h30m";

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
    return isJsonObject(value) ? value : this.fail(path, `must be an object${notShown(value)}`);
  }

  text(value: Json | undefined, path: string): string | undefined {
    if (value === undefined || value === null) return undefined;
    return typeof value === "string" ? value : this.fail(path, `must be text${notShown(value)}`);
  }

  flag(value: Json | undefined, path: string): boolean | undefined {
    if (value === undefined || value === null) return undefined;
    return typeof value === "boolean" ? value : this.fail(path, `must be true or false${notShown(value)}`);
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
    if (typeof number !== "number" || !Number.isInteger(number)) {
      return this.fail(path, `must be a whole number${notShown(value)}`);
    }
    const { least = -limit, most = limit } = of;
    return Math.abs(number) <= limit ? number : this.fail(path, `must be from ${least} to ${most}${notShown(value)}`);
  }

  /** The milliseconds of a duration such as `90s`, `10m` or `1h30m`, also as protobuf writes it: `5400s`. */
  durationMs(value: Json | undefined, path: string): number | undefined {
    if (value === undefined || value === null) return undefined;
    const spanMs = typeof value === "string" ? parseDurationMs(value) : null;
    return spanMs ?? this.fail(path, `${DURATION}${notShown(value)}`);
  }

  /** One of the words, in any case, with or without the prefix of the enum: `All`, `ALL`, `CLEAN_POD_POLICY_ALL`. */
  word<Word extends string>(value: Json | undefined, path: string, words: readonly Word[]): Word | undefined {
    const text = this.text(value, path);
    if (text === undefined || text === "") return undefined;
    const plain = (word: string) => word.replaceAll("_", "").toLowerCase();
    const found = words.find((word) => plain(word) === plain(text) || plain(text).endsWith(`policy${plain(word)}`));
    const scoped = words.find((word) => plain(text).endsWith(`scope${plain(word)}`));
    return found ?? scoped ?? this.fail(path, `must be one of ${words.join(", ")}${notShown(text)}`);
  }

  texts(value: Json | undefined, path: string): readonly string[] | undefined {
    if (value === undefined || value === null) return undefined;
    if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value;
    return this.fail(path, `must be a list of texts${notShown(value)}`);
  }

  /** A map of texts. `lenient`: takes numbers too, because authors of YAML forget the quotes of quantities. */
  textMap(value: Json | undefined, path: string, lenient = false): Readonly<Record<string, string>> | undefined {
    const object = this.object(value, path);
    if (object === undefined) return undefined;
    const map: Record<string, string> = {};
    for (const [key, inner] of Object.entries(object)) {
      if (typeof inner === "string" || (lenient && typeof inner === "number")) map[key] = String(inner);
      else this.fail(`${path}[${JSON.stringify(key)}]`, `must be text${notShown(inner ?? null)}`);
    }
    return map;
  }

  /** Fails members that are not in the list. */
  onlyKnown(object: JsonObject, path: string, known: readonly string[]): void {
    const help = nameHelp();
    for (const name of Object.keys(object)) {
      if (known.includes(name)) continue;
      const meant = help(name, known);
      const hint = meant === null ? "" : `: did you mean ${meant}?`;
      this.fail(path === "" ? name : `${path}.${name}`, `is not a known field${hint}`);
    }
  }
}

/** The object without its undefined members. */
export function sentOnly<T extends object>(object: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(object).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
