/** The file of authentication, which counts while the service runs. */
import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { issuerKeys } from "../../src/access/issuer-keys.ts";
import { followedReviewer } from "../../src/adapters/cluster/token-review.ts";
import { connectAuthentication } from "../../src/compose/access.ts";
import { readConfig } from "../../src/config/config.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { waitUntil } from "../support/bounded.ts";
import { Certificates, hasOpenssl } from "../support/certificates.ts";
import { signingKey, TestIssuer } from "../support/issuer.ts";
import { memoryRobots } from "../support/memory-robots.ts";

test("issuers are added and removed while the service runs, and a wrong file changes nothing", async (t) => {
  const [one, two] = [await TestIssuer.start(await signingKey("1")), await TestIssuer.start(await signingKey("2"))];
  const folder = mkdtempSync(join(tmpdir(), "gangway-authentication-"));
  const file = join(folder, "authentication.yaml");
  const parts = new AsyncDisposableStack();
  t.after(async () => {
    await parts.disposeAsync();
    for (const issuer of [one, two]) issuer.close();
    rmSync(folder, { recursive: true });
  });
  const issuerOf = ({ url }: TestIssuer) => ({ issuer: url, audiences: ["gangway"] });
  // In one step: the service would say that half a file is wrong.
  const replace = (text: string) => {
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
  };
  const write = (...issuers: readonly TestIssuer[]) => replace(JSON.stringify({ issuers: issuers.map(issuerOf) }));
  write(one);
  const failures: string[] = [];
  const real = systemClock();
  const clock = { ...real, sleep: (_: number, signal?: AbortSignal) => real.sleep(5, signal) };
  const telemetry = {
    loopFailed: ({ loop, error }: { loop: string; error: unknown }) => void failures.push(`${loop}: ${error}`),
    authenticationFileRead: () => {},
  };
  const ports = { clock, telemetry, audit: async () => {}, verifyRobot: memoryRobots().verify };
  const config = readConfig("/", { GANGWAY_AUTHENTICATION_FILE: file });
  const { authenticate } = await connectAuthentication(config, ports, parts);
  const answer = async (issuer: TestIssuer) =>
    (await authenticate({ authorization: [`Bearer ${await issuer.sign()}`], certificate: null })).kind;
  const becomes = (issuer: TestIssuer, kind: string) =>
    waitUntil(`it is ${kind}`, async () => (await answer(issuer)) === kind);
  assert.deepEqual([await answer(one), await answer(two)], ["identity", "refused"]);
  write(one, two);
  await becomes(two, "identity");
  assert.equal(await answer(one), "identity");
  const asked = one.asked.length;
  write(one);
  await becomes(two, "refused");
  assert.equal(await answer(one), "identity");
  assert.equal(one.asked.length, asked, "the keys of an issuer that stays are not read again");
  assert.deepEqual(failures, []);
  replace("issuers: [{issuer: 7}]");
  await waitUntil("the wrong file is reported", () => failures.length === 1);
  assert.match(failures[0] ?? "", /^authentication file: Error: GANGWAY_AUTHENTICATION_FILE names .*issuers\[0\]/);
  replace("{}");
  await waitUntil("a file without a method is reported", () => failures.length === 2);
  assert.match(failures[1] ?? "", /turns authentication on or off, which needs a restart of the service$/);
  assert.deepEqual([await answer(one), await answer(two)], ["identity", "refused"]);
  write(two);
  await becomes(one, "refused");
  assert.equal(await answer(two), "identity");
});

const skip = hasOpenssl() ? false : "openssl is not on the PATH";

