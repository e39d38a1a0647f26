import assert from "node:assert/strict";
import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  constants,
  type SecureClientSessionOptions,
} from "node:http2";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { status } from "@grpc/grpc-js";
import { boundOptions, CONNECTION_BOUNDS } from "../../src/api/connection-bounds.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { NamespaceService } from "../../src/gen/gangway/v1/namespace_service_pb.ts";
import { fastClock } from "../cluster/harness.ts";
import { WAIT_MS_MAX, waitUntil, within } from "../support/bounded.ts";
import { Certificates, hasOpenssl } from "../support/certificates.ts";
import {
  DATA,
  END_HEADERS,
  END_STREAM,
  followFrames,
  frame,
  GOAWAY,
  grpcHeaders,
  HEADERS,
  PREFACE,
  RST_STREAM,
  SETTINGS,
} from "../support/http2-frames.ts";
import { readRefusal, startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";
import { MemoryStore } from "./memory-store.ts";

/** An HTTP/2 connection without any help of grpc-js. `state.isOpen` is false once the server has closed it. */
function open(t: TestContext, address: string): { session: ClientHttp2Session; state: { isOpen: boolean } } {
  const session = connectHttp2(`http://${address}`);
  const state = { isOpen: true };
  session.on("error", () => {});
  session.on("close", () => {
    state.isOpen = false;
  });
  t.after(() => session.destroy());
  return { session, state };
}

function openSocket(t: TestContext, address: string): Socket {
  const socket = connect(Number(address.split(":").at(-1)), "127.0.0.1");
  socket.on("error", () => {});
  t.after(() => socket.destroy());
  return socket;
}

test("a client that cancels thousands of streams right after their end is not cut off", async (t) => {
  const { api } = await startFixture(t);
  const { session, state } = open(t, api.address);
  const headers = { ":method": "POST", ":path": "/gangway.v1.JobService/None", "content-type": "application/grpc" };
  const cancelAfterEnd = async () => {
    // The client has not ended its side, so that its cancellation reaches the server.
    const stream = session.request({ ...headers, te: "trailers" }, { endStream: false });
    const closed = once(stream, "close");
    stream.on("error", () => {});
    stream.on("end", () => stream.close(constants.NGHTTP2_CANCEL)).resume();
    await closed;
  };
  for (let round = 0; round < 60; round += 1) {
    await Promise.all(Array.from({ length: 50 }, cancelAfterEnd));
    assert.ok(state.isOpen, `the server closed the connection after ${(round + 1) * 50} streams`);
  }
});

/** Frames of one call that HTTP/2 allows or that end one stream alone, yet that Node counts for the connection. */
const COUNTED: Readonly<Record<string, (stream: number, path: string) => readonly Buffer[]>> = {
  "empty DATA frames": (stream, path) => [
    frame(HEADERS, END_HEADERS, stream, grpcHeaders(path)),
    frame(DATA, 0, stream),
    frame(DATA, END_STREAM, stream),
  ],
  "malformed requests": (stream, path) => [
    frame(HEADERS, END_HEADERS | END_STREAM, stream, grpcHeaders(path, { connection: "keep-alive" })),
  ],
};
for (const [name, framesOf] of Object.entries(COUNTED)) {
  const frames = (from: number, to: number) =>
    Buffer.concat(
      Array.from({ length: to - from }, (_, at) =>
        Buffer.concat(framesOf(2 * (from + at) + 1, "/gangway.v1.JobService/None")),
      ),
    );

  test(`${name} do not end a connection, however many a long life of it has`, async (t) => {
    const { api } = await startFixture(t);
    const socket = openSocket(t, api.address);
    let ended = 0;
    followFrames(socket, (type, flags) => {
      if (type === RST_STREAM || (type === HEADERS && (flags & END_STREAM) !== 0)) ended += 1;
    });
    socket.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0)]));
    for (let sent = 0; sent < 3000; sent += 100) {
      socket.write(frames(sent, sent + 100));
      await waitUntil(`${sent + 100} calls have ended`, () => ended === sent + 100 || socket.closed, { pollMs: 1 });
      assert.ok(!socket.closed, `the server closed the connection after ${ended} calls`);
    }
  });

  test(`a flood of ${name} ends its connection`, async (t) => {
    const { api } = await startFixture(t);
    const socket = openSocket(t, api.address);
    let code = -1;
    followFrames(socket, (type, _, payload) => {
      if (type === GOAWAY) code = payload.readUInt32BE(4);
    });
    socket.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0), frames(0, 20_000)]));
    await waitUntil("the connection is closed", () => socket.closed);
    assert.equal(code, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  });
}

