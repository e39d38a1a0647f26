/** Connections that speak HTTP/2 badly, or not at all, frame by frame. */
import { connect } from "node:net";
import {
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  frame,
  GOAWAY,
  grpcHeaders,
  HEADERS,
  hpack,
  PING,
  PREFACE,
  PRIORITY,
  PUSH_PROMISE,
  RST_STREAM,
  SETTINGS,
  WINDOW_UPDATE,
} from "../../support/http2-frames.ts";
import type { Chance } from "./chance.ts";

const uint32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
};
const times = (count: number, make: (at: number) => Buffer) =>
  Buffer.concat(Array.from({ length: count }, (_, at) => make(at)));
const opened = (...frames: readonly Buffer[]) => Buffer.concat([PREFACE, frame(SETTINGS, 0, 0), ...frames]);
const headers = (path: string, stream: number, flags = END_HEADERS) => frame(HEADERS, flags, stream, grpcHeaders(path));

type Raw = (chance: Chance, path: string) => Buffer;

export const RAW: Readonly<Record<string, Raw>> = {
  "a silent connection": () => Buffer.alloc(0),
  "bytes that are not HTTP": (chance) => chance.bytes(chance.pick([1, 24, 300])),
  "HTTP/1.1": () => Buffer.from("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"),
  TLS: () => Buffer.from("16030100050100000100", "hex"),
  "half a preface": (chance) => PREFACE.subarray(0, chance.int(1, PREFACE.length - 1)),
  "a preface and nothing else": () => PREFACE,
  "half a frame": (chance, path) => opened(headers(path, 1).subarray(0, chance.int(1, 20))),
  "pings without end": (chance) => opened(times(chance.pick([10, 2000]), () => frame(PING, 0, 0, Buffer.alloc(8)))),
  "settings without end": (chance) => opened(times(chance.pick([10, 500]), () => frame(SETTINGS, 0, 0))),
  "odd settings": (chance) =>
    opened(frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, chance.int(0, 9)]), uint32(2 ** 32 - 1)]))),
  "a window of no size": () => opened(frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, 4]), uint32(0)]))),
  "a window that grows by nothing": (_, path) => opened(headers(path, 1), frame(WINDOW_UPDATE, 0, 1, uint32(0))),
  "a window that overflows": (chance) =>
    opened(times(3, () => frame(WINDOW_UPDATE, 0, chance.pick([0, 1]), uint32(2 ** 31 - 1)))),
  "window updates without end": () => opened(times(3000, () => frame(WINDOW_UPDATE, 0, 0, uint32(1)))),
  "empty data without end": (chance, path) =>
    opened(
      headers(path, 1),
      times(chance.pick([10, 2000, 20_000]), () => frame(DATA, 0, 1)),
    ),
  "malformed requests without end": (chance, path) =>
    opened(
      times(chance.pick([10, 2000, 20_000]), (at) =>
        frame(HEADERS, END_HEADERS | END_STREAM, 2 * at + 1, grpcHeaders(path, { connection: "keep-alive" })),
      ),
    ),
  "streams that are reset at once": (chance, path) =>
    opened(
      times(chance.pick([5, 300]), (at) =>
        Buffer.concat([headers(path, 2 * at + 1), frame(RST_STREAM, 0, 2 * at + 1, uint32(8))]),
      ),
    ),
  "more streams than allowed": (_, path) => opened(times(1200, (at) => headers(path, 2 * at + 1))),
  "a stream of an even number": (_, path) => opened(headers(path, 2)),
  "stream 0": (_, path) => opened(frame(DATA, 0, 0, Buffer.alloc(5)), headers(path, 0)),
  "data for a stream that is not open": () => opened(frame(DATA, END_STREAM, 7, Buffer.alloc(5))),
  "a reset of a stream that is not open": () => opened(frame(RST_STREAM, 0, 9, uint32(8))),
  "headers that do not decode": (chance) => opened(frame(HEADERS, END_HEADERS, 1, chance.bytes(40))),
  "headers without end": (chance, path) =>
    opened(
      headers(path, 1, 0),
      times(chance.pick([3, 200]), () => frame(CONTINUATION, 0, 1, hpack({ "x-a": "y".repeat(100) }))),
    ),
  "headers of a request twice": (_, path) => opened(headers(path, 1), headers(path, 1)),
  "no path": () => opened(frame(HEADERS, END_HEADERS | END_STREAM, 1, hpack({ ":method": "POST", ":scheme": "http" }))),
  "a frame that is too large": () => opened(Buffer.from("ffffff000000000001", "hex"), Buffer.alloc(1000)),
  "a promise of a client": () => opened(frame(PUSH_PROMISE, END_HEADERS, 1, uint32(2))),
  "a stream that depends on itself": () => opened(frame(PRIORITY, 0, 1, Buffer.concat([uint32(1), Buffer.from([1])]))),
  "a frame of no known type": (chance) => opened(frame(chance.int(20, 255), 255, chance.int(0, 9), chance.bytes(9))),
  "a goodbye and calls after it": (_, path) =>
    opened(frame(GOAWAY, 0, 0, Buffer.concat([uint32(0), uint32(0)])), headers(path, 1, END_HEADERS | END_STREAM)),
};

/** How long a connection stays open. */
const OPEN_MS_MAX = 120;

/** Sends one of them, and ends the connection in one of several ways. */
export function sendRaw(
  address: string,
  chance: Chance,
  of: { readonly name: string; readonly path: string },
): Promise<void> {
  const [host = "", port = ""] = address.split(/:(?=\d+$)/);
  const bytes = RAW[of.name]?.(chance, of.path) ?? Buffer.alloc(0);
  const end = chance.pick(["destroy", "reset", "half", "wait"]);
  const openMs = chance.int(1, OPEN_MS_MAX);
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port), allowHalfOpen: true });
    socket.on("error", () => {});
    socket.on("data", () => {});
    socket.on("close", () => resolve());
    socket.write(bytes);
    if (end === "half") socket.end();
    setTimeout(() => (end === "reset" ? socket.resetAndDestroy() : socket.destroy()), openMs);
  });
}
