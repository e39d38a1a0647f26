import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { acceptKubeconfig } from "../../src/adapters/cluster/accept-kubeconfig.ts";
import { parseAllowedHosts } from "../../src/adapters/cluster/allowed-hosts.ts";
import { openCredentials, resealCredentials, sealKubeconfig } from "../../src/adapters/cluster/credentials.ts";
import { pickContext } from "../../src/adapters/cluster/kubeconfig.ts";
import { contentOf } from "../../src/adapters/cluster/stored-credentials.ts";
import { KUBECONFIG_BYTES_MAX } from "../../src/core/admin/cluster.ts";
import { type CredentialKeys, onlyDefault } from "../../src/core/admin/credential-keys.ts";
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

/** A kubeconfig of one context whose members a case replaces. */
function only(
  members: { cluster?: unknown; user?: unknown; context?: unknown; config?: object } = {},
  lists: { clusters?: unknown; users?: unknown; contexts?: unknown } = {},
): string {
  const { cluster = { server: "https://one.example.com" }, user = { token: SECRET } } = members;
  const { context = { cluster: "one", user: "me" }, config: others = {} } = members;
  return JSON.stringify({
    clusters: [{ name: "one", cluster }],
    users: [{ name: "me", user }],
    contexts: [{ name: "a", context }],
    "current-context": "a",
    ...lists,
    ...others,
  });
}

const withServer = (server: unknown) => ({ cluster: { server } });
const withUser = (user: unknown) => only({ user });
const withCluster = (cluster: object) => only({ cluster: { server: "https://one.example.com", ...cluster } });
const base64 = (text: string) => Buffer.from(text).toString("base64");

