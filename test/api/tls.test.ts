/** Calls over TLS: which clients get a connection, and what a certificate that is replaced changes. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { CONNECTION_BOUNDS } from "../../src/api/connection-bounds.ts";
import { type Exposure, lacking } from "../../src/api/exposure.ts";
import { CallError, codeName } from "../../src/cli/rpc/call-error.ts";
import type { ClientTls } from "../../src/cli/rpc/channel.ts";
import { connect } from "../../src/cli/rpc/client.ts";
import { sayInsecure } from "../../src/compose/insecure.ts";
import { JobService, WatchJobsResponse_Type as Type } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import type { ServerTls } from "../../src/runtime/server-tls.ts";
import { Certificates, hasOpenssl } from "../support/certificates.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";

const { method } = JobService;
const never = new AbortController().signal;

function authority(t: TestContext): Certificates {
  const certificates = new Certificates();
  t.after(() => certificates.remove());
  return certificates;
}

function trusting(certificates: Certificates, more: Partial<ClientTls> = {}): ClientTls {
  return { ca: certificates.read(certificates.caFile), cert: null, key: null, serverName: null, ...more };
}

function showing(by: Certificates, name: string): Pick<ClientTls, "cert" | "key"> {
  const { certFile, keyFile } = by.sign(name, `DNS:${name}`);
  return { cert: by.read(certFile), key: by.read(keyFile) };
}

async function codeOf(t: TestContext, address: string, tls: ClientTls | null): Promise<string> {
  const client = connect(address, never, { tls, token: null });
  t.after(() => client.close());
  try {
    await client.call(method.listKinds, {});
    return "OK";
  } catch (error) {
    assert.ok(error instanceof CallError, String(error));
    return codeName(error.code);
  }
}

describe("TLS", { skip: !hasOpenssl() }, () => {
  test("only a client that trusts the authority gets a connection", async (t) => {
    const [own, other] = [authority(t), authority(t)];
    const { api } = await startFixture(t, {}, CONNECTION_BOUNDS, own.serverTls("server", "none"));
    const byName = api.address.replace("127.0.0.1", "localhost");
    assert.equal(await codeOf(t, api.address, trusting(own)), "OK");
    assert.equal(await codeOf(t, byName, trusting(own)), "OK");
    assert.equal(await codeOf(t, api.address, trusting(own, { serverName: "localhost" })), "OK");
    assert.equal(await codeOf(t, api.address, trusting(own, { serverName: "elsewhere" })), "UNAVAILABLE");
    assert.equal(await codeOf(t, api.address, trusting(other)), "UNAVAILABLE");
    assert.equal(await codeOf(t, api.address, null), "UNAVAILABLE");
  });

  test("TLS 1.1 is refused, TLS 1.2 is not", async (t) => {
    const own = authority(t);
    const { api } = await startFixture(t, {}, CONNECTION_BOUNDS, own.serverTls("server", "none"));
    const shake = async (maxVersion: "TLSv1.1" | "TLSv1.2", ciphers = "DEFAULT@SECLEVEL=0") => {
      const [host = "", port] = api.address.split(":");
      const ca = own.read(own.caFile);
      const options = { ca, minVersion: "TLSv1", maxVersion, ciphers } as const;
      const socket = connectTls({ host, port: Number(port), ALPNProtocols: ["h2"], ...options });
      t.after(() => socket.destroy());
      await once(socket, "secureConnect");
      return socket.getProtocol();
    };
    assert.equal(await shake("TLSv1.2"), "TLSv1.2");
    await assert.rejects(shake("TLSv1.1"), /protocol version/);
    // Without forward secrecy.
    for (const suite of ["AES256-GCM-SHA384", "AES128-GCM-SHA256", "AES128-SHA", "ECDHE-RSA-AES128-SHA"]) {
      await assert.rejects(shake("TLSv1.2", `${suite}:@SECLEVEL=0`), /handshake failure/, suite);
    }
  });

  const clients: Record<string, { clients: ServerTls["clients"]; none: string; own: string; other: string }> = {
    "required: only clients with a certificate of the authority get a connection": {
      clients: "required",
      none: "UNAVAILABLE",
      own: "OK",
      other: "UNAVAILABLE",
    },
    "optional: clients without one also get a connection": { clients: "optional", none: "OK", own: "OK", other: "OK" },
  };
  for (const [name, c] of Object.entries(clients)) {
    test(`client certificates, ${name}`, async (t) => {
      const [own, other] = [authority(t), authority(t)];
      const { api } = await startFixture(t, {}, CONNECTION_BOUNDS, own.serverTls("server", c.clients));
      assert.equal(await codeOf(t, api.address, trusting(own)), c.none);
      assert.equal(await codeOf(t, api.address, trusting(own, showing(own, "me"))), c.own);
      assert.equal(await codeOf(t, api.address, trusting(own, showing(other, "me"))), c.other);
    });
  }

  test("a certificate is replaced while calls run: they go on, and new connections see the new one", async (t) => {
    const [first, second] = [authority(t), authority(t)];
    const tls = first.serverTls("first", "none");
    const replaced = second.serverTls("second", "none").context();
    const listeners: Parameters<ServerTls["onChange"]>[0][] = [];
    const { api } = await startFixture(t, {}, CONNECTION_BOUNDS, {
      ...tls,
      onChange: (listener) => void listeners.push(listener),
    });
    const client = connect(api.address, never, { tls: trusting(first), token: null });
    t.after(() => client.close());
    const stop = new AbortController();
    const watching = client.stream(method.watchJobs, {}, stop.signal)[Symbol.asyncIterator]();
    assert.equal((await watching.next()).value?.type, Type.BOOKMARK);
    for (const listener of listeners) listener(replaced);
    assert.equal(await codeOf(t, api.address, trusting(first)), "UNAVAILABLE");
    assert.equal(await codeOf(t, api.address, trusting(second)), "OK");
    await client.call(method.createJob, { job: pytorchJob() });
    assert.equal((await watching.next()).value?.type, Type.ADDED);
    stop.abort();
    await assert.rejects(watching.next(), CallError);
  });

  test("a connection that stays silent is closed, before the handshake and after it", async (t) => {
    const own = authority(t);
    const sleeps: (() => void)[] = [];
    const clock = { ...systemClock(), sleep: () => new Promise<void>((done) => void sleeps.push(done)) };
    const { api } = await startFixture(t, { clock }, CONNECTION_BOUNDS, own.serverTls("server", "none"));
    const [host = "", port] = api.address.split(":");
    const silent = connectTcp({ host, port: Number(port) });
    const shaken = connectTls({ host, port: Number(port), ca: own.read(own.caFile), ALPNProtocols: ["h2"] });
    for (const socket of [silent, shaken]) socket.on("error", () => {}).resume();
    const closed = Promise.all([once(silent, "close"), once(shaken, "close")]);
    await once(shaken, "secureConnect");
    let over = false;
    void closed.then(() => {
      over = true;
    });
    while (!over) {
      for (const wake of sleeps.splice(0)) wake();
      await new Promise((resolve) => setImmediate(resolve));
    }
  });
});

const certificate = { clients: "none" } as const;
const exposures: Record<string, Omit<Exposure, "insecure"> & { lacks: readonly string[] }> = {
  "this machine alone": { listen: "127.0.0.1:1", tls: null, authenticates: false, lacks: [] },
  "this machine alone, by IPv6": { listen: "[::1]:1", tls: null, authenticates: false, lacks: [] },
  "every address": { listen: "0.0.0.0:1", tls: null, authenticates: false, lacks: ["encryption", "authentication"] },
  "a name": { listen: "host.example:1", tls: null, authenticates: false, lacks: ["encryption", "authentication"] },
  "with TLS": { listen: "0.0.0.0:1", tls: certificate, authenticates: false, lacks: ["authentication"] },
  "with credentials": { listen: "0.0.0.0:1", tls: null, authenticates: true, lacks: ["encryption"] },
  "with both": { listen: "0.0.0.0:1", tls: certificate, authenticates: true, lacks: [] },
};
for (const [name, { lacks, ...exposure }] of Object.entries(exposures)) {
  test(`what calls lack: ${name}`, () => assert.deepEqual(lacking(exposure), lacks));
}

test("a service without protection says so at once and every hour", async () => {
  const said: unknown[] = [];
  const stop = new AbortController();
  const clock = {
    sleep: async (ms: number) => {
      said.push(ms);
      if (said.length === 4) stop.abort();
    },
  };
  const telemetry = { servedInsecurely: (facts: object) => void said.push(facts) };
  const facts = { address: "0.0.0.0:1", lacks: ["encryption"] };
  await sayInsecure(facts, { clock, telemetry }, stop.signal);
  assert.deepEqual(said, [facts, 3_600_000, facts, 3_600_000]);
});
