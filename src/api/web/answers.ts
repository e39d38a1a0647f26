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

type Answer = { readonly status: number; readonly contentType: string; readonly body: string | Buffer };

/** Answers without having read the request's body, so its connection ends where the protocol cannot skip the body. */
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
  if (!("stream" in response)) response.shouldKeepAlive = false;
  answer(response, { status, contentType: "application/json", body: `${JSON.stringify(error)}\n` });
}