/** What is wrong with each, as its only problem. */
const hostile: Record<string, { text: string; says: RegExp }> = {
  "a token file in client-node's spelling": {
    text: withUser({ "token-file": "/etc/hostname" }),
    says: /^users\[0\]\.user\.token-file is not allowed: allowed are token, /,
  },
  "a token file beside a token": {
    text: withUser({ token: SECRET, "token-file": "/dev/zero" }),
    says: /token-file is not allowed/,
  },
  "a token file in capitals": { text: withUser({ TokenFile: "/dev/zero" }), says: /user\.TokenFile is not allowed/ },
  "a token in capitals": { text: withUser({ Token: "t" }), says: /user\.Token is not allowed: did you mean token\?/ },
  "a number as token": {
    text: withUser({ token: 12 }),
    says: /^users\[0\]\.user\.token must be text, but is a number: put it in quotes$/,
  },
  "an object as token": { text: withUser({ token: { a: 1 } }), says: /user\.token must be text, but is an object$/ },
  "a list as token": { text: withUser({ token: ["t"] }), says: /user\.token must be text, but is a list$/ },
  "null as token": { text: withUser({ token: null }), says: /user\.token must be text, but is empty$/ },
  "an empty token": { text: withUser({ token: "" }), says: /user\.token must not be empty/ },
  "a token that ends a header": { text: withUser({ token: "a\r\nx: y" }), says: /user\.token must be printable ASCII/ },
  "a token with a line break": { text: withUser({ token: "a\n" }), says: /user\.token must be printable ASCII/ },
  "a token beside a password": {
    text: withUser({ token: "t", username: "u", password: "p" }),
    says: /a token or a password, not both/,
  },
  "a user without password": { text: withUser({ username: "u" }), says: /username and password, or neither/ },
  "a user with a colon": { text: withUser({ username: "u:v", password: "p" }), says: /must not contain a colon/ },
  "another user to act as": { text: withUser({ token: "t", as: "root" }), says: /user\.as is not allowed/ },
  "a certificate without a key": {
    text: withUser({ "client-certificate-data": base64("-----BEGIN CERTIFICATE-----") }),
    says: /needs client-key-data|must hold/,
  },
  "a key that is no base64": {
    text: withUser({ "client-key-data": "§" }),
    says: /must be a PEM file|needs client-cert/,
  },
  "an authority that is no PEM": {
    text: withCluster({ "certificate-authority-data": base64("hello") }),
    says: /certificate-authority-data must be a PEM file in base64/,
  },
  "an authority that is no certificate": {
    text: withCluster({
      "certificate-authority-data": base64("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
    }),
    says: /must hold valid certificates, but number 1 is not one/,
  },
  "an authority for a server that is not checked": {
    text: withCluster({ "insecure-skip-tls-verify": true, "certificate-authority": "/ca" }),
    says: /certificate-authority names a file|must be omitted/,
  },
  "a number as TLS name": {
    text: withCluster({ "tls-server-name": 5 }),
    says: /tls-server-name must be text, but is a nu/,
  },
  "an address as TLS name": { text: withCluster({ "tls-server-name": "10.0.0.1" }), says: /must be a DNS name/ },
  "a TLS name with a zero byte": { text: withCluster({ "tls-server-name": "a\0b" }), says: /must be a DNS name/ },
  "text as flag": {
    text: withCluster({ "insecure-skip-tls-verify": "yes" }),
    says: /must be true or false, but is text/,
  },
  "a proxy": {
    text: withCluster({ "proxy-url": "http://p" }),
    says: /proxy-url leads through a proxy, which this server/,
  },
  "an extension": { text: withCluster({ extensions: [] }), says: /cluster\.extensions is not allowed/ },
  "a prototype": {
    text: only().replace('"token"', '"__proto__":{"token-file":"/x"},"token"'),
    says: /line 1 must not have the key "__proto__"/,
  },
  "a constructor": { text: withUser({ constructor: "t" }), says: /user\.constructor is not allowed/ },
  "a member twice": {
    text: only().replace('"token"', '"token":"x","token"'),
    says: /line 1 has the key "token" for the second time/,
  },
  "a merge key": { text: withUser({ "<<": { "token-file": "/x" } }), says: /user\."<<" is not allowed/ },
  "an anchor": { text: only().replace('{"token"', '&a {"token"'), says: /must have no anchors, aliases or merge keys/ },
  "a tag": { text: only().replace('{"token"', '!!map {"token"'), says: /must have no tags or directives/ },
  "another version of YAML": { text: `%YAML 1.1\n---\n${only()}`, says: /must have no tags or directives/ },
  "two documents": { text: `${only()}\n---\n${only()}`, says: /must be a single document/ },
  "no server": { text: only({ cluster: {} }), says: /clusters\[0\]\.cluster\.server is missing/ },
  "a server that is a list": {
    text: only(withServer(["https://a"])),
    says: /cluster\.server must be text, but is a list/,
  },
  "a server with a password": { text: only(withServer("https://u:p@a")), says: /must not hold a user or password/ },
  "a server with a query": { text: only(withServer("https://a/?x=")), says: /must not have a query or fragment/ },
  "a server without encryption": {
    text: only(withServer("http://a")),
    says: /must be an https URL, unless insecure-skip/,
  },
  "no contexts": { text: only({}, { contexts: null }), says: /the kubeconfig has no context a$/ },
  "contexts that are no list": { text: only({}, { contexts: {} }), says: /contexts must be a list, but is an object/ },
  "a context that is null": {
    text: only({}, { contexts: [null, { name: "a", context: { cluster: "one", user: "me" } }] }),
    says: /contexts\[0\] must be an object with name and context, but is empty/,
  },
  "a context without content": {
    text: only({ context: null }),
    says: /contexts\[0\]\.context must be an object, but is empty/,
  },
  "a context without cluster": {
    text: only({ context: { user: "me" } }),
    says: /context\.cluster is missing: it must name/,
  },
  "a context without user": {
    text: only({ context: { cluster: "one" } }),
    says: /^contexts\[0\]\.context\.user is missing: it must name one of the users$/,
  },
  "a user that is null": { text: only({ user: null }), says: /users\[0\]\.user must be an object, but is empty/ },
  "no users": { text: only({}, { users: [] }), says: /the kubeconfig has no user me/ },
  "a cluster that is text": {
    text: only({ cluster: "one" }),
    says: /clusters\[0\]\.cluster must be an object, but is text/,
  },
  "two users of a name": {
    text: only(
      {},
      {
        users: [
          { name: "me", user: {} },
          { name: "me", user: {} },
        ],
      },
    ),
    says: /users\[1\]\.name is also the name of an earlier entry: me/,
  },
  "an entry without name": {
    text: only({}, { users: [{ name: "me", user: {} }, { user: {} }] }),
    says: /users\[1\]\.name must be text, but is empty/,
  },
  "an entry with another member": {
    text: only({}, { users: [{ name: "me", user: {}, exec: {} }] }),
    says: /users\[0\]\.exec is not allowed: allowed are name and user/,
  },
  "an unknown member": {
    text: only({ config: { include: "/etc" } }),
    says: /^include is not allowed: allowed are apiVersion/,
  },
  "another version": { text: only({ config: { apiVersion: "v2" } }), says: /^apiVersion must be v1$/ },
  "preferences that are not empty": {
    text: only({ config: { preferences: { a: 1 } } }),
    says: /must be an empty object/,
  },
  "a current context that is a number": {
    text: only({ config: { "current-context": 5 } }).replace('"a"', '"5"'),
    says: /current-context must be text|no current context/,
  },
};
for (const [name, { text, says }] of Object.entries(hostile)) {
  test(`a kubeconfig with ${name} is refused with its place and what is allowed, and no client is made of it`, () => {
    const picked = pick(text);
    assert.ok(picked.kind === "refused");
    assert.match(picked.problems.join("\n"), new RegExp(says.source, "m"));
    assert.ok(!picked.problems.join().includes(SECRET));
  });
}

test("a kubeconfig as kubectl and kubeadm write it is taken", () => {
  const config = { preferences: {}, apiVersion: "v1", kind: "Config" };
  const context = { cluster: "one", user: "me", namespace: "default" };
  assert.equal(pick(only({ config, context })).kind, "ok");
  assert.equal(pick(withUser({})).kind, "ok", "a user without credentials is anonymous");
});

const floods: Record<string, string> = {
  "90,000 keys": `{${Array.from({ length: 90_000 }, (_, at) => `k${at}: 1`).join(",")}}`,
  "500,000 brackets": "[".repeat(500_000),
  "brackets up to the limit": "[".repeat(KUBECONFIG_BYTES_MAX),
  "lists in one line up to the limit": "- ".repeat(KUBECONFIG_BYTES_MAX / 2),
  "keys up to the limit": Array.from({ length: 8_000 }, (_, at) => `k${at}: 1`).join("\n"),
  "commas up to the limit": ",".repeat(KUBECONFIG_BYTES_MAX),
  "unknown members up to the limit": only({
    user: Object.fromEntries(Array.from({ length: 4_000 }, (_, at) => [`token${at}`, ""])),
  }),
  "entries up to the limit": only({}, { users: Array.from({ length: 9_000 }, () => null) }),
};
for (const [name, text] of Object.entries(floods)) {
  test(`a kubeconfig of ${name} is refused before it costs anything`, () => {
    const picked = pick(text);
    assert.ok(picked.kind === "refused");
    assert.ok(picked.problems.length <= 21);
  });
}

test("any JSON in a kubeconfig is refused or has only allowed members of their types", () => {
  const texts = ["client-key", "token", "server", "exec", "https://a.example", "me", "one", "a", ""];
  const name = fc.constantFrom("token", "token-file", "tokenFile", "server", "name", "cluster", "user", "exec", "as");
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof({ depthSize: "small" }, fc.constantFrom(...texts), fc.jsonValue(), tie("object")),
    object: fc.dictionary(name, tie("value"), { maxKeys: 4 }),
  }));
  const server = fc.oneof(fc.constant("https://a.example"), value);
  const user = fc.oneof(
    fc.constant({}),
    fc.constant({ token: "t" }),
    fc.dictionary(name, value, { maxKeys: 3 }),
    value,
  );
  const list = fc.oneof(fc.constant(undefined), value);
  fc.assert(
    fc.property(server, user, list, fc.boolean(), (one, two, three, allowLocal) => {
      const lists = three === undefined ? {} : { contexts: three };
      const picked = pick(only({ cluster: { server: one }, user: two }, lists), "", allowLocal);
      if (picked.kind === "refused") return assert.ok(picked.problems.length > 0);
      const allowed = ["token", ...(allowLocal ? ["tokenFile", "exec"] : [])];
      for (const [member, inner] of Object.entries(picked.user)) {
        assert.ok(allowed.includes(member) && (typeof inner === "string" || member === "exec"), member);
      }
      assert.equal(typeof picked.cluster["server"], "string");
    }),
    { numRuns: 500 },
  );
});