test("a connection that does not begin to speak HTTP/2 is closed, and one that does stays", async (t) => {
  const { api } = await startFixture(t, { clock: fastClock(50) });
  const { state } = open(t, api.address);
  const [silent, half] = [openSocket(t, api.address), openSocket(t, api.address)];
  half.write("PRI * HTTP/2.0\r\n");
  for (const socket of [silent, half]) socket.resume();
  await Promise.all([once(silent, "close"), once(half, "close")]);
  assert.ok(state.isOpen);
});

test("a server has a bound on its connections, and a place is free once one closes", async (t) => {
  const { api } = await startFixture(t, {}, { ...CONNECTION_BOUNDS, connectionsMax: 2 });
  const first = open(t, api.address);
  const second = open(t, api.address);
  await Promise.all([once(first.session, "remoteSettings"), once(second.session, "remoteSettings")]);
  const third = open(t, api.address);
  await waitUntil("the third connection is closed", () => !third.state.isOpen);
  assert.ok(first.state.isOpen && second.state.isOpen);
  first.session.close();
  await waitUntil("another connection is accepted", async () => {
    const next = open(t, api.address);
    return Promise.race([
      once(next.session, "remoteSettings").then(() => true),
      once(next.session, "close").then(() => false),
    ]).catch(() => false);
  });
});

test("a connection has a bound on its calls, and one that stays at it is not cut off", async (t) => {
  const { api, stream } = await startFixture(t, {}, { ...CONNECTION_BOUNDS, callsMax: 3 });
  const [settings] = await once(open(t, api.address).session, "remoteSettings");
  assert.equal(settings.maxConcurrentStreams, 3);
  const watch = () => {
    const call = stream(JobService.method.watchJobs, {});
    const outcome = new Promise<string>((resolve) => {
      call.once("data", () => resolve("watches"));
      call.on("error", (error) => resolve(readRefusal(error as Parameters<typeof readRefusal>[0]).code));
    });
    return { call, outcome };
  };
  const [keeper, ...others] = [watch(), watch(), watch()];
  assert.deepEqual(await Promise.all([keeper, ...others].map((one) => one?.outcome)), Array(3).fill("watches"));
  let ended = 0;
  keeper?.call.on("error", () => (ended += 1));
  for (let round = 0; round < 250; round += 1) {
    // The client keeps this call back until another ends, and sends it then, perhaps before the server is ready.
    const next = watch();
    others.shift()?.call.cancel();
    if ((await next.outcome) === "watches") others.push(next);
    else assert.equal(await next.outcome, "RESOURCE_EXHAUSTED");
    await waitUntil(
      "another call is accepted",
      async () => {
        if (others.length === 2) return true;
        const again = watch();
        if ((await again.outcome) === "watches") others.push(again);
        return others.length === 2;
      },
      { pollMs: 1 },
    );
  }
  assert.equal(ended, 0, "the other watch goes on");
});

test("a connection without calls is closed, and one with a watch stays", async (t) => {
  const { api, stream, call } = await startFixture(t, {}, { ...CONNECTION_BOUNDS, idleMs: 200 });
  const watching = stream(JobService.method.watchJobs, {});
  let failures = 0;
  watching.on("error", () => {
    failures += 1;
  });
  await once(watching, "data");
  const idle = open(t, api.address);
  await waitUntil("the idle connection is closed", () => !idle.state.isOpen);
  assert.equal(failures, 0);
  assert.equal((await call(JobService.method.listKinds, {})).error, null);
  watching.cancel();
});

