/** Requests that are turned away before their callers are known. */

/** Why a request was turned away. */
export type WebRefusal = "host" | "origin" | "path" | "method" | "stopping";

export type Refused = {
  readonly reason: WebRefusal;
  readonly status: number;
  readonly code: string;
  readonly message: string;
  /** The methods that the path has. */
  readonly allow?: string;
};

export const UNKNOWN_PATH: Refused = {
  reason: "path",
  status: 404,
  code: "unimplemented",
  message: "there is nothing at this path; /openapi.json lists the paths of all RPCs",
};

export function wrongMethod(path: string, allow: string): Refused {
  return { reason: "method", status: 405, code: "unimplemented", message: `${path} takes ${allow} only`, allow };
}
