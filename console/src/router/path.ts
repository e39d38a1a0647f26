/** The views and their paths. The path and its query are all the state that a link shares. */

export type Route =
  | { readonly view: "overview" }
  | { readonly view: "jobs" }
  | { readonly view: "job"; readonly namespace: string; readonly name: string }
  | { readonly view: "unknown" };

/** The view at a path such as `/jobs/default/llama`. */
export function routeOf(path: string): Route {
  const parts = path.split("/").slice(1).map(decoded);
  const [first = "", namespace, name] = parts;
  if (first === "" && parts.length === 1) return { view: "overview" };
  if (first !== "jobs" || parts.length > 3) return { view: "unknown" };
  if (namespace === undefined || (namespace === "" && name === undefined)) return { view: "jobs" };
  return namespace === "" || name === undefined || name === "" ? { view: "unknown" } : { view: "job", namespace, name };
}

export const OVERVIEW_PATH = "/";
export const JOBS_PATH = "/jobs";

export type JobName = { readonly namespace: string; readonly name: string };

export function jobPath({ namespace, name }: JobName): string {
  return `${JOBS_PATH}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

/** `path` with the given query. Parameters with an empty value are left out. */
export function withQuery(path: string, query: Readonly<Record<string, string>>): string {
  const set = Object.entries(query).filter(([, value]) => value !== "");
  return set.length === 0 ? path : `${path}?${new URLSearchParams(set)}`;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
