/** Sends requests over HTTP as a browser or curl does, byte by byte where a test needs that. */
import { once } from "node:events";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { connect, type Socket } from "node:net";
import { startFixture } from "../fixture.ts";
import { ANY_WEB } from "./listen.ts";

type Fixture = Parameters<typeof startFixture>;

/** A served API with its listener for browsers. */
export async function startWebFixture(t: Fixture[0], { ports = {}, bounds, tls = null, web = {} }: WebParts = {}) {
  const fixture = await startFixture(t, ports, bounds, tls, { ...ANY_WEB, ...web });
  if (fixture.api.web.kind !== "serves") throw new Error("it does not listen");
  return { ...fixture, ...fixture.api.web };
}

type WebParts = {
  readonly ports?: Fixture[1];
  readonly bounds?: Fixture[2];
  readonly tls?: Fixture[3];
  readonly web?: Partial<NonNullable<Fixture[4]>>;
};

export type HttpAnswer = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: string };

type HttpRequest = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Buffer;
};

const JSON_HEADERS = { "content-type": "application/json" };

/** Calls an RPC, such as `JobService/GetJob`, with a request in JSON. */
export function callJson(url: string, rpc: string, request: unknown, headers: HttpRequest["headers"] = {}) {
  const body = typeof request === "string" ? request : JSON.stringify(request);
  return send(`${url}/gangway.v1.${rpc}`, { method: "POST", headers: { ...JSON_HEADERS, ...headers }, body });
}

export async function send(url: string, { method = "GET", headers = {}, body }: HttpRequest = {}): Promise<HttpAnswer> {
  const request = httpRequest(url, { method, headers: headers as Record<string, string>, agent: false });
  request.end(body);
  const [response] = await once(request, "response");
  const text = Buffer.concat(await response.toArray()).toString();
  return { status: response.statusCode, headers: response.headers, body: text };
}

/** A connection, and what it has received. */
export function openRaw(t: Fixture[0], address: string): { readonly socket: Socket; readonly text: () => string } {
  const socket = connect(Number(address.split(":").at(-1)), "127.0.0.1");
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  socket.on("error", () => {});
  t.after(() => socket.destroy());
  return { socket, text: () => text };
}

/** The head of a POST, with more headers. */
export function headOf(rpc: string, ...headers: readonly string[]): string {
  const own = [`POST /gangway.v1.${rpc} HTTP/1.1`, "Host: localhost", "Content-Type: application/json"];
  return `${[...own, ...headers].join("\r\n")}\r\n\r\n`;
}

/** A message behind its flags and its length. */
export function enveloped(text: string, flags = 0): Buffer {
  const content = Buffer.from(text);
  const head = Buffer.from([flags, 0, 0, 0, 0]);
  head.writeUInt32BE(content.length, 1);
  return Buffer.concat([head, content]);
}
