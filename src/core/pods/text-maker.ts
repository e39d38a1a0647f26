import type { Json } from "../../runtime/json.ts";
import { type JsonMeter, SizedText } from "../../runtime/json-bytes.ts";
import { withoutTrailing } from "../../runtime/scan-text.ts";

/**
 * Puts the texts of a pod together: as texts, or only as their sizes. The same code so builds a pod and measures it,
 * and a placeholder cannot make a pod that was measured too small.
 */
export type TextMaker<T> = {
  readonly of: (text: string) => T;
  readonly join: (pieces: readonly T[]) => T;
  readonly isEmpty: (made: T) => boolean;
  /** The text without slashes at its end. A size may count them. */
  readonly withoutSlashes: (made: T) => T;
  readonly json: (made: T) => Json;
};

export const WHOLE_TEXTS: TextMaker<string> = {
  of: (text) => text,
  join: (pieces) => pieces.join(""),
  isEmpty: (made) => made === "",
  withoutSlashes: (made) => withoutTrailing(made, "/"),
  json: (made) => made,
};

/** The sizes of texts. No size is below that of the text: two halves of a character count more than the whole. */
export function sizedTexts(meter: JsonMeter): TextMaker<SizedText> {
  return {
    of: (text) => new SizedText(meter.textBytes(text)),
    join: (pieces) => new SizedText(pieces.reduce((sum, { bytes }) => sum + bytes, 0)),
    isEmpty: (made) => made.bytes === 0,
    withoutSlashes: (made) => made,
    // Only `JsonMeter` reads a measured pod.
    json: (made) => made as unknown as Json,
  };
}
