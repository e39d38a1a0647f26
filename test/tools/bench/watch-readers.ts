/**
 * Readers of watches in a process of their own, each on a connection of its own. They look only for the mark of a
 * change, so that they cost little beside the server that is measured.
 */
import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { frameOf, newFrameReader } from "../../../src/cli/rpc/grpc-frames.ts";
import { WatchJobsResponse_Type as Type } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { waitUntil } from "../../support/bounded.ts";
import {
  CHANGE_DIGITS,
  CHANGE_MARK,
  type ChangeTimes,
  type Histogram,
  momentMs,
  type ReaderAnswer,
  type ReaderOrder,
} from "./watch-orders.ts";

const LIMITS = { sentBytesMax: 1 << 20, receivedBytesMax: 1 << 24 };
/** The key of field 1, the type of a response. */
const TYPE_KEY = 8;

const open: ClientHttp2Session[] = [];
let bookmarked = 0;
let bytes = 0;
/** The number of each change that came, and when. */
let came: { change: number; atMs: number }[] = [];
let closing = false;

function take(message: Uint8Array): void {
  const body = Buffer.from(message.buffer, message.byteOffset, message.length);
  if (body[0] !== TYPE_KEY || body[1] !== Type.MODIFIED) return;
  const mark = body.indexOf(CHANGE_MARK);
  if (mark < 0) return;
  const from = mark + CHANGE_MARK.length;
  came.push({ change: Number(body.toString("latin1", from, from + CHANGE_DIGITS)), atMs: momentMs() });
  bytes += body.length;
}

function openStream({ address, path, stalled }: Extract<ReaderOrder, { kind: "open" }>, request: string): void {
  const session = connect(`http://${address}`);
  session.on("error", () => {});
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
  });
  const reader = newFrameReader(LIMITS);
  let isNew = true;
  stream.on("error", (error) => closing || stalled || fail(`a stream failed: ${error.message}`));
  stream.on("end", () => closing || stalled || fail("the server ended a stream"));
  if (stalled) {
    stream.once("response", () => {
      bookmarked += 1;
    });
  } else {
    stream.on("data", (chunk: Buffer) => {
      for (const message of reader.take(chunk)) {
        if (isNew && message[0] === TYPE_KEY && message[1] === Type.BOOKMARK) {
          isNew = false;
          bookmarked += 1;
        }
        take(message);
      }
    });
  }
  stream.end(frameOf(Buffer.from(request, "base64"), LIMITS));
  open.push(session);
}

function fail(why: string): void {
  console.error(why);
  process.exit(1);
}

async function openAll(order: Extract<ReaderOrder, { kind: "open" }>): Promise<ReaderAnswer> {
  const wanted = bookmarked + order.requests.length;
  closing = false;
  for (const request of order.requests) openStream(order, request);
  await waitUntil("every stream has its snapshot", () => bookmarked === wanted);
  return { kind: "opened" };
}

async function closeAll(): Promise<ReaderAnswer> {
  closing = true;
  // A stream that nothing reads keeps its connection from closing by itself.
  const closed = open.splice(0).map((session) => {
    session.destroy();
    return session.closed ? null : once(session, "close");
  });
  await Promise.all(closed);
  return { kind: "closed" };
}

function lags({ first, beganMs, committedMs }: ChangeTimes): ReaderAnswer {
  const since = (times: readonly number[]): Histogram => {
    const counts = new Map<number, number>();
    for (const { change, atMs } of came) {
      const fromMs = times[change - first];
      if (fromMs === undefined) continue;
      const tenths = Math.max(0, Math.round((atMs - fromMs) * 10));
      counts.set(tenths, (counts.get(tenths) ?? 0) + 1);
    }
    return [...counts];
  };
  const answer = { kind: "lags", sinceBegin: since(beganMs), sinceCommit: since(committedMs) } as const;
  came = [];
  bytes = 0;
  return answer;
}

async function obey(order: ReaderOrder): Promise<ReaderAnswer> {
  if (order.kind === "open") return await openAll(order);
  if (order.kind === "close") return await closeAll();
  if (order.kind === "lags") return lags(order.times);
  return { kind: "counted", received: came.length, bytes };
}

process.on("message", (order: ReaderOrder) => void obey(order).then((answer) => process.send?.(answer)));
process.on("disconnect", () => process.exit());
