/** Reads the headers of a request as the metadata of a call of gRPC. */
import { Metadata } from "@grpc/grpc-js";
import type { WebRequest } from "./read-request.ts";

const CREDENTIALS = "authorization";
/** A session is no part of a call. */
const LEFT_OUT: ReadonlySet<string> = new Set([CREDENTIALS, "cookie"]);
/** What the metadata of gRPC can have as text. */
const NAME = /^[0-9a-z_.-]+$/;
const VALUE = /^[ -~]*$/;

/**
 * Node keeps the first of several `authorization` headers. A proxy may have looked at another one, so all are kept, and
 * authentication refuses them.
 */
export function metadataOf(request: WebRequest): Metadata {
  const metadata = new Metadata();
  for (const name of Object.keys(request.headers)) {
    const value = headerOf(request, name) ?? "";
    if (!LEFT_OUT.has(name) && isMetadata(name, value)) metadata.set(name, value);
  }
  for (const value of credentialsOf(request)) metadata.add(CREDENTIALS, VALUE.test(value) ? value : "");
  return metadata;
}

/** The values of a header, joined by commas. */
export function headerOf({ headers }: WebRequest, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(",") : value;
}

function credentialsOf({ rawHeaders }: WebRequest): readonly string[] {
  return rawHeaders.filter((_value, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === CREDENTIALS);
}

function isMetadata(name: string, value: string): boolean {
  return NAME.test(name) && !name.endsWith("-bin") && VALUE.test(value);
}

/** The header `Host`, or `:authority` in HTTP/2. Null: the request has none. */
export function hostOf(request: WebRequest): string | null {
  const { authority } = request as { readonly authority?: string };
  return (authority === undefined || authority === "" ? headerOf(request, "host") : authority) ?? null;
}
