import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { keyFor, seal, unseal } from "../../src/runtime/seal.ts";

test("a sealed text opens with its key, for its use, and unchanged alone", () => {
  const key = randomBytes(32);
  const sealed = seal(key, "a session", "secret");
  assert.equal(unseal(key, "a session", sealed), "secret");
  assert.ok(!JSON.stringify(sealed).includes("secret"));
  assert.notEqual(seal(key, "a session", "secret").text, sealed.text);
  const flipped = Buffer.from(sealed.text, "base64").map((byte) => byte ^ 1);
  const changes = [
    { text: Buffer.from(flipped).toString("base64") },
    { tag: Buffer.from(sealed.tag, "base64").subarray(0, 4).toString("base64") },
    { nonce: randomBytes(12).toString("base64") },
  ];
  for (const change of changes) assert.throws(() => unseal(key, "a session", { ...sealed, ...change }));
  assert.throws(() => unseal(key, "another session", sealed));
  assert.throws(() => unseal(randomBytes(32), "a session", sealed));
});

test("keys for two uses differ, and do not open what the key itself has sealed", () => {
  const key = randomBytes(32);
  const [one, other] = [keyFor("sessions", key), keyFor("logins", key)];
  assert.deepEqual([one.length, one.equals(keyFor("sessions", key)), one.equals(other)], [32, true, false]);
  assert.throws(() => unseal(one, "x", seal(key, "x", "secret")));
});