const noRoom: Record<string, { of: object; reason: string; description: string }> = {
  "one too many in its queue": {
    of: { scope: { kind: "queue", name: "nlp" }, limit: "maxWaitingJobs", used: 4, asked: 1 },
    reason: "TOO_MANY_WAITING_JOBS",
    description: "has 4 waiting jobs, and its max_waiting_jobs is 3",
  },
  "one too many in its project": {
    of: { scope: { kind: "project", name: "nlp" }, limit: "maxWaitingJobs", used: 3, asked: 1 },
    reason: "TOO_MANY_WAITING_JOBS",
    description: "has 3 waiting jobs, and its max_waiting_jobs is 3",
  },
  "beyond the pods of its namespace": {
    of: { scope: { kind: "namespace", name: "nlp" }, limit: "maxPods", used: 2, asked: 8 },
    reason: "TOO_MANY_PODS",
    description: "has jobs of 2 pods, and its max_pods is 3: there is no room for 8",
  },
  "beyond the bytes of its namespace": {
    of: { scope: { kind: "namespace", name: "nlp" }, limit: "maxTemplateBytes", used: 2, asked: 900 },
    reason: "TOO_MANY_TEMPLATE_BYTES",
    description: "has specs of 2 bytes, and its max_template_bytes is 3: there is no room for 900",
  },
};
for (const [what, { of, reason, description }] of Object.entries(noRoom)) {
  test(`a job that is ${what} is RESOURCE_EXHAUSTED with QuotaFailure and RetryInfo`, async (t) => {
    const intake = { submit: async () => ({ kind: "noRoom", max: 3, ...of }) };
    const { call } = await startFixture(t, { intake: intake as never });
    const { error } = await call(JobService.method.createJob, { job: pytorchJob() });
    assert.deepEqual([error?.code, error?.reason, error?.retries], ["RESOURCE_EXHAUSTED", reason, true]);
    const { kind, name } = (of as { scope: { kind: string; name: string } }).scope;
    assert.deepEqual(error?.quota, { subject: `${kind} ${name}`, description });
    assert.equal(error?.message, `${kind} ${name} ${description}`);
  });
}

test("a namespace that is one too many is RESOURCE_EXHAUSTED with RetryInfo, for a job and for an admin", async (t) => {
  const store = new MemoryStore();
  const full = { kind: "full", max: 3 } as const;
  const intake = { submit: async () => ({ kind: "tooManyNamespaces", max: 3 }) };
  const admin = { ...store.admin, createNamespace: async () => full };
  const { call } = await startFixture(t, { admin, intake: intake as never });
  const job = await call(JobService.method.createJob, {
    job: { ...pytorchJob(), metadata: { name: "a", namespace: "n" } },
  });
  const namespace = await call(NamespaceService.method.createNamespace, { namespace: { name: "n" } });
  for (const { error } of [job, namespace]) {
    assert.deepEqual([error?.code, error?.reason, error?.retries], ["RESOURCE_EXHAUSTED", "TOO_MANY_NAMESPACES", true]);
    assert.match(error?.message ?? "", /namespace n cannot be created: there are 3 namespaces, which is the maximum/);
  }
});

/** A bound that ends within a test, on any machine. */
const SOON_MS = 300;
const noOpenssl = hasOpenssl() ? false : "openssl is not on the PATH";

test("a connection whose client shows certificates is asked to close when it is old", {
  skip: noOpenssl,
}, async (t) => {
  const certificates = new Certificates();
  t.after(() => certificates.remove());
  const bounds = { ...CONNECTION_BOUNDS, ageMs: SOON_MS };
  const tls = certificates.serverTls("server", "required");
  const { api } = await startFixture(t, {}, bounds, tls);
  const { certFile, keyFile } = certificates.sign("me", "DNS:me.example");
  const [ca, cert, key] = [certificates.caFile, certFile, keyFile].map((file) => certificates.read(file));
  const session = connectHttp2(`https://${api.address}`, { ca, cert, key } as SecureClientSessionOptions);
  t.after(() => session.destroy());
  const asked = once(session, "goaway");
  const headers = { ":method": "POST", ":path": "/gangway.v1.JobService/None", "content-type": "application/grpc" };
  const call = session.request({ ...headers, te: "trailers" });
  const [answer] = await once(call, "response");
  assert.equal(answer["grpc-status"], String(status.UNIMPLEMENTED), "a young connection serves calls");
  call.resume();
  const [code] = await within("the server asks to close", WAIT_MS_MAX, asked);
  assert.equal(code, constants.NGHTTP2_NO_ERROR, "so that calls which run go on");
  await waitUntil("the connection is closed", () => session.closed);
});

test("connections of clients that show no certificates may grow old", () => {
  const age = "grpc.max_connection_age_ms";
  assert.ok(age in boundOptions(CONNECTION_BOUNDS, true));
  assert.ok(!(age in boundOptions(CONNECTION_BOUNDS, false)));
});
