/** Sends any bytes as a gRPC call over HTTP/2, and returns all that came back. grpc-js would refuse most of them. */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from "node:http2";

/** The answer to a call. */
export type Answer = {
  /** The gRPC status; null if the call ended without one. */
  readonly status: number | null;
  readonly message: string;
  /** The bytes of grpc-status-details-bin; null without it. */
  readonly details: Buffer | null;
  readonly messages: readonly Buffer[];
  readonly httpStatus: number | null;
  /** The caller itself ended the call. */
  readonly left: boolean;
  /** How the connection or the stream failed; null if it did not. */
  readonly failure: string | null;
  readonly trailerBytes: number;
  /** The headers and trailers as one text. */
  readonly headers: string;
};

export type CallOptions = {
  readonly headers?: Readonly<Record<string, string>>;
  /** The caller leaves after so many messages. Omitted: it stays to the end. */
  readonly messagesMax?: number;
  /** The caller leaves after this time. Omitted: it stays to the end. */
  readonly leaveAfterMs?: number;
  /** Sends no end of the request. */
  readonly open?: boolean;
};

/** A call that has no answer by then will never have one. */
const ANSWER_MS_MAX = 120_000;

/** One message with the five bytes that gRPC puts before it. */
export function framed(message: Uint8Array): Buffer {
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, 5);
  return frame;
}

export class Caller {
  readonly #address: string;
  readonly #sessions: (ClientHttp2Session | null)[];
  #next = 0;

  constructor(address: string, connections: number) {
    this.#address = address;
    this.#sessions = Array.from({ length: connections }, () => null);
  }

  get address(): string {
    return this.#address;
  }

  /** Sends the bytes as they are: `framed` makes a proper body. */
  async call(path: string, body: Uint8Array, options: CallOptions = {}): Promise<Answer> {
    return new Promise((resolve) => {
      let stream: ClientHttp2Stream;
      try {
        const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
        stream = this.#session().request({ ...headers, ...options.headers });
      } catch (error) {
        resolve({ ...NOTHING, failure: `not sent: ${error}` });
        return;
      }
      follow(stream, options, resolve);
      if (body.length > 0) stream.write(body);
      if (options.open !== true) stream.end();
    });
  }

  close(): void {
    for (const session of this.#sessions) session?.destroy();
  }

  #session(): ClientHttp2Session {
    this.#next = (this.#next + 1) % this.#sessions.length;
    const kept = this.#sessions[this.#next];
    if (kept && !kept.closed && !kept.destroyed) return kept;
    const session = connect(`http://${this.#address}`, {
      settings: { initialWindowSize: 1 << 20 },
      // By default Node drops answers while a connection has more than 10 MB of requests to send.
      maxSessionMemory: Number.MAX_SAFE_INTEGER,
    });
    // Streams hear of it too, and tell their calls.
    session.on("error", () => {});
    session.on("goaway", () => session.close());
    this.#sessions[this.#next] = session;
    return session;
  }
}

/** No answer at all. */
export const NOTHING: Answer = {
  status: null,
  message: "",
  details: null,
  messages: [],
  httpStatus: null,
  left: false,
  failure: null,
  trailerBytes: 0,
  headers: "",
};

function follow(stream: ClientHttp2Stream, options: CallOptions, resolve: (answer: Answer) => void): void {
  let headers: IncomingHttpHeaders = {};
  let left = false;
  let failure: string | null = null;
  const reader = new FrameReader();
  const leave = () => {
    left = true;
    stream.close(constants.NGHTTP2_CANCEL);
  };
  const timer = setTimeout(() => {
    failure = `no answer within ${ANSWER_MS_MAX / 1000} s`;
    stream.close(constants.NGHTTP2_CANCEL);
  }, ANSWER_MS_MAX);
  const leaving = options.leaveAfterMs === undefined ? undefined : setTimeout(leave, options.leaveAfterMs);
  stream.on("response", (got) => {
    headers = { ...headers, ...got };
  });
  stream.on("trailers", (got) => {
    headers = { ...headers, ...got };
  });
  stream.on("data", (chunk: Buffer) => {
    reader.add(chunk);
    if (options.messagesMax !== undefined && reader.messages.length >= options.messagesMax) leave();
  });
  stream.on("error", (error) => {
    failure ??= error.message;
  });
  stream.on("close", () => {
    clearTimeout(timer);
    clearTimeout(leaving);
    resolve(answerOf(headers, { messages: reader.messages, left, failure }));
  });
}

function answerOf(
  headers: IncomingHttpHeaders,
  { messages, left, failure }: Pick<Answer, "messages" | "left" | "failure">,
): Answer {
  const status = headers["grpc-status"];
  const details = headers["grpc-status-details-bin"];
  const trailers = Object.entries(headers).filter(([name]) => !name.startsWith(":"));
  return {
    status: status === undefined ? null : Number(status),
    message: decoded(String(headers["grpc-message"] ?? "")),
    details: details === undefined ? null : Buffer.from(String(details), "base64"),
    messages,
    httpStatus: headers[":status"] === undefined ? null : Number(headers[":status"]),
    left,
    failure: left ? null : failure,
    headers: trailers.map(([name, value]) => `${name}: ${value}`).join("\n"),
    trailerBytes: trailers.reduce((sum, [name, value]) => sum + name.length + String(value).length, 0),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const HEADER_BYTES = 5;

/** Takes the messages out of a body. Puts chunks together once a message is complete, and not for each of them. */
class FrameReader {
  readonly messages: Buffer[] = [];
  #rest: Buffer[] = [];
  #length = 0;
  /** How many bytes the next message needs, as far as its header has come. */
  #needed = HEADER_BYTES;

  add(chunk: Buffer): void {
    this.#rest.push(chunk);
    this.#length += chunk.length;
    while (this.#length >= this.#needed) {
      const all = this.#rest.length === 1 ? (this.#rest[0] ?? chunk) : Buffer.concat(this.#rest);
      this.#rest = [all];
      const end = HEADER_BYTES + all.readUInt32BE(1);
      this.#needed = end;
      if (all.length < end) return;
      this.messages.push(all.subarray(HEADER_BYTES, end));
      this.#rest = [all.subarray(end)];
      this.#length -= end;
      this.#needed = HEADER_BYTES;
    }
  }
}
