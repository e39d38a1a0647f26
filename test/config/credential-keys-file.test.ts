/** The file with the keys of credentials: what it gives, and what is refused without showing a key. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readConfig } from "../../src/config/config.ts";
import { currentKey, keyRecords } from "../../src/core/admin/credential-keys.ts";

const directory = mkdtempSync(join(tmpdir(), "gangway-keys-"));
after(() => rmSync(directory, { recursive: true, force: true }));

const own = randomBytes(32);
const next = randomBytes(32);
const base64 = (key: Buffer) => key.toString("base64");
const KEY = base64(next);

function read(text: string | null, env: Readonly<Record<string, string>> = {}) {
  const path = join(directory, "keys.yaml");
  if (text !== null) writeFileSync(path, text);
  return readConfig(directory, { ...env, ...(text === null ? {} : { GANGWAY_CREDENTIALS_KEYS_FILE: path }) });
}

const OWN = { GANGWAY_CREDENTIALS_KEY: base64(own) };

test("the key of the environment encrypts unless a file names another one", () => {
  assert.deepEqual(read(null).credentialsKeys, { current: null, keys: new Map() });
  assert.equal(currentKey(read(null).credentialsKeys), null);
  const alone = read(null, OWN);
  assert.deepEqual(currentKey(alone.credentialsKeys), { name: "default", bytes: own });
  assert.equal(alone.credentialsKeysFile, null);
  const text = `current: 2026-11\nkeys: [{name: 2026-11, key: ${KEY}}]`;
  const both = read(text, OWN);
  assert.deepEqual(currentKey(both.credentialsKeys), { name: "2026-11", bytes: next });
  assert.deepEqual([...both.credentialsKeys.keys.keys()], ["default", "2026-11"]);
  assert.deepEqual(both.credentialsKeysFile?.parse(text), both.credentialsKeys);
  assert.deepEqual([...read(text).credentialsKeys.keys.keys()], ["2026-11"]);
  assert.deepEqual(read("current: default", OWN).credentialsKeys, alone.credentialsKeys);
});

test("a file may repeat the key of the environment, which moves it there", () => {
  const text = `current: default\nkeys: [{name: default, key: "${base64(own)}"}]`;
  assert.deepEqual(read(text, OWN).credentialsKeys, read(text).credentialsKeys);
});

test("keys are listed with those that clusters need, and none is shown", () => {
  const keys = read(`current: b\nkeys: [{name: b, key: ${KEY}}]`, OWN).credentialsKeys;
  assert.deepEqual(keyRecords(keys, [{ name: "a", clusters: ["east", "west"] }]), [
    { name: "a", clusters: ["east", "west"], isCurrent: false, isKnown: false },
    { name: "b", clusters: [], isCurrent: true, isKnown: true },
    { name: "default", clusters: [], isCurrent: false, isKnown: true },
  ]);
});

const WANTED = "must be 32 bytes in base64, as `openssl rand -base64 32` prints them";
const refused = {
  "[]": "it must be an object",
  "keys: []": "current must be a text that is not empty",
  "current: 2026": "current must be a text that is not empty",
  "current: c": 'current is "c", which is no key; there is no key',
  [`{current: c, keys: [{name: a, key: ${KEY}}]}`]: 'current is "c", which is no key; there are a',
  "{current: a, keys: {}}": "keys must be a list",
  "{current: a, keys: [a]}": "keys[0] must be an object",
  [`{current: a, key: [], keys: [{name: a, key: ${KEY}}]}`]: "key is unknown; known are current, keys",
  [`{current: a, keys: [{name: a, kay: ${KEY}}]}`]: "keys[0].kay is unknown; known are name, key",
  "{current: a, keys: [{name: a}]}": "keys[0].key must be a text that is not empty",
  [`{current: a, keys: [{name: A, key: ${KEY}}]}`]: "keys[0].name must be at most 63 lower-case letters",
  [`{current: a, keys: [{name: a, key: ${KEY.slice(0, 40)}}]}`]: `keys[0].key ${WANTED}; it has 30`,
  [`{current: a, keys: [{name: a, key: "${KEY.slice(1)}!"}]}`]: `keys[0].key ${WANTED}; it has other characters`,
  [`{current: a, keys: [{name: a, key: ${KEY}}, {name: a, key: ${KEY}}]}`]: "keys[1].name is that of another one",
  [`{current: a, keys: [{name: a, key: ${KEY}}, {name: a, key: ${KEY}`]: "which cannot be read",
} as const;
for (const [text, message] of Object.entries(refused)) {
  test(`refused: ${text.replaceAll(KEY, "KEY").slice(0, 80)}`, () => {
    assert.throws(
      () => read(text),
      (error: Error) => {
        assert.ok(error.message.startsWith("GANGWAY_CREDENTIALS_KEYS_FILE names "), error.message);
        assert.ok(error.message.includes(message), error.message);
        assert.ok(!error.message.includes(KEY.slice(1, 12)), "shows the key");
        return true;
      },
    );
  });
}

test("two keys of the name default are refused", () => {
  const text = `{current: default, keys: [{name: default, key: ${KEY}}]}`;
  assert.throws(() => read(text, OWN), /keys\[0\]\.key is not that of GANGWAY_CREDENTIALS_KEY, whose name is default/);
});

test("a file has at most a hundred keys", () => {
  const keys = (count: number) => ({
    current: "k0",
    keys: Array.from({ length: count }, (_, at) => ({ name: `k${at}`, key: base64(randomBytes(32)) })),
  });
  assert.equal(read(JSON.stringify(keys(100))).credentialsKeys.keys.size, 100);
  assert.throws(() => read(JSON.stringify(keys(101))), /keys must have at most 100 entries/);
});