test("programs and files are accepted if the server allows them", () => {
  assert.equal(pick(config({}, { exec: { command: "sh" }, "client-key": "/k" }), "", true).kind, "ok");
});

test("files are replaced by their content, and only regular files of a small size are read", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "gangway-files-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const file = (name: string, text: string) => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const pipe = join(directory, "pipe");
  execFileSync("mkfifo", [pipe]);
  const large = file("large", "x".repeat(KUBECONFIG_BYTES_MAX + 1));
  for (const [path, says] of [
    [pipe, /is not a regular file/],
    ["/dev/zero", /is not a regular file/],
    [directory, /is not a regular file/],
    [large, /large has 65537 bytes; at most 65536 are allowed/],
    [file("other", "hello"), /certificate-authority-data must be a PEM file/],
    [join(directory, "none"), /ENOENT/],
  ] as const) {
    const text = withCluster({ "certificate-authority": path });
    const accepted = await acceptKubeconfig(text, { context: "", allowLocal: true });
    assert.ok(accepted.kind === "refused", path);
    assert.match(accepted.problems.join(), says);
  }
  const tokenFile = file("token", "t");
  const accepted = await acceptKubeconfig(withUser({ tokenFile }), { context: "", allowLocal: true });
  assert.ok(accepted.kind === "ok" && accepted.usable.includes(tokenFile), "a token's file is read when it is used");
});

