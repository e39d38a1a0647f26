/** TLS of the command line: flags, variables and contexts, and which of them counts. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { CONNECTION_BOUNDS } from "../../src/api/connection-bounds.ts";
import { configFileAt } from "../../src/cli/config-file.ts";
import { mergeSecurity, NO_SECURITY } from "../../src/cli/security.ts";
import { readClientConfig } from "../../src/client-config.ts";
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

test("what is wrong with the files is said before any call", async () => {
  const gangway = (line: string) => run(line.split(" "), { files: { "a.pem": "none", "b.pem": "-----BEGIN X-----" } });
  assert.match((await gangway("list --client-cert b.pem")).stderr, /^error: a client certificate and its key belong/);
  assert.match((await gangway("list --ca-file none.pem")).stderr, /^error: none\.pem cannot be read: /);
  assert.match((await gangway("list --ca-file a.pem")).stderr, /^error: a\.pem is not in PEM/);
  for (const line of ["list --client-key b.pem", "list --ca-file a.pem"])
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
