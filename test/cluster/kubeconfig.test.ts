import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openCredentials, sealKubeconfig } from "../../src/adapters/cluster/credentials.ts";
import { pickContext } from "../../src/adapters/cluster/kubeconfig.ts";
import type { JsonObject } from "../../src/runtime/json.ts";

const SECRET = "secret-token-of-one";

function config(cluster: JsonObject = {}, user: JsonObject = {}): string {
  return JSON.stringify({
    clusters: [
      { name: "one", cluster: { server: "https://one.example.com", ...cluster } },
      { name: "two", cluster: { server: "https://two.example.com" } },
    ],
    users: [
      { name: "me", user: { token: SECRET, ...user } },
      { name: "other", user: { token: "other-token" } },
    ],
    contexts: [
      { name: "a", context: { cluster: "one", user: "me" } },
      { name: "b", context: { cluster: "two", user: "other" } },
      { name: "lost", context: { cluster: "none", user: "me" } },
    ],
    "current-context": "a",
  });
}

const pick = (text: string, context = "", allowLocal = false) => pickContext(text, { context, allowLocal });

test("one context is taken, without anything of the others", () => {
  const own = pick(config());
  assert.ok(own.kind === "ok");
  assert.ok(own.kubeconfig.includes(SECRET) && !own.kubeconfig.includes("other-token"));
  const other = pick(config(), "b");
  assert.ok(other.kind === "ok");
  assert.ok(other.kubeconfig.includes("two.example.com") && !other.kubeconfig.includes(SECRET));
});

const refusals: Record<string, { text: string; context?: string; says: readonly RegExp[] }> = {
  "text that is not YAML": { text: `token: [${SECRET}`, says: [/must be an object in YAML or JSON/] },
  "text that is not an object": { text: SECRET, says: [/must be an object in YAML or JSON/] },
  "a context that does not exist": { text: config(), context: "c", says: [/no context c/] },
  "a cluster that does not exist": { text: config(), context: "lost", says: [/no cluster none/] },
  "no current context": { text: "{}", says: [/no current context/] },
  "a server that is not a URL": { text: config({ server: "file:///etc" }), says: [/https or http URL/] },
  "a program": { text: config({}, { exec: { command: "sh" } }), says: [/exec runs a program/] },
  "an auth provider": {
    text: config({}, { "auth-provider": { name: "gcp" } }),
    says: [/auth-provider runs a program/],
  },
  "files, each of them": {
    text: config(
      { "certificate-authority": "/ca" },
      { "client-certificate": "/c", "client-key": "/k", tokenFile: "/t" },
    ),
    says: [/certificate-authority/, /client-certificate/, /client-key/, /tokenFile/],
  },
};
for (const [name, { text, context, says }] of Object.entries(refusals)) {
  test(`refused without quoting credentials: ${name}`, () => {
    const picked = pick(text, context);
    assert.ok(picked.kind === "refused");
    assert.equal(picked.problems.length, says.length);
    for (const [index, problem] of picked.problems.entries()) assert.match(problem, says[index] ?? /^$/);
    assert.ok(!picked.problems.join().includes(SECRET));
  });
}

test("programs and files are accepted if the server allows them", () => {
  assert.equal(pick(config({}, { exec: { command: "sh" }, "client-key": "/k" }), "", true).kind, "ok");
});

test("an encrypted kubeconfig can be decrypted only with its key and under its cluster's name", async () => {
  const key = randomBytes(32);
  const sealed = sealKubeconfig(key, "one", config());
  assert.ok(!JSON.stringify(sealed).includes(SECRET));
  const open = (cluster: string, with_: Buffer | null, stored: JsonObject = sealed) =>
    openCredentials(stored, { cluster, key: with_, allowLocal: false });
  assert.equal(await open("one", key), config());
  assert.notDeepEqual(sealKubeconfig(key, "one", config()), sealed, "no nonce is used twice");
  await assert.rejects(open("two", key), /encrypted with another key/);
  await assert.rejects(open("one", randomBytes(32)), /encrypted with another key/);
  await assert.rejects(open("one", null), /GANGWAY_CREDENTIALS_KEY is not set/);
  await assert.rejects(open("one", key, { ...sealed, text: "AAAA" }), /encrypted with another key/);
});

test("a referenced file is read anew each time, and only if that is allowed", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "gangway-kubeconfig-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "kubeconfig");
  writeFileSync(path, config());
  const stored = { kind: "file", path, context: "b" };
  const open = (allowLocal: boolean) => openCredentials(stored, { cluster: "one", key: null, allowLocal });
  assert.match(await open(true), /two\.example\.com/);
  await assert.rejects(open(false), /does not allow files/);
  writeFileSync(path, "[]");
  await assert.rejects(open(true), /must be an object in YAML or JSON/);
});
