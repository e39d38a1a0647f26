/** What a whole service tells browsers about logins. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Agent, fetch } from "undici";
import { startEmbedded } from "../../src/compose/embedded.ts";
import { readConfig } from "../../src/config/config.ts";
import { Certificates, hasOpenssl } from "../support/certificates.ts";
import { addDatabase } from "../support/data-folder.ts";
import { signingKey, TestIssuer } from "../support/issuer.ts";
import { OWN_KINDS } from "../support/kinds.ts";

/** Starts `gangway up`. Returns what sends requests to it. */
async function up(t: TestContext, parts: AsyncDisposableStack, of: { readonly env: (folder: string) => object }) {
  const folder = mkdtempSync(join(tmpdir(), "gangway-login-"));
  parts.defer(() => rmSync(folder, { recursive: true }));
  t.after(() => parts.disposeAsync());
  const config = readConfig(folder, { GANGWAY_CONSOLE_LISTEN: "127.0.0.1:0", ...of.env(folder) });
  const data = join(folder, "data");
  addDatabase(data);
  const options = { exit: false, examples: false, listen: "127.0.0.1:0", insecure: false, data, simulate: false };
  const service = await startEmbedded(options, config, OWN_KINDS);
  parts.defer(service.close);
  const [url] = /https?:\/\/\S+/.exec(service.console) ?? [];
  assert.ok(url !== undefined, service.console);
  return url;
}

const WHO_AM_I = "gangway.v1.AccessService/WhoAmI";
const JSON_HEADERS = { "content-type": "application/json" };

test("a service that asks nobody for credentials says so, and cookies change nothing", async (t) => {
  const url = await up(t, new AsyncDisposableStack(), { env: () => ({}) });
  const methods = await (await fetch(`${url}/auth/methods`)).json();
  assert.deepEqual(methods, { needed: false, token: false, issuer: null, caller: null });
  const cookie = `gangway=${"x".repeat(43)}`;
  const headers = { ...JSON_HEADERS, cookie };
  const me = await fetch(`${url}/${WHO_AM_I}`, { method: "POST", headers, body: "{}" });
  assert.match(await me.text(), /"subject":"anonymous"/);
  const login = await fetch(`${url}/auth/token`, { method: "POST", headers, body: '{"token":"gwt_x"}' });
  assert.match(await login.text(), /this service asks nobody for credentials: call it without a login/);
  assert.equal((await fetch(`${url}/auth/logout`, { method: "POST" })).status, 200);
  assert.equal((await fetch(`${url}/auth/logout`)).status, 405);
  assert.equal((await fetch(`${url}/auth/nothing`)).status, 404);
});

test("with TLS, a browser logs in with a token of an issuer, and its cookie is for this host alone", {
  skip: !hasOpenssl(),
}, async (t) => {
  const parts = new AsyncDisposableStack();
  const certificates = new Certificates();
  parts.defer(() => certificates.remove());
  const { certFile, keyFile } = certificates.sign("gangway", "DNS:localhost,IP:127.0.0.1");
  const issuer = await TestIssuer.start(await signingKey("one", "ES256"));
  parts.defer(() => issuer.close());
  const url = await up(t, parts, {
    env: (folder) => {
      const file = (name: string, text: string) => {
        writeFileSync(join(folder, name), text);
        return join(folder, name);
      };
      const issuers = [{ issuer: issuer.url, audiences: ["gangway"], subjectPrefix: "login:" }];
      return {
        GANGWAY_TLS_CERT_FILE: certFile,
        GANGWAY_TLS_KEY_FILE: keyFile,
        GANGWAY_AUTHENTICATION_FILE: file("authentication.yaml", JSON.stringify({ issuers })),
        GANGWAY_CREDENTIALS_KEY: Buffer.alloc(32, 7).toString("base64"),
      };
    },
  });
  const ca = certificates.read(certificates.caFile);
  const token = await issuer.sign({ sub: "ann" });
  for (const allowH2 of [false, true]) {
    const dispatcher = new Agent({ connect: { ca }, allowH2 });
    parts.defer(() => dispatcher.close());
    const post = (path: string, body: object, headers: Readonly<Record<string, string>> = {}) =>
      fetch(`${url}/${path}`, {
        ...{ dispatcher, method: "POST", body: JSON.stringify(body) },
        headers: { ...JSON_HEADERS, ...headers },
      });
    const made = await post("auth/token", { token });
    const [text = ""] = made.headers.getSetCookie();
    assert.match(text, /^__Host-gangway=[\w-]{43}; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Lax; Secure$/);
    assert.match(await made.text(), /"subject":"login:ann"/);
    const [cookie = ""] = text.split(";");
    const me = await post(WHO_AM_I, {}, { cookie: `other=1; ${cookie}` });
    assert.match(await me.text(), /"subject":"login:ann"/);
    const plain = await post(WHO_AM_I, {}, { cookie: cookie.replace("__Host-", "") });
    assert.equal(plain.status, 401, "a cookie that any page of the domain could set does not count");
    const out = await post("auth/logout", {}, { cookie });
    assert.match(
      out.headers.getSetCookie().join(),
      /^__Host-gangway=; Path=\/; Max-Age=0; HttpOnly; SameSite=Lax; Secure$/,
    );
    assert.equal((await post(WHO_AM_I, {}, { cookie })).status, 401);
  }
});