test("a server at a refused address is refused with the rule, and one without an address is taken", async () => {
  const accept = (server: string, list: string) => {
    const text = only({ cluster: { server } });
    return acceptKubeconfig(text, { context: "", allowLocal: false, hosts: parseAllowedHosts(list) });
  };
  for (const host of ["169.254.169.254", "[::ffff:169.254.169.254]", "2852039166", "0xa9fea9fe"]) {
    const refused = await accept(`https://${host}/`, "*");
    assert.ok(refused.kind === "refused");
    assert.match(
      refused.problems.join(),
      /leads to a link-local address: GANGWAY_CLUSTER_HOSTS must list a range inside/,
    );
  }
  const closed = await accept("https://a.example", "*.k8s.example");
  assert.ok(closed.kind === "refused");
  assert.match(closed.problems.join(), /^the host a\.example is not allowed by GANGWAY_CLUSTER_HOSTS, which lists/);
  assert.equal((await accept("https://nowhere.invalid", "*")).kind, "ok");
  assert.equal((await accept("https://localhost", "127.0.0.0/8,::1/128")).kind, "ok");
});

const named = (name: string) => ({ name, bytes: randomBytes(32) });
const ring = (current: string, ...keys: readonly { readonly name: string; readonly bytes: Buffer }[]) => ({
  current,
  keys: new Map(keys.map(({ name, bytes }) => [name, bytes])),
});

test("an encrypted kubeconfig can be decrypted only with its key and under its cluster's name", async () => {
  for (const name of ["default", "2026-11"]) {
    const key = named(name);
    const sealed = sealKubeconfig(key, "one", config());
    assert.ok(!JSON.stringify(sealed).includes(SECRET));
    assert.equal(sealed.key, name);
    const open = (cluster: string, keys: CredentialKeys, stored: JsonObject = sealed) =>
      openCredentials(stored, { cluster, keys, allowLocal: false });
    const right = ring(name, key);
    assert.equal(await open("one", right), config());
    assert.notDeepEqual(sealKubeconfig(key, "one", config()), sealed, "no nonce is used twice");
    await assert.rejects(open("two", right), /encrypted with another key/);
    await assert.rejects(open("one", ring(name, named(name))), /encrypted with another key/);
    await assert.rejects(open("one", right, { ...sealed, text: "AAAA" }), /encrypted with another key/);
    // Under another name of a key, the same bytes do not decrypt.
    const renamed = { ...key, name: "renamed" };
    await assert.rejects(open("one", ring("renamed", renamed), { ...sealed, key: "renamed" }), /with another key/);
    await assert.rejects(
      open("one", ring("renamed", renamed)),
      new RegExp(`encrypted with the key ${name}(, and GANGWAY_CREDENTIALS_KEY is not set)?; there are renamed here`),
    );
  }
  const sealed = sealKubeconfig(named("default"), "one", config());
  await assert.rejects(
    openCredentials(sealed, { cluster: "one", keys: onlyDefault(null), allowLocal: false }),
    /GANGWAY_CREDENTIALS_KEY is not set; there is no key here: put the key back, or replace the cluster's kubeconfig$/,
  );
});

