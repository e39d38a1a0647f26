/** Calls that break the rules of gRPC over HTTP/2: headers, frames of messages, and callers that leave half-way. */
import { deflateSync, gzipSync } from "node:zlib";
import { type Answer, type Caller, type CallOptions, framed } from "./caller.ts";
import type { Chance } from "./chance.ts";
import type { PlannedCall } from "./plan.ts";
import { RAW, sendRaw } from "./raw-connection.ts";
import { METHODS, pathOf } from "./surface.ts";
import { codeOf, isMeant } from "./verdict.ts";

type Sent = { readonly path: string; readonly body: Uint8Array; readonly options: CallOptions };
/** `body` is a proper request. */
type Misuse = (chance: Chance, of: { readonly path: string; readonly body: Buffer }) => Sent;

const TIMEOUTS = ["", "abc", "-1S", "1", "1x", "0n", "1n", "1u", "5m", "99999999H", "123456789S", "1S ", "1.5S"];
const ENCODINGS = ["gzip", "deflate", "identity", "snappy", "br", "", "gzip,deflate", "x".repeat(200)];
const CONTENT_TYPES = [
  "application/json",
  "application/grpc-web",
  "text/plain",
  "application/grpcx",
  "",
  "application",
];
const MIB = 2 ** 20;
/** Inflates to more than the service takes. */
const BOMB = gzipSync(Buffer.alloc(40 * MIB));
/** Callers that leave something open wait for no answer. */
const LEAVE_MS = 40;

const compressed = (bytes: Uint8Array) => {
  const frame = framed(bytes);
  frame[0] = 1;
  return frame;
};
const lying = (body: Buffer, length: number) => {
  const frame = Buffer.from(body);
  frame.writeUInt32BE(length >>> 0, 1);
  return frame;
};
const headersOf = (headers: Readonly<Record<string, string>>): CallOptions => ({ headers });

