import assert from "node:assert/strict";
import { createServer, type Http2Session, type ServerHttp2Stream } from "node:http2";
import { createServer as createTcpServer } from "node:net";
import { type TestContext, test } from "node:test";
import { CallError, STATUS } from "../../src/cli/rpc/call-error.ts";
import { type Channel, openChannel } from "../../src/cli/rpc/channel.ts";

const LIMITS = { sentBytesMax: 64, receivedBytesMax: 64 };
const never = new AbortController().signal;
const headers = { ":status": 200, "content-type": "application/grpc" };

function frame(text: string, flag = 0): Buffer {
  const message = Buffer.from(text);
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** Answers with chunks, and then with trailers. */
function answer(stream: ServerHttp2Stream, chunks: readonly Buffer[], trailers: Record<string, string | number>): void {
  stream.respond(headers, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  for (const chunk of chunks) stream.write(chunk);
  stream.end();
}

async function serve(t: TestContext, onStream: (stream: ServerHttp2Stream, calls: number) => void) {
  let calls = 0;
  const sessions = new Set<Http2Session>();
  const server = createServer();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => {});
  });
  server.on("stream", (stream) => {
    stream.on("error", () => {});
    calls += 1;
    onStream(stream, calls);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  assert.ok(typeof bound === "object" && bound !== null);
  const channel = openChannel(`127.0.0.1:${bound.port}`, LIMITS);
  t.after(() => {
    channel.close();
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { channel, sessions, calls: () => calls };
}

async function call(channel: Channel, of: { message?: string; timeoutMs?: number; signal?: AbortSignal } = {}) {
  const { message = "ask", signal = never, ...rest } = of;
  const messages: string[] = [];
  const request = { path: "/a.B/C", message: Buffer.from(message), signals: [signal], ...rest };
  for await (const bytes of channel.call(request)) messages.push(Buffer.from(bytes).toString());
  return messages;
}

const refusal = (code: number, details: RegExp | string) => (error: unknown) => {
  assert.ok(error instanceof CallError, String(error));
  assert.equal(error.code, code);
  if (typeof details === "string") assert.equal(error.details, details);
  else assert.match(error.details, details);
  return true;
};

test("messages are read however the connection cuts them", async (t) => {
  const whole = Buffer.concat([frame("one"), frame(""), frame("three")]);
  const bytes = [...whole].map((byte) => Buffer.from([byte]));
  const { channel } = await serve(t, (stream, calls) => {
    answer(stream, calls === 1 ? [whole] : bytes, { "grpc-status": 0 });
  });
  for (const _ of [1, 2]) assert.deepEqual(await call(channel), ["one", "", "three"]);
});

test("the request is one frame with the message, the path and the time that is left", async (t) => {
  const { channel } = await serve(t, (stream) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => answer(stream, [frame(Buffer.concat(chunks).toString("hex"))], { "grpc-status": 0 }));
  });
  assert.deepEqual(await call(channel, { message: "hi", timeoutMs: 60_000 }), [frame("hi").toString("hex")]);
});

const STATUS_BIN = Buffer.from("status").toString("base64").replace(/=+$/, "");
const failures: Record<string, { serve: (stream: ServerHttp2Stream) => void; code: number; details: RegExp | string }> =
  {
    "a status after messages": {
      serve: (stream) => answer(stream, [frame("one")], { "grpc-status": 5, "grpc-message": "no 100%25 of %C3%A4" }),
      code: STATUS.NOT_FOUND,
      details: "no 100% of ä",
    },
    "a status without messages": {
      serve: (stream) => stream.respond({ ...headers, "grpc-status": 8, "grpc-message": "100%" }, { endStream: true }),
      code: STATUS.RESOURCE_EXHAUSTED,
      details: "100%",
    },
    "no status": { serve: (stream) => answer(stream, [], {}), code: STATUS.UNAVAILABLE, details: /has no status/ },
    "a compressed message": {
      serve: (stream) => answer(stream, [frame("x", 1)], { "grpc-status": 0 }),
      code: STATUS.INTERNAL,
      details: /compressed/,
    },
    "a message that is cut off": {
      serve: (stream) => answer(stream, [frame("whole").subarray(0, 7)], { "grpc-status": 0 }),
      code: STATUS.INTERNAL,
      details: /ends within a message/,
    },
    "a message that is too large": {
      serve: (stream) => answer(stream, [frame("x".repeat(65))], { "grpc-status": 0 }),
      code: STATUS.RESOURCE_EXHAUSTED,
      details: "the answer has 65 bytes, and may have at most 64",
    },
    "the page of a proxy": {
      serve: (stream) => {
        stream.respond({ ":status": 404 });
        stream.end("not found");
      },
      code: STATUS.UNKNOWN,
      details: "the server answered with HTTP status 404, which is not gRPC",
    },
    "a proxy that reaches no service": {
      serve: (stream) => {
        stream.respond({ ":status": 503 });
        stream.end("later");
      },
      code: STATUS.UNAVAILABLE,
      details: /status 503/,
    },
    "a connection that breaks": {
      serve: (stream) => stream.session?.destroy(),
      code: STATUS.UNAVAILABLE,
      details: /the connection was lost/,
    },
  };
for (const [name, { serve: onStream, code, details }] of Object.entries(failures)) {
  test(`the answer ${name} is an error that says so`, async (t) => {
    const { channel } = await serve(t, onStream);
    await assert.rejects(call(channel), refusal(code, details));
  });
}

test("the details of a status are its bytes", async (t) => {
  const { channel } = await serve(t, (stream) => {
    answer(stream, [], { "grpc-status": 3, "grpc-status-details-bin": STATUS_BIN });
  });
  await assert.rejects(call(channel), (error) => {
    assert.ok(error instanceof CallError && error.encodedStatus !== null);
    return Buffer.from(error.encodedStatus).toString() === "status" && error.isSent;
  });
});

test("a request that is too large is not sent", async (t) => {
  const { channel, calls } = await serve(t, (stream) => answer(stream, [], { "grpc-status": 0 }));
  await assert.rejects(call(channel, { message: "x".repeat(65) }), refusal(STATUS.RESOURCE_EXHAUSTED, /65 bytes/));
  assert.equal(calls(), 0);
});

test("a call ends after its time, and when it is cancelled, and the service hears of it", async (t) => {
  const closed: number[] = [];
  let onClosed = () => {};
  const { channel } = await serve(t, (stream) => {
    stream.respond(headers);
    stream.write(frame("first"));
    stream.on("close", () => {
      closed.push(stream.rstCode);
      onClosed();
    });
  });
  const heard = (count: number) =>
    new Promise<void>((resolve) => {
      onClosed = () => closed.length === count && resolve();
      onClosed();
    });
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const late = channel.call({ path: "/a.B/C", message: Buffer.alloc(0), signals: [never], timeoutMs: 2_000 });
  assert.equal((await late.next()).done, false);
  t.mock.timers.tick(2_000);
  await assert.rejects(late.next(), refusal(STATUS.DEADLINE_EXCEEDED, "no answer within 2 s"));
  t.mock.timers.reset();
  await heard(1);
  const stop = new AbortController();
  const streamed = channel.call({ path: "/a.B/C", message: Buffer.alloc(0), signals: [stop.signal] });
  assert.equal((await streamed.next()).done, false);
  stop.abort();
  await assert.rejects(streamed.next(), refusal(STATUS.CANCELLED, /cancelled/));
  await heard(2);
  for await (const message of channel.call({ path: "/a.B/C", message: Buffer.alloc(0), signals: [never] })) {
    assert.equal(Buffer.from(message).toString(), "first");
    break;
  }
  await heard(3);
  await assert.rejects(call(channel, { signal: AbortSignal.abort() }), refusal(STATUS.CANCELLED, /cancelled/));
  assert.deepEqual(closed, [8, 8, 8]);
});

test("a call that a stopping service refuses unread is sent again on a new connection", async (t) => {
  const REFUSED_STREAM = 7;
  const { channel, sessions, calls } = await serve(t, (stream, calls) => {
    if (calls === 1) stream.close(REFUSED_STREAM);
    else answer(stream, [frame("second")], { "grpc-status": 0 });
  });
  assert.deepEqual(await call(channel), ["second"]);
  assert.deepEqual([calls(), sessions.size], [2, 2]);
});

test("a call after a lost connection makes a new one", async (t) => {
  const { channel, sessions } = await serve(t, (stream) => answer(stream, [frame("yes")], { "grpc-status": 0 }));
  assert.deepEqual(await call(channel), ["yes"]);
  const [first] = sessions;
  const ended = new Promise((resolve) => first?.on("close", resolve));
  first?.destroy();
  await ended;
  let answered: readonly string[] = [];
  // The client may hear of the end only with its next call.
  for (let tries = 0; answered.length === 0 && tries < 3; tries += 1) answered = await call(channel).catch(() => []);
  assert.deepEqual(answered, ["yes"]);
});

test("a service that cannot be reached is unavailable, and the request was not sent", async () => {
  const server = createTcpServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  assert.ok(typeof bound === "object" && bound !== null);
  await new Promise((resolve) => server.close(resolve));
  for (const host of ["127.0.0.1", "localhost"]) {
    const channel = openChannel(`${host}:${bound.port}`, LIMITS);
    await assert.rejects(channel.ready(5_000), refusal(STATUS.UNAVAILABLE, /^cannot connect to .*ECONNREFUSED/));
    await assert.rejects(call(channel), (error) => error instanceof CallError && !error.isSent);
    channel.close();
  }
});

test("a server that never speaks HTTP/2 is not waited for beyond the time", async (t) => {
  const server = createTcpServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const bound = server.address();
  assert.ok(typeof bound === "object" && bound !== null);
  const channel = openChannel(`127.0.0.1:${bound.port}`, LIMITS);
  t.after(() => {
    channel.close();
    server.close();
  });
  await assert.rejects(call(channel, { timeoutMs: 20 }), refusal(STATUS.DEADLINE_EXCEEDED, /no answer/));
});
