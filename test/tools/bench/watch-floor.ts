/**
 * The floor of watches in a process of its own: a bare grpc-js server whose streams get prepared bytes, those of their
 * namespace. It takes the same orders as the server of watches.
 */
import { Server, ServerCredentials, type ServerWritableStream } from "@grpc/grpc-js";
import { WatchJobsResponse_Type as Type } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { paced } from "./paced.ts";
import { changeText, momentMs, type ServerAnswer, type ServerOrder } from "./watch-orders.ts";
import { usage } from "./watch-usage.ts";

type Stream = ServerWritableStream<Buffer, Buffer>;

const PATH = "/bench.Floor/Watch";
const pass = (bytes: Buffer) => bytes;
const streams = new Map<string, Set<Stream>>();
let made = 0;

/** The request is the name of a namespace. */
function follow(stream: Stream): void {
  const namespace = stream.request.toString();
  const others = streams.get(namespace) ?? new Set();
  streams.set(namespace, others.add(stream));
  stream.on("cancelled", () => others.delete(stream));
  stream.write(Buffer.from([8, Type.BOOKMARK]));
}

async function change(order: Extract<ServerOrder, { kind: "change" }>): Promise<ServerAnswer> {
  const first = made;
  const beganMs: number[] = [];
  await paced(order, () => {
    const namespace = order.namespaces[made % order.namespaces.length] ?? "";
    beganMs.push(momentMs());
    const message = Buffer.alloc(Math.max(order.bytes, 64), 1);
    message.set([8, Type.MODIFIED]);
    message.write(changeText(made), 2);
    for (const stream of streams.get(namespace) ?? []) stream.write(message);
    made += 1;
    return true;
  });
  return { kind: "changed", first, beganMs, committedMs: beganMs };
}

async function obey(order: ServerOrder): Promise<ServerAnswer> {
  if (order.kind === "change") return await change(order);
  if (order.kind !== "usage") return { kind: "done" };
  return usage(0);
}

const server = new Server();
server.addService(
  {
    watch: {
      path: PATH,
      requestStream: false,
      responseStream: true,
      requestSerialize: pass,
      requestDeserialize: pass,
      responseSerialize: pass,
      responseDeserialize: pass,
    },
  },
  { watch: follow },
);
process.on("message", (order: ServerOrder) => {
  if (order.kind === "end") process.exit();
  void obey(order).then((answer) => process.send?.(answer));
});
process.on("disconnect", () => process.exit());
server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  process.send?.({ kind: "ready", address: `127.0.0.1:${port}`, path: PATH } satisfies ServerAnswer);
});
