/** TLS of the command line: flags, variables and contexts, and which of them counts. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { CONNECTION_BOUNDS } from "../../src/api/connection-bounds.ts";
import { configFileAt } from "../../src/cli/auth/config-file.ts";
import { callSecurity, mergeSecurity, NO_SECURITY } from "../../src/cli/auth/security.ts";
import { readClientConfig } from "../../src/config/client-config.ts";
import { ANONYMOUS, type Authenticate } from "../../src/core/access/identity.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { startFixture } from "../api/fixture.ts";
import { Certificates, hasOpenssl } from "../support/certificates.ts";
import { run, type World } from "./harness.ts";

const readFiles: World = { readFile: (path) => readFile(path, "utf8") };

test("a service with client certificates is called by flags, by variables and by a context", {
  skip: !hasOpenssl(),
}, async (t) => {
  const [own, other] = [new Certificates(), new Certificates()];
  const folder = mkdtempSync(join(tmpdir(), "gangway-security-"));
  t.after(() => {
    for (const certificates of [own, other]) certificates.remove();
    rmSync(folder, { recursive: true });
  });
  const { api } = await startFixture(t, {}, CONNECTION_BOUNDS, own.serverTls("server", "required"));
  const { certFile, keyFile } = own.sign("me", "DNS:me");
  const configFile = configFileAt(join(folder, "config.yaml"));
  const gangway = (line: string, more: World = {}) => run(line.split(" "), { ...readFiles, configFile, ...more });
  const flags = `--ca-file ${own.caFile} --client-cert ${certFile} --client-key ${keyFile}`;
  const address = `--address ${api.address}`;
  assert.equal((await gangway(`list ${address} ${flags}`)).stderr, "no jobs\n");
  assert.equal((await gangway(`${flags} list ${address}`)).stderr, "no jobs\n");
  const env = { GANGWAY_CA_FILE: own.caFile, GANGWAY_CLIENT_CERT_FILE: certFile, GANGWAY_CLIENT_KEY_FILE: keyFile };
  const { security } = readClientConfig("/", env);
  assert.equal((await gangway(`list ${address}`, { security })).stderr, "no jobs\n");
  assert.equal((await gangway(`list ${address}`)).exitCode, 4);
  assert.equal((await gangway(`list ${address} --tls`)).exitCode, 4);
  assert.equal((await gangway(`list ${address} --ca-file ${own.caFile}`)).exitCode, 4);
  assert.equal((await gangway(`list ${address} ${flags} --ca-file ${other.caFile}`)).exitCode, 4);

  assert.equal((await gangway(`context set prod ${address} ${flags}`)).exitCode, 0);
  assert.equal((await gangway("list")).stderr, "no jobs\n");
  assert.match((await gangway("context list")).stdout, /prod +127\.0\.0\.1:\d+ +- +TLS, certificate/);
  assert.equal((await gangway(`list ${address}`)).exitCode, 4, "another address gets nothing of the context");
  assert.doesNotMatch(readFileSync(join(folder, "config.yaml"), "utf8"), /BEGIN/, "the context names files alone");
  assert.equal((await gangway("context set prod --tls-server-name elsewhere")).exitCode, 0);
  assert.equal((await gangway("list")).exitCode, 4);
  assert.equal((await gangway("list --tls-server-name localhost")).stderr, "no jobs\n");
  await gangway(`context set prod ${address}`);
  assert.equal((await gangway("list")).exitCode, 4, "a context with another address gets its security anew");
});

test("a command shows the token that its file has at each call, and the last one while it cannot be read", async () => {
  const texts: (string | null)[] = ["one", "two", null, "no token", "three"];
  const readFile = async () => texts.shift() ?? Promise.reject(new Error("away"));
  const writePrivateFile = () => Promise.reject(new Error("no file is written here"));
  const deps = { readFile, writePrivateFile, clock: systemClock(), signal: new AbortController().signal };
  const { token } = await callSecurity({ ...NO_SECURITY, tokenFile: "t" }, ["127.0.0.1:1"], deps);
  assert.ok(token !== null);
  assert.deepEqual([await token(), await token(), await token(), await token()], ["two", "two", "two", "three"]);
});

const CERTIFICATE_PEM = "-----BEGIN CERTIFICATE-----";

test("what is wrong with the files is said before any call", async () => {
  const files = { "a.pem": "none", "cert.pem": CERTIFICATE_PEM, "key.pem": "-----BEGIN EC PRIVATE KEY-----" };
  const gangway = (line: string) => run(line.split(" "), { files });
  assert.match(
    (await gangway("list --client-cert cert.pem")).stderr,
    /^error: a client certificate and its key belong/,
  );
  assert.match((await gangway("list --ca-file none.pem")).stderr, /^error: none\.pem cannot be read: /);
  for (const file of ["a.pem", "key.pem"]) {
    const { stderr } = await gangway(`list --ca-file ${file}`);
    assert.equal(stderr.split("\n")[0], `error: ${file} has no certificate in PEM`);
  }
  const pair = await gangway("list --client-cert cert.pem --client-key cert.pem");
  assert.match(pair.stderr, /^error: cert\.pem has no private key in PEM/);
  for (const line of ["list --client-key key.pem", "list --ca-file a.pem"])
    assert.equal((await gangway(line)).exitCode, 2);
  assert.throws(() => readClientConfig("/", { GANGWAY_TLS: "yes" }), /GANGWAY_TLS is "yes"; allowed are on, off/);
});

describe("merged security", () => {
  const a = { ...NO_SECURITY, clientCertFile: "a.crt", clientKeyFile: "a.key" };
  const b = { ...NO_SECURITY, tls: true, caFile: "b.ca", clientCertFile: "b.crt", clientKeyFile: "b.key" };
  test("takes what is given first, and a certificate only with its own key", () => {
    assert.deepEqual(mergeSecurity(a, b), { ...b, clientCertFile: "a.crt", clientKeyFile: "a.key" });
    assert.deepEqual(mergeSecurity({ ...NO_SECURITY, clientCertFile: "c.crt" }, b).clientKeyFile, "");
    assert.deepEqual(mergeSecurity(NO_SECURITY, b), b);
  });
});

test("a token is read from its file for each command, and leaves this machine only by TLS", async (t) => {
  const shown: (readonly string[])[] = [];
  const authenticate: Authenticate = async ({ authorization }) => {
    shown.push(authorization);
    return { kind: "identity", identity: { ...ANONYMOUS, method: "oidc", subject: "login:ann", groups: ["a", "b"] } };
  };
  const { api } = await startFixture(t, { authenticate });
  const gangway = (line: string, more: World = {}) => run(line.split(" "), { address: api.address, ...more });
  const files = { "my.token": "secret.token\n", "two.token": "a b", "empty.token": "" };
  const who = await gangway("whoami --token-file my.token", { files });
  assert.equal(who.stdout, "login:ann\ngroups: a, b\nauthenticated by: oidc\n");
  assert.deepEqual(shown, [["Bearer secret.token"]]);
  assert.equal((await gangway("--token-file my.token whoami -o name", { files })).stdout, "login:ann\n");
  const { security } = readClientConfig("/", { GANGWAY_TOKEN_FILE: "my.token" });
  assert.equal((await gangway("whoami -o jsonpath={.method}", { files, security })).stdout, "oidc");
  assert.equal(shown.length, 3);
  for (const [line, words] of [
    ["whoami --token-file two.token", /two\.token does not hold a token alone/],
    ["whoami --token-file empty.token", /does not hold a token alone/],
    ["whoami --token-file none.token", /none\.token cannot be read/],
    [
      "whoami --token-file my.token --address gangway.example:7443",
      /a token is not sent to gangway\.example:7443 without/,
    ],
    [
      "whoami --token-file my.token --address 127.0.0.1:1,10.0.0.1:7443",
      /a token is not sent to 10\.0\.0\.1:7443 without/,
    ],
  ] as const) {
    const { exitCode, stderr } = await gangway(line, { files });
    assert.equal(exitCode, 2, line);
    assert.match(stderr, words);
    assert.doesNotMatch(stderr, /secret/);
  }
  assert.equal(shown.length, 3);
});
