import assert from "node:assert/strict";
import { test } from "node:test";
import { schemaErrors } from "../../../src/core/kinds/check-schema.ts";
import type { Json, JsonObject } from "../../../src/runtime/json.ts";

const INT32_MAX = 2 ** 31 - 1;
const text = { type: "string" };
const size = { type: "object", properties: { size: { type: "integer" } } };

/** The paths and messages of all errors. None: the value is accepted. */
const cases: Record<string, readonly [schema: JsonObject, value: Json | undefined, ...errors: readonly string[]]> = {
  "an omitted value": [text, undefined],
  "a null": [text, null],
  "a value of the type": [text, "a"],
  "a value of another type": [text, 1, "k must be text, not 1"],
  "a value of the second of two types": [{ type: ["integer", "string"] }, "a"],
  "a value of neither of two types": [
    { type: ["integer", "array"] },
    "a",
    'k must be a whole number or a list, not "a"',
  ],
  "a value of another type, with words for what is allowed": [
    { ...text, "x-allowed": "a size" },
    1,
    "k must be a size, not 1",
  ],
  "any value without a type": [{}, [1]],
  "a list in place of an object": [{ type: "object" }, [], "k must be an object, not a list"],
  "an object in place of a list": [{ type: "array" }, {}, "k must be a list, not an object"],
  "a switch": [{ type: "boolean" }, false],
  "text in place of a switch": [{ type: "boolean" }, "true", 'k must be true or false, not "true"'],
  "a fraction in place of a whole number": [{ type: "integer" }, 1.5, "k must be a whole number, not 1.5"],
  "a fraction for a number": [{ type: "number" }, 1.5],
  "one of the allowed values": [{ enum: ["", "a", 1] }, 1],
  "none of the allowed values": [{ enum: ["", "a", 1] }, "b", 'k must be one of "", a, 1, not "b"'],
  "an empty list of allowed values allows all": [{ enum: [] }, "b"],
  "text that matches": [{ ...text, pattern: "^a+$" }, "aa"],
  "text that does not match": [{ ...text, pattern: "^a+$" }, "ab", 'k must be text that matches ^a+$, not "ab"'],
  "text that does not match, with words": [
    { ...text, pattern: "^a$", "x-allowed": "an a" },
    "b",
    'k must be an a, not "b"',
  ],
  "a pattern says nothing of numbers": [{ type: ["string", "integer"], pattern: "^a$" }, 5],
  "text of the shortest length": [{ ...text, minLength: 2 }, "ab"],
  "text that is too short": [{ ...text, minLength: 2 }, "a", 'k must have at least 2 characters, not "a"'],
  "text that is empty": [{ ...text, minLength: 1 }, "", "k must not be empty"],
  "the largest integer": [{ type: "integer" }, INT32_MAX],
  "an integer above 32 bits": [
    { type: "integer" },
    INT32_MAX + 1,
    `k must be at most ${INT32_MAX}, not ${INT32_MAX + 1}`,
  ],
  "an integer below 32 bits": [
    { type: "integer" },
    -INT32_MAX - 1,
    `k must be at least ${-INT32_MAX}, not ${-INT32_MAX - 1}`,
  ],
  "a large number that is no integer by its type": [{ type: "number" }, -1e30],
  "the least number": [{ type: "integer", minimum: 1, maximum: 8 }, 1],
  "the greatest number": [{ type: "integer", minimum: 1, maximum: 8 }, 8],
  "a number below two bounds": [{ type: "integer", minimum: 1, maximum: 8 }, 0, "k must be from 1 to 8, not 0"],
  "a number above two bounds": [{ type: "integer", minimum: 1, maximum: 8 }, 9, "k must be from 1 to 8, not 9"],
  "a number below its only bound": [{ type: "number", minimum: 1 }, 0, "k must be at least 1, not 0"],
  "a number above its only bound": [{ type: "number", maximum: 1 }, 2, "k must be at most 1, not 2"],
  "a number beyond a bound, with words": [{ maximum: 1, "x-allowed": "small" }, 2, "k must be small, not 2"],
  "a list of the shortest length": [{ type: "array", minItems: 2 }, [1, 2]],
  "a list that is too short": [{ type: "array", minItems: 2 }, [1], "k must have at least 2 items"],
  "a list that is empty": [{ type: "array", minItems: 1 }, [], "k must not be empty"],
  "items of another type": [{ items: text }, ["a", 1, "b", 2], "k[1] must be text, not 1", "k[3] must be text, not 2"],
  "members of another type": [size, { size: "a", other: 1 }, 'k.size must be a whole number, not "a"'],
  "an unknown member of a closed object": [
    { ...size, additionalProperties: false },
    { other: 1, none: null },
    "k.other is not a field of k",
  ],
  "an unknown member of a closed object with a title": [
    { ...size, additionalProperties: false, title: "AJob" },
    { toString: 1 },
    "k.toString is not a field of AJob",
  ],
  "required members that are missing or null": [
    { ...size, required: ["size", "other"] },
    { size: null },
    "k.size is required",
    "k.other is required",
  ],
  "required members that are there": [{ ...size, required: ["size"] }, { size: 0 }],
};
for (const [name, [schema, value, ...errors]] of Object.entries(cases)) {
  test(`${name}: ${errors[0] ?? "accepted"}`, () => {
    const found = schemaErrors(schema, value, "k").map(({ path, message }) => `${path} ${message}`);
    assert.deepEqual(found, errors);
  });
}
