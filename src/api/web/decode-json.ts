/** Decodes a request in JSON: into the bytes of the same request, so that what follows judges one form alone. */
import { type DescMethod, fromJsonString, toBinary } from "@bufbuild/protobuf";
import { type Decoded, requestDecoder } from "../rpc/service-definition.ts";

/**
 * 1,000 jobs of 200 values each. Reading so many takes about half a second, in which no other call is answered; the
 * binary form takes a third of that, and more values.
 */
export const JSON_VALUES_MAX = 200_000;

const [QUOTE, BACKSLASH, COMMA, BRACKET, BRACE] = [...'"\\,[{'].map((char) => char.charCodeAt(0));

/** Text that is not UTF-8, has an unknown or doubled key, or a value of another type is undecodable. */
export function decodeJson(method: DescMethod, sent: Buffer): Decoded {
  const bytes = sent.length;
  if (hasTooManyValues(sent)) {
    const message =
      `has more than ${JSON_VALUES_MAX} values, which is the most in JSON; send fewer at a time, or send ` +
      "application/proto";
    return { kind: "beyondLimit", notes: [{ field: "", message }], bytes };
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(sent);
    const encoded = toBinary(method.input, fromJsonString(method.input, text === "" ? "{}" : text));
    return { ...requestDecoder(method)(encoded), bytes };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    return { kind: "undecodable", problem: `the request is not a ${method.input.typeName} in JSON: ${why}`, bytes };
  }
}

/** Counts what separates and opens values, outside of texts. */
function hasTooManyValues(json: Uint8Array): boolean {
  let count = 0;
  for (let at = 0; at < json.length; at += 1) {
    const char = json[at];
    if (char === QUOTE) at = endOfText(json, at);
    else if (char === COMMA || char === BRACKET || char === BRACE) count += 1;
  }
  return count > JSON_VALUES_MAX;
}

/** The place of the quote that ends the text which begins here. */
function endOfText(json: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1;
  return at;
}
