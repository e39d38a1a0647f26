import assert from "node:assert/strict";
import { createServer, type RequestListener, request } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { type TestContext, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { parseAllowedHosts } from "../../src/adapters/cluster/allowed-hosts.ts";
import { createKubeClient } from "../../src/adapters/cluster/client.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { Certificates, hasOpenssl } from "../support/certificates.ts";

async function portOf(t: TestContext, server: Server & { closeAllConnections: () => void }): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** The outcome of one call: what the server saw of it, or why it failed. */
async function call(t: TestContext, of: { cluster: JsonObject; user?: JsonObject; list?: string }) {
  const kubeconfig = JSON.stringify({
    clusters: [{ name: "c", cluster: of.cluster }],
    users: [{ name: "u", user: of.user ?? {} }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    "current-context": "c",
  });
  const hosts = parseAllowedHosts(of.list ?? "*,127.0.0.0/8,::1");
  const client = createKubeClient({ kubeconfig, hosts, connectionsMax: 2, requestTimeoutMs: 10_000 });
  t.after(() => client.close());
  const answer = await client.request({ method: "GET", path: "/version" });
  return answer.kind === "ok" ? answer.object : answer.message;
}

test("a client trusts the authority of its kubeconfig alone, and logs in as it says", {
  skip: hasOpenssl() ? false : "openssl is not on the PATH",
}, async (t) => {
  const certificates = new Certificates();
  t.after(() => certificates.remove());
  const own = certificates.sign("server", "DNS:api.example");
  const client = certificates.sign("client", "DNS:client");
  const data = (file: string) => Buffer.from(certificates.read(file)).toString("base64");
  const keys = { key: certificates.read(own.keyFile), cert: certificates.read(own.certFile) };
  const trust = { ca: certificates.read(certificates.caFile), requestCert: true, rejectUnauthorized: false };
  const tls = createTlsServer({ ...keys, ...trust }, ({ socket, headers }, response) => {
    const by = (socket as TLSSocket).getPeerCertificate().subject?.CN ?? "";
    response.end(JSON.stringify({ by, authorization: headers.authorization ?? "" }));
  });
  const server = `https://127.0.0.1:${await portOf(t, tls)}`;
  const authority = { "certificate-authority-data": data(certificates.caFile) };
  const cluster = { server, ...authority, "tls-server-name": "api.example" };
  assert.deepEqual(await call(t, { cluster, user: { token: "t" } }), { by: "", authorization: "Bearer t" });
  assert.deepEqual(await call(t, { cluster, user: { username: "u", password: "p" } }), {
    by: "",
    authorization: `Basic ${Buffer.from("u:p").toString("base64")}`,
  });
  const pair = { "client-certificate-data": data(client.certFile), "client-key-data": data(client.keyFile) };
  assert.deepEqual(await call(t, { cluster, user: pair }), { by: "client", authorization: "" });
  assert.match(String(await call(t, { cluster: { server } })), /certificate|UNABLE_TO/, "an unknown authority");
  assert.match(String(await call(t, { cluster: { server, ...authority } })), /IP|altnames/, "another name");
  const unchecked = { server, "insecure-skip-tls-verify": true };
  assert.deepEqual(await call(t, { cluster: unchecked }), { by: "", authorization: "" });
  const mixed = { ...pair, "client-key-data": data(own.keyFile) };
  await assert.rejects(call(t, { cluster, user: mixed }), /client-key-data must be the key of client-certificate-data/);
});

test("a proxy and its target are judged too", async (t) => {
  const seen: string[] = [];
  const target = createServer((_request, response) => response.end('{"from": "target"}'));
  const port = await portOf(t, target);
  const forward: RequestListener = ({ url, headers }, response) => {
    seen.push(url ?? "");
    request({ host: "127.0.0.1", port, path: "/", headers }, (answer) => answer.pipe(response)).end();
  };
  const proxy = `http://localhost:${await portOf(t, createServer(forward))}`;
  const through = (server: string) => ({ server, "insecure-skip-tls-verify": true, "proxy-url": proxy });
  assert.deepEqual(await call(t, { cluster: through("http://api.internal") }), { from: "target" });
  assert.deepEqual(seen, ["http://api.internal/version"]);
  const closed = await call(t, { cluster: through("http://api.internal"), list: "*" });
  assert.match(String(closed), /the host localhost leads to a loopback address/);
  await assert.rejects(call(t, { cluster: through("http://169.254.169.254") }), /leads to a link-local address/);
  await assert.rejects(
    call(t, { cluster: through("http://api.internal"), list: "localhost,127.0.0.0/8,::1" }),
    /the host api\.internal is not allowed/,
  );
  assert.equal(seen.length, 1);
});
