import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { test } from "node:test";
import { connect } from "node:tls";
import { systemClock } from "../../src/runtime/clock.ts";
import { type ReadyCheck, startHttp } from "../../src/telemetry/http.ts";
import { createPrometheus } from "../../src/telemetry/prometheus.ts";
import { Certificates, hasOpenssl } from "../support/certificates.ts";

const clock = systemClock();
const ANY = "127.0.0.1:0";

async function get(address: string | null, path: string, method = "GET") {
  const response = await fetch(`http://${address}${path}`, { method });
  return { status: response.status, body: await response.text() };
}

const never = new Promise<boolean>(() => {});
const checks: Record<string, { checks: readonly ReadyCheck[]; answer: { status: number; body: string } }> = {
  "ready when everything is": {
    checks: [
      { name: "database", ready: async () => true },
      { name: "clusters", ready: () => true },
    ],
    answer: { status: 200, body: "[+] database\n[+] clusters\n" },
  },
  "not ready while a cluster has not been listed": {
    checks: [
      { name: "database", ready: async () => true },
      { name: "clusters", ready: () => false },
    ],
    answer: { status: 503, body: "[+] database\n[-] clusters\n" },
  },
  "a store that throws is not ready": {
    checks: [{ name: "database", ready: () => Promise.reject(new Error("away")) }],
    answer: { status: 503, body: "[-] database\n" },
  },
  "a check that throws at once is not ready": {
    checks: [
      {
        name: "database",
        ready: () => {
          throw new Error("closed");
        },
      },
    ],
    answer: { status: 503, body: "[-] database\n" },
  },
  "a store that does not answer is not ready": {
    checks: [{ name: "database", ready: () => never }],
    answer: { status: 503, body: "[-] database\n" },
  },
};
test("/readyz: a warning is shown, and leaves the service ready", async () => {
  const ports = {
    clock,
    checks: [{ name: "database", ready: () => true }],
    warnings: () => ["set more"],
    scrape: null,
  };
  const http = await startHttp(ports, { health: ANY, metrics: null, tls: null });
  try {
    assert.deepEqual(await get(http.health, "/readyz"), { status: 200, body: "[+] database\n[!] set more\n" });
  } finally {
    await http.close();
  }
});

for (const [name, c] of Object.entries(checks)) {
  test(`/readyz: ${name}`, async () => {
    const http = await startHttp({ clock, checks: c.checks, scrape: null }, { health: ANY, metrics: null, tls: null });
    try {
      assert.deepEqual(await get(http.health, "/readyz"), c.answer);
      assert.deepEqual(await get(http.health, "/livez"), { status: 200, body: "ok\n" });
    } finally {
      await http.close();
    }
  });
}

test("a draining process is live and not ready", async () => {
  const http = await startHttp({ clock, checks: [], scrape: null }, { health: ANY, metrics: null, tls: null });
  assert.equal((await get(http.health, "/readyz")).status, 200);
  http.drain();
  assert.deepEqual(await get(http.health, "/readyz"), { status: 503, body: "[-] not draining\n" });
  assert.equal((await get(http.health, "/livez")).status, 200);
  await http.close();
});

test("metrics share the server of health checks if both have one address, and have their own otherwise", async () => {
  const { scrape, record } = await createPrometheus();
  record("bucketsHeld", 7);
  const together = await startHttp({ clock, checks: [], scrape }, { health: ANY, metrics: ANY, tls: null });
  assert.equal(together.health, together.metrics);
  assert.match((await get(together.metrics, "/metrics")).body, /^gangway_buckets_held 7$/m);
  assert.equal((await get(together.metrics, "/livez")).status, 200);
  await together.close();
  const alone = await startHttp({ clock, checks: [], scrape }, { health: null, metrics: ANY, tls: null });
  assert.equal(alone.health, null);
  assert.equal((await get(alone.metrics, "/metrics?x=1")).status, 200);
  assert.equal((await get(alone.metrics, "/livez")).status, 404);
  assert.equal((await get(alone.metrics, "/metrics", "POST")).status, 404);
  await alone.close();
});

test("an address in use stops the start, and leaves nothing behind", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as { port: number };
  const { scrape } = await createPrometheus();
  const starting = startHttp({ clock, checks: [], scrape }, { health: ANY, metrics: `127.0.0.1:${port}`, tls: null });
  await assert.rejects(starting, /EADDRINUSE/);
  taken.close();
  await once(taken, "close");
});

test("without addresses, nothing is served", async () => {
  const http = await startHttp({ clock, checks: [], scrape: null }, { health: null, metrics: null, tls: null });
  assert.deepEqual([http.health, http.metrics], [null, null]);
  await http.close();
});

test("with a certificate, health speaks TLS 1.2 or later alone, and shows a replaced certificate", {
  skip: !hasOpenssl(),
}, async (t) => {
  const certificates = new Certificates();
  t.after(() => certificates.remove());
  const tls = certificates.serverTls("first", "none");
  const http = await startHttp({ clock, checks: [], scrape: null }, { health: ANY, metrics: null, tls });
  t.after(() => http.close());
  const shown = async () => {
    const [host = "", port] = (http.health ?? "").split(":");
    const socket = connect({ host, port: Number(port), ca: certificates.read(certificates.caFile) });
    await once(socket, "secureConnect");
    const { subject } = socket.getPeerCertificate();
    socket.end("GET /livez HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n");
    let answer = "";
    for await (const chunk of socket) answer += chunk;
    return [subject.CN, answer.split("\r\n")[0]];
  };
  assert.deepEqual(await shown(), ["first", "HTTP/1.1 200 OK"]);
  tls.replace("second");
  assert.deepEqual(await shown(), ["second", "HTTP/1.1 200 OK"]);
  await assert.rejects(get(http.health, "/livez"), /fetch failed/);
  // Also of the certificate that replaced another one.
  const protocolUpTo = async (maxVersion: "TLSv1.1" | "TLSv1.2", ciphers = "DEFAULT@SECLEVEL=0") => {
    const [host = "", port] = (http.health ?? "").split(":");
    const old = { minVersion: "TLSv1", maxVersion, ciphers } as const;
    const socket = connect({ host, port: Number(port), ca: certificates.read(certificates.caFile), ...old });
    t.after(() => socket.destroy());
    await once(socket, "secureConnect");
    return socket.getProtocol();
  };
  assert.equal(await protocolUpTo("TLSv1.2"), "TLSv1.2");
  await assert.rejects(protocolUpTo("TLSv1.1"), /protocol version/);
  // Without forward secrecy.
  for (const suite of ["AES256-GCM-SHA384", "AES128-GCM-SHA256", "AES128-SHA", "ECDHE-RSA-AES128-SHA"]) {
    await assert.rejects(protocolUpTo("TLSv1.2", `${suite}:@SECLEVEL=0`), /handshake failure/, suite);
  }
});
