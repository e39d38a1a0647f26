import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { thrownText } from "../../src/runtime/thrown-text.ts";

test("any thrown value becomes a text", () => {
  fc.assert(
    fc.property(fc.anything({ withNullPrototype: true }), (thrown) =>
      assert.equal(typeof thrownText(thrown), "string"),
    ),
  );
});

const refused = Object.assign(new AggregateError([], ""), { code: "ECONNREFUSED" });
const cases: Record<string, { readonly thrown: unknown; readonly says: string | RegExp }> = {
  "an error by its message": { thrown: new Error("it is full"), says: "it is full" },
  "a text": { thrown: "plain", says: "plain" },
  null: { thrown: null, says: "null" },
  "the cause, once": {
    thrown: new Error("no answer", { cause: new Error("no route", { cause: new Error("no route") }) }),
    says: "no answer: no route",
  },
  "a cause that has only a code": {
    thrown: new Error("fetch failed", { cause: refused }),
    says: "fetch failed: ECONNREFUSED",
  },
  "a programming error with its place, without folders": {
    thrown: new TypeError("x is no function"),
    says: /^x is no function \(thrown-text\.test\.ts:\d+:\d+\)$/,
  },
};
for (const [name, { thrown, says }] of Object.entries(cases)) {
  test(`the text has ${name}`, () =>
    assert.match(thrownText(thrown), typeof says === "string" ? new RegExp(`^${says}$`) : says));
}
