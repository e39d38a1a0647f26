import { connect, type IncomingHttpHeaders } from "node:http2";
import { Metadata, type ServiceError } from "@grpc/grpc-js";
import { type Refusal, readRefusal } from "./fixture.ts";

/** A call of CreateJob as bytes: its headers, and its message, which need be none. Resolves with the status. */
export function sendRaw(
  address: string,
  headers: Readonly<Record<string, string>>,
  flag = 0,
  message: Buffer = Buffer.from("no gzip"),
  path = "/gangway.v1.JobService/CreateJob",
): Promise<Refusal> {
  return sendFrames(address, { ":path": path, ...headers }, frameOf(message, flag));
}

/** A message as gRPC sends it. `flag` 1: it is compressed. */
export function frameOf(message: Buffer, flag: number): Buffer {
  const frame = Buffer.concat([Buffer.from([flag, 0, 0, 0, 0]), message]);
  frame.writeUInt32BE(message.length, 1);
  return frame;
}

/** Sends the frames of one call. */
export function sendFrames(
  address: string,
  headers: Readonly<Record<string, string>>,
  frames: Buffer,
): Promise<Refusal> {
  const session = connect(`http://${address}`);
  const call = session.request({
    ":method": "POST",
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  return new Promise<Refusal>((resolve, reject) => {
    const read = (received: IncomingHttpHeaders) => {
      if (received["grpc-status"] === undefined) return;
      const [code, details] = [Number(received["grpc-status"]), decodeURI(String(received["grpc-message"]))];
      resolve(readRefusal({ code, details, metadata: Metadata.fromHttp2Headers(received) } as ServiceError));
      session.close();
    };
    call.on("response", read).on("trailers", read).on("error", reject).resume();
    session.on("error", reject);
    call.end(frames);
  });
}