test("an issuer is trusted by the authority of its caFile, and by no other", { skip }, async (t) => {
  const [own, foreign] = [new Certificates(), new Certificates()];
  const { certFile, keyFile } = own.sign("issuer", "IP:127.0.0.1");
  const served = { cert: own.read(certFile), key: own.read(keyFile) };
  const issuer = await TestIssuer.startTls(served, await signingKey("1"));
  t.after(() => {
    issuer.close();
    for (const one of [own, foreign]) one.remove();
  });
  const failures: string[] = [];
  const answerWith = async (caFile: string | null) => {
    await using parts = new AsyncDisposableStack();
    const telemetry = {
      loopFailed: ({ error }: { error: unknown }) => void failures.push(String((error as Error).cause ?? error)),
      authenticationFileRead: () => {},
    };
    const ports = { clock: systemClock(), telemetry, audit: async () => {}, verifyRobot: memoryRobots().verify };
    const folder = mkdtempSync(join(tmpdir(), "gangway-authentication-"));
    parts.defer(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "authentication.yaml");
    const named = { issuer: issuer.url, audiences: ["gangway"], ...(caFile === null ? {} : { caFile }) };
    writeFileSync(file, JSON.stringify({ issuers: [named] }));
    const config = readConfig("/", { GANGWAY_AUTHENTICATION_FILE: file });
    const { authenticate } = await connectAuthentication(config, ports, parts);
    const shown = { authorization: [`Bearer ${await issuer.sign()}`], certificate: null };
    try {
      return (await authenticate(shown)).kind;
    } catch (error) {
      return (error as Error).name;
    }
  };
  assert.equal(await answerWith(own.caFile), "identity");
  assert.deepEqual(failures, []);
  const asked = issuer.asked.length;
  for (const untrusting of [foreign.caFile, null]) {
    assert.equal(await answerWith(untrusting), "IssuerUnavailableError");
    assert.match(failures.at(-1) ?? "", /certificate/);
  }
  assert.equal(issuer.asked.length, asked, "nothing is asked of a server that shows another certificate");
});

test("an issuer's authority may be replaced in its caFile while the service runs", { skip }, async (t) => {
  const [before, after] = [new Certificates(), new Certificates()];
  const parts = new AsyncDisposableStack();
  t.after(async () => {
    await parts.disposeAsync();
    for (const one of [before, after]) one.remove();
  });
  const key = await signingKey("1");
  const serve = (from: Certificates) => {
    const { certFile, keyFile } = from.sign("issuer", "IP:127.0.0.1");
    return TestIssuer.startTls({ cert: from.read(certFile), key: from.read(keyFile) }, key);
  };
  const [renewed, folder] = [await serve(after), mkdtempSync(join(tmpdir(), "gangway-authentication-"))];
  parts.defer(() => rmSync(folder, { recursive: true }));
  parts.defer(() => renewed.close());
  const caFile = join(folder, "ca.crt");
  writeFileSync(caFile, before.read(before.caFile));
  const time = { monotonicMs: 0 };
  const errors: unknown[] = [];
  const keys = issuerKeys({
    issuer: renewed.url,
    ca: () => readFile(caFile, "utf8"),
    clock: { monotonicMs: () => time.monotonicMs },
    onError: (error) => void errors.push(error),
  });
  const header = { alg: "RS256", kid: "1" };
  const keyOf = async () => keys(header, { payload: "", signature: "" });
  await assert.rejects(keyOf, /is away/);
  assert.equal(errors.length, 1);
  writeFileSync(caFile, after.read(after.caFile));
  time.monotonicMs += 6_000;
  assert.ok(await keyOf());
});

test("a kubeconfig for reviews counts as it is now: its token may be replaced while the service runs", async (t) => {
  const known = { token: "old" };
  const server = createServer((request, response) => {
    const may = request.headers.authorization === `Bearer ${known.token}`;
    const status = { authenticated: true, user: { username: "system:serviceaccount:a:b" }, audiences: ["gangway"] };
    response.writeHead(may ? 201 : 401, { "content-type": "application/json" });
    request.resume().on("end", () => response.end(JSON.stringify(may ? { status } : { reason: "Unauthorized" })));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const file = { token: "old", read: 0 };
  const readKubeconfig = async () => {
    file.read += 1;
    return JSON.stringify({
      clusters: [{ name: "c", cluster: { server: at, "insecure-skip-tls-verify": true } }],
      users: [{ name: "u", user: { token: file.token } }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      "current-context": "x",
    });
  };
  const time = { monotonicMs: 0 };
  const clock = { monotonicMs: () => time.monotonicMs };
  const review = await followedReviewer(readKubeconfig, { audience: "gangway", onError: () => undefined, clock });
  assert.equal((await review("t")).kind, "known");
  known.token = "new";
  await assert.rejects(review("t"), UnavailableError);
  assert.equal(file.read, 1, "it was read less than 30 seconds ago");
  file.token = "new";
  time.monotonicMs += 31_000;
  assert.deepEqual(
    (await Promise.all(["t", "u", "v"].map(review))).map(({ kind }) => kind),
    ["known", "known", "known"],
  );
  assert.equal(file.read, 2, "reviews share a reading");
});