const OLD_CONFIG = `apiVersion: v1
kind: Config
current-context: c
clusters:
  - name: c
    cluster:
      server: https://old.example.com
users:
  - name: u
    user:
      token: old
contexts:
  - name: c
    context:
      cluster: c
      user: u
`;

/** As a program from before there were named keys has stored it. */
const STORED_BEFORE_NAMES = {
  kind: "sealed",
  nonce: "KzGPOg4xNbnXk8rX",
  text: [
    "EeI21DyOAwPPV5LU2ZKPis9SMpr032rh09fhCG8PPRmzaYCh4H/3pFOlsvcbqt01wflvxlhKfj7vVOjJiZhdLmIEgDNJQI2m9tmB",
    "FOHLHP+U+LMHlyHFP0yOC2Cvc7bmyw0d7Y5ucB4SYqb7hmWWNplwqNRCOtP/n9FdQervubhtIkHjBtwEyzjkicCjdSWCCI5y5BBJ",
    "PJ2WsEi2zZdY5L78V8eVlPAmp+LNlcDZOrDcE9gpWi6q8xxCnu3/iMJ5SfXBZzDCBtmz0lT2M18oYW3GsPR2ePlEMlCcpm2HvYXw",
    "5NPJHJ3pew==",
  ].join(""),
  tag: "2y/bwUKmNFlyGgMshYjVow==",
};

test("credentials from before there were named keys decrypt with the default key", async () => {
  const keys = onlyDefault(Buffer.alloc(32, 7));
  const open = (stored: JsonObject) => openCredentials(stored, { cluster: "old", keys, allowLocal: false });
  assert.equal(await open(STORED_BEFORE_NAMES), OLD_CONFIG);
  const next = { current: "2026-11", keys: new Map([...keys.keys, ["2026-11", randomBytes(32)]]) };
  const resealed = resealCredentials(STORED_BEFORE_NAMES, "old", next);
  assert.deepEqual([resealed.key, resealed.origin], ["2026-11", STORED_BEFORE_NAMES.nonce]);
  assert.equal(await openCredentials(resealed, { cluster: "old", keys: next, allowLocal: false }), OLD_CONFIG);
  await assert.rejects(open(resealed), /encrypted with the key 2026-11; there are default here/);
});

test("credentials that are encrypted again keep their content's name, and others have another", () => {
  const [one, two] = [named("one"), named("two")];
  const first = sealKubeconfig(one, "c", config());
  const second = resealCredentials(first, "c", ring("two", one, two));
  const third = resealCredentials(second, "c", ring("one", one, two));
  assert.deepEqual(new Set([first, second, third].map(contentOf)), new Set([first.nonce]));
  assert.equal(new Set([first, second, third].map(({ nonce }) => nonce)).size, 3);
  assert.notEqual(contentOf(sealKubeconfig(one, "c", config())), first.nonce);
  assert.throws(
    () => resealCredentials(first, "c", ring("two", two)),
    /encrypted with the key one; there are two here/,
  );
});

test("a referenced file is read anew each time, and only if that is allowed", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "gangway-kubeconfig-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "kubeconfig");
  writeFileSync(path, config());
  const stored = { kind: "file", path, context: "b" };
  const open = (allowLocal: boolean) =>
    openCredentials(stored, { cluster: "one", keys: onlyDefault(null), allowLocal });
  assert.match(await open(true), /two\.example\.com/);
  await assert.rejects(open(false), /does not allow files/);
  writeFileSync(path, "[]");
  await assert.rejects(open(true), /must be an object in YAML or JSON/);
});
