/** Makes calls over HTTP in place of gRPC: in JSON, in JSON that is damaged, in the binary form, and by gRPC-Web. */
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { type ConnectJson, Sent, statusOf } from "../../api/web/bridge.ts";
import { type Answer, Caller, type CallOptions, NOTHING } from "./caller.ts";
import { METHODS, pathOf } from "./surface.ts";

const FORMS = ["json", "damaged", "binary", "grpcWeb"] as const;
type Form = (typeof FORMS)[number];
const ANSWER_MS_MAX = 120_000;
const HEAD_BYTES = 5;
/** The flags of the last message of a stream of Connect, and of one of gRPC-Web. */
const [END, TRAILERS] = [2, 0x80];

/** Health, reflection and misused HTTP/2 stay calls of gRPC. The bytes of a call say which form it has. */
export class HttpCaller extends Caller {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });

  constructor(address: string, connections: number, url: string) {
    super(address, connections);
    this.#url = url;
  }

  override async call(path: string, body: Uint8Array, options: CallOptions = {}): Promise<Answer> {
    const method = METHODS.find((one) => pathOf(one) === path && path.startsWith("/gangway."));
    const isProper =
      body.length >= HEAD_BYTES && body[0] === 0 && options.open !== true && options.headers === undefined;
    if (method === undefined || !isProper) return super.call(path, body, options);
    const request = Buffer.from(body.subarray(HEAD_BYTES));
    const form =
      FORMS[request.reduce((sum, byte) => (sum + byte) % FORMS.length, request.length % FORMS.length)] ?? "json";
    const streams = method.methodKind === "server_streaming";
    const json = form === "json" || form === "damaged" ? new Sent(method, request) : null;
    const content = json === null || !json.isJson ? request : form === "damaged" ? damaged(json.body) : json.body;
    const isJson = json?.isJson === true;
    const type = form === "grpcWeb" ? "application/grpc-web+proto" : contentType(streams, isJson);
    const sent = streams || form === "grpcWeb" ? enveloped(content) : content;
    const read = (answer: Read) =>
      answerOf(answer, { streams, form, decode: (bytes) => (isJson && json !== null ? json.answer(bytes) : bytes) });
    return await this.#send(path, { type, sent }, options).then(read, (error: unknown) => ({
      ...NOTHING,
      failure: String(error),
    }));
  }

  override close(): void {
    super.close();
    this.#agent.destroy();
  }

  #send(
    path: string,
    { type, sent }: { readonly type: string; readonly sent: Buffer },
    options: CallOptions,
  ): Promise<Read> {
    return new Promise((resolve, reject) => {
      const headers = { "content-type": type };
      const request = httpRequest(`${this.#url}${path}`, { method: "POST", agent: this.#agent, headers });
      const chunks: Buffer[] = [];
      let response: IncomingMessage | null = null;
      let left = false;
      const leave = () => {
        left = true;
        request.destroy();
        done();
      };
      const late = setTimeout(() => reject(new Error(`no answer within ${ANSWER_MS_MAX / 1000} s`)), ANSWER_MS_MAX);
      const leaving = options.leaveAfterMs === undefined ? undefined : setTimeout(leave, options.leaveAfterMs);
      const done = () => {
        clearTimeout(late);
        clearTimeout(leaving);
        resolve({ response, body: Buffer.concat(chunks), left });
      };
      request.on("error", (error) => (left ? done() : reject(error)));
      request.on("response", (got: IncomingMessage) => {
        response = got;
        got.on("data", (chunk: Buffer) => {
          chunks.push(chunk);
          if (options.messagesMax !== undefined && countOf(chunks) >= options.messagesMax) leave();
        });
        got.on("end", done).on("error", done);
      });
      request.end(sent);
    });
  }
}

type Read = { readonly response: IncomingMessage | null; readonly body: Buffer; readonly left: boolean };

function contentType(streams: boolean, isJson: boolean): string {
  return `application/${streams ? "connect+" : ""}${isJson ? "json" : "proto"}`;
}

function enveloped(content: Buffer): Buffer {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(content.length, 1);
  return Buffer.concat([head, content]);
}

/** The text with one byte changed, which its own bytes choose. */
function damaged(json: Buffer): Buffer {
  const at = json.reduce((sum, byte, place) => (sum * 31 + byte + place) % 65_521, 7);
  const changed = Buffer.from(json);
  changed[at % json.length] = [0x00, 0x22, 0x2c, 0x5b, 0x5c, 0x7b, 0x7d, 0xff][at % 8] ?? 0;
  return changed;
}

type Envelope = { readonly flags: number; readonly content: Buffer };

function envelopesOf(body: Buffer): readonly Envelope[] {
  const all: Envelope[] = [];
  for (let at = 0; at + HEAD_BYTES <= body.length; ) {
    const end = at + HEAD_BYTES + body.readUInt32BE(at + 1);
    if (end > body.length) break;
    all.push({ flags: body[at] ?? 0, content: body.subarray(at + HEAD_BYTES, end) });
    at = end;
  }
  return all;
}

function countOf(chunks: readonly Buffer[]): number {
  return envelopesOf(Buffer.concat(chunks)).length;
}

type Reading = {
  readonly streams: boolean;
  readonly form: Form;
  readonly decode: (bytes: Buffer) => Buffer;
};

function answerOf({ response, body, left }: Read, { streams, form, decode }: Reading): Answer {
  const httpStatus = response?.statusCode ?? null;
  const headers = Object.entries(response?.headers ?? {})
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
  const answer = { ...NOTHING, httpStatus, headers, left };
  if (response === null) return { ...answer, failure: left ? null : "no response" };
  if (form === "grpcWeb") return grpcWebAnswer(answer, body, response);
  if (streams && httpStatus === 200) {
    const all = envelopesOf(body);
    const messages = all.filter(({ flags }) => flags === 0).map(({ content }) => decode(content));
    const end = all.find(({ flags }) => flags === END);
    if (end === undefined) return { ...answer, messages };
    const { error } = JSON.parse(end.content.toString()) as { readonly error?: ConnectJson };
    return { ...answer, messages, ...failed(error) };
  }
  if (left) return answer;
  if (httpStatus === 200) return { ...answer, status: 0, messages: [decode(body)] };
  if (body.length === 0) return { ...answer, failure: `HTTP status ${httpStatus} without a body` };
  return { ...answer, ...failed(JSON.parse(body.toString()) as ConnectJson) };
}

function failed(error: ConnectJson | undefined): Pick<Answer, "status" | "message" | "details"> {
  if (error === undefined) return { status: 0, message: "", details: null };
  const { code = 2, details = "", metadata } = statusOf(error);
  const [bytes] = metadata?.get("grpc-status-details-bin") ?? [];
  return { status: code, message: details, details: bytes === undefined ? null : (bytes as Buffer) };
}

function grpcWebAnswer(answer: Answer, body: Buffer, { headers }: IncomingMessage): Answer {
  const all = envelopesOf(body);
  const text = all.find(({ flags }) => flags === TRAILERS)?.content.toString() ?? "";
  const lines = text.split("\r\n").flatMap((line) => (line.includes(":") ? [line.split(/: ?(.*)/s)] : []));
  const trailers: Record<string, unknown> = { ...headers, ...Object.fromEntries(lines) };
  const status = trailers["grpc-status"];
  const details = trailers["grpc-status-details-bin"];
  return {
    ...answer,
    status: status === undefined ? null : Number(status),
    message: decodeURIComponent(String(trailers["grpc-message"] ?? "")),
    details: details === undefined ? null : Buffer.from(String(details), "base64"),
    messages: all.filter(({ flags }) => flags === 0).map(({ content }) => content),
    trailerBytes: text.length,
  };
}