const MISUSES: Readonly<Record<string, Misuse>> = {
  "a timeout that is none": (chance, of) => ({ ...of, options: headersOf({ "grpc-timeout": chance.pick(TIMEOUTS) }) }),
  "a compressed message without an encoding": (_, { path, body }) => ({
    path,
    body: compressed(body.subarray(5)),
    options: {},
  }),
  "an encoding that is not that of the message": (chance, { path, body }) => ({
    path,
    body: chance.is(0.5) ? compressed(chance.bytes(30)) : compressed(body.subarray(5)),
    options: headersOf({ "grpc-encoding": chance.pick(ENCODINGS) }),
  }),
  "a compressed message": (chance, { path, body }) => {
    const encoding = chance.pick(["gzip", "deflate"]);
    const message = (encoding === "gzip" ? gzipSync : deflateSync)(body.subarray(5));
    const cut = chance.is(0.3) ? message.subarray(0, message.length >> 1) : message;
    return { path, body: compressed(cut), options: headersOf({ "grpc-encoding": encoding }) };
  },
  "a small message that inflates to a large one": (_, { path }) => ({
    path,
    body: compressed(BOMB),
    options: headersOf({ "grpc-encoding": "gzip" }),
  }),
  "a flag that gRPC does not have": (chance, { path, body }) => {
    const frame = Buffer.from(body);
    frame[0] = chance.int(2, 255);
    return { path, body: frame, options: {} };
  },
  "several messages": (chance, { path, body }) => ({
    path,
    body: Buffer.concat(Array.from({ length: chance.pick([2, 3, 500]) }, () => body)),
    options: { leaveAfterMs: 5000 },
  }),
  "no message": (_, { path }) => ({ path, body: Buffer.alloc(0), options: {} }),
  "a frame that is cut": (chance, { path, body }) => ({
    path,
    body: body.subarray(0, chance.int(1, body.length - 1)),
    options: {},
  }),
  "a length that lies": (chance, { path, body }) => ({
    path,
    body: lying(
      body,
      chance.pick([body.length - 4, body.length * 2, 16 * MIB, 16 * MIB + 1, 2 ** 31, 2 ** 32 - 1, 0, 1]),
    ),
    options: {},
  }),
  "bytes after the message": (chance, { path, body }) => ({
    path,
    body: Buffer.concat([body, chance.bytes(chance.int(1, 9))]),
    options: {},
  }),
  "large headers": (chance, of) => ({
    ...of,
    options: headersOf({ "x-large": "x".repeat(chance.pick([1000, 8000, 16_000, 60_000])) }),
  }),
  "many headers": (chance, of) => ({
    ...of,
    options: headersOf(
      Object.fromEntries(Array.from({ length: chance.pick([50, 500]) }, (__, at) => [`x-${at}`, String(at)])),
    ),
  }),
  "a binary header that is not base64": (_, of) => ({ ...of, options: headersOf({ "x-odd-bin": "%%%" }) }),
  "a trace that is none": (chance, of) => ({
    ...of,
    options: headersOf({ traceparent: chance.pick(["", "00-0-0-0", "x".repeat(3000), `00-${"f".repeat(32)}-x-01`]) }),
  }),
  "another content type": (chance, of) => ({
    ...of,
    options: headersOf({ "content-type": chance.pick(CONTENT_TYPES) }),
  }),
  "another verb": (chance, of) => ({
    ...of,
    options: headersOf({ ":method": chance.pick(["GET", "PUT", "OPTIONS"]) }),
  }),
  "a path that is not served": (chance, { path, body }) => ({
    path: chance.pick(["/", "", "//", `${path}/`, `${path}x`, path.toLowerCase(), "/a/b", `/${"a".repeat(9000)}`, "*"]),
    body,
    options: {},
  }),
  "a caller that leaves at once": (_, of) => ({ ...of, options: { leaveAfterMs: 0 } }),
  "a caller that leaves in the midst of a message": (chance, { path, body }) => ({
    path,
    body: body.subarray(0, chance.int(0, body.length)),
    options: { open: true, leaveAfterMs: chance.int(0, LEAVE_MS) },
  }),
  "a caller that never ends its request": (chance, of) => ({
    ...of,
    options: { open: true, leaveAfterMs: chance.int(LEAVE_MS, 5 * LEAVE_MS) },
  }),
};

/** Codes that calls of these kinds may not get either. A stream or a connection may be refused without a code. */
const NEVER = ["UNKNOWN", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"];

/** Sends one misuse. Returns its name and what is wrong with the answer. */
export async function misuse(
  caller: Caller,
  chance: Chance,
  call: PlannedCall,
): Promise<{ readonly name: string; readonly code: string; readonly problems: readonly string[] }> {
  if (chance.is(0.35)) {
    const name = chance.pick(Object.keys(RAW));
    await sendRaw(caller.address, chance, { name, path: pathOf(chance.pick(METHODS)) });
    return { name, code: "raw", problems: [] };
  }
  const name = chance.pick(Object.keys(MISUSES));
  const sent = MISUSES[name]?.(chance, { path: pathOf(call.method), body: framed(call.request) });
  if (sent === undefined) throw new Error(`there is no misuse ${name}`);
  // Streams that are served after all have no end.
  const isStream = call.method.methodKind !== "unary";
  const answer = await caller.call(sent.path, sent.body, {
    ...(isStream ? { leaveAfterMs: LEAVE_MS } : {}),
    ...sent.options,
  });
  return { name, code: codeOf(answer), problems: problemsOf(answer).map((problem) => `${name}: ${problem}`) };
}

function problemsOf(answer: Answer): readonly string[] {
  const code = codeOf(answer);
  if (answer.failure?.startsWith("no answer")) return [answer.failure];
  if (NEVER.includes(code) && !(code === "UNAVAILABLE" && isMeant(answer))) return [`${code}: ${answer.message}`];
  return [];
}
