import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FOREIGN_BYTES_MAX, foreignText } from "../../src/runtime/foreign-text.ts";

test("law: a text of others has at most so many bytes, is storable, and stays as it is the second time", () => {
  const parts = fc.constantFrom("a", "é", "€", "😀", "\0", "\ud800", "\udc00", "…");
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 60 }), fc.integer({ min: 4, max: 80 }), (some, bytesMax) => {
      const text = some.join("");
      const shown = foreignText(text, bytesMax);
      assert.ok(Buffer.byteLength(shown) <= bytesMax);
      assert.ok(shown.isWellFormed() && !shown.includes("\0"));
      assert.equal(foreignText(shown, bytesMax), shown);
      const whole = text.toWellFormed().replaceAll("\0", "\ufffd");
      if (Buffer.byteLength(whole) <= bytesMax) assert.equal(shown, whole);
      else assert.ok(whole.startsWith(shown.replace(/…$/, "")));
    }),
  );
});

test("a text that is cut says so", () => {
  assert.equal(foreignText("a".repeat(FOREIGN_BYTES_MAX)), "a".repeat(FOREIGN_BYTES_MAX));
  assert.equal(foreignText("a".repeat(FOREIGN_BYTES_MAX + 1)), `${"a".repeat(FOREIGN_BYTES_MAX - 3)}…`);
});
