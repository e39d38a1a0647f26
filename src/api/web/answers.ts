/** What every answer to a browser has, and the answers that no RPC gives. */
import type { ServerResponse } from "node:http";
import type { Http2ServerResponse } from "node:http2";

export type WebResponse = ServerResponse | Http2ServerResponse;

const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  // Answers of RPCs are for their caller alone.
  "cache-control": "no-store",
};

export function protect(response: WebResponse): void {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
}

/** A body of more bytes is not read to its end only to answer in between. */
const SKIPPED_BYTES_MAX = 256 * 1024;
/** A client that is still sending has this long to read the answer. */
const LINGER_MS = 500;

/**
 * Ends the connection after the answer if the rest of the request's body is large, or of unknown length. HTTP/1.1 has
 * no other way to stop a client that sends. `always`: also if the rest is small.
 */
export function skipBody(response: WebResponse, always = false): void {
  if ("stream" in response || response.req.complete) return;
  const { headers } = response.req;
  const isLarge = "transfer-encoding" in headers || Number(headers["content-length"] ?? 0) > SKIPPED_BYTES_MAX;
  if (!isLarge && !always) return;
  response.shouldKeepAlive = false;
  const { socket } = response;
  if (socket === null) return;
  // Node calls this once the answer is written. Closing at once could make the client lose it.
  socket.destroySoon = () => void socket.end(() => setTimeout(() => socket.destroy(), LINGER_MS).unref());
}

type Answer = { readonly status: number; readonly contentType: string; readonly body: string | Buffer };

export function answer(response: WebResponse, { status, contentType, body }: Answer): void {
  response.setHeader("content-type", contentType);
  response.setHeader("content-length", Buffer.byteLength(body));
  response.statusCode = status;
  if (response.req.method === "HEAD") response.end();
  else response.end(body);
}

/** An error in the form that clients of Connect read. */
export function answerError(
  response: WebResponse,
  status: number,
  error: { readonly code: string; readonly message: string },
): void {
  skipBody(response);
  answer(response, { status, contentType: "application/json", body: `${JSON.stringify(error)}\n` });
}
