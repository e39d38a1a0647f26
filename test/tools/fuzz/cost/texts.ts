/** What long texts and many names are made of: each is meant for a loop that some reader of text may have. */
import type { Chance } from "../chance.ts";

/** Repeated, they fill a text. Most look for ever like the beginning of something. */
export const UNITS = [
  "a",
  "{{.a.",
  "{{ .Annotations.k }}",
  "{{ .Inputs.k }}",
  "{{",
  "}}",
  "$(A)",
  "$",
  "/",
  "a/",
  "../",
  ".",
  "a.",
  "-",
  ",",
  "a=b,",
  "s/k,",
  "!n",
  "!",
  " ",
  "\t",
  "\n",
  " in (a),",
  "(",
  "[",
  '"',
  "\\",
  ":",
  "*",
  "0",
  "9",
  "1e",
  "%",
  "%2",
  "é",
  "\u202e",
  "x y",
  "A",
  "spec.",
  "a:b@",
  "exceeded quota: requested: used: ",
] as const;

/** How the items of a list, or the keys of a map, are made. */
export type Filling = {
  readonly unit: string;
  /** All items of a list are equal. Keys of maps always differ. */
  readonly alike: boolean;
};

export function filling(chance: Chance): Filling {
  return { unit: chance.is(0.4) ? "a" : chance.pick(UNITS), alike: chance.is(0.2) };
}

/** A text of so many characters. */
export function longText({ unit }: Filling, length: number): string {
  return unit.repeat(Math.ceil(length / unit.length)).slice(0, length);
}

/** The name of an item. */
export function nameOf({ unit, alike }: Filling, at: number): string {
  return alike ? unit : `${unit}${at}`;
}
