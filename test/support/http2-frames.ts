/** HTTP/2 frame by frame, for what no HTTP/2 client sends. */
import type { Socket } from "node:net";

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
export const DATA = 0;
export const HEADERS = 1;
export const PRIORITY = 2;
export const RST_STREAM = 3;
export const SETTINGS = 4;
export const PUSH_PROMISE = 5;
export const PING = 6;
export const GOAWAY = 7;
export const WINDOW_UPDATE = 8;
export const CONTINUATION = 9;
export const END_STREAM = 1;
export const END_HEADERS = 4;

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([head, payload]);
}

/**
 * Headers as literals, which every HPACK decoder takes. Texts end after 126 characters. The results of several calls
 * make one block, which can so have a header twice.
 */
export function hpack(headers: Readonly<Record<string, string>>): Buffer {
  const literal = (text: string) =>
    Buffer.concat([Buffer.from([Math.min(126, text.length)]), Buffer.from(text).subarray(0, 126)]);
  return Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), literal(name), literal(value)]),
  );
}

/** The headers of a gRPC call of this path, and others. */
export function grpcHeaders(path: string, others: Readonly<Record<string, string>> = {}): Buffer {
  const grpc = { "content-type": "application/grpc", te: "trailers" };
  return hpack({ ":method": "POST", ":scheme": "http", ":path": path, ":authority": "x", ...grpc, ...others });
}

/** Calls `onFrame` with each frame that arrives. */
export function followFrames(socket: Socket, onFrame: (type: number, flags: number, payload: Buffer) => void): void {
  let rest: Buffer = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= 9 && rest.length >= 9 + rest.readUIntBE(0, 3)) {
      const end = 9 + rest.readUIntBE(0, 3);
      onFrame(rest.readUInt8(3), rest.readUInt8(4), rest.subarray(9, end));
      rest = rest.subarray(end);
    }
  });
}
