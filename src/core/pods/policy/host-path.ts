/** Paths longer than this cannot exist on Linux. */
const PATH_CHARS_MAX = 4096;

/**
 * A path in its normal form: absolute, without empty segments, `.`, and a slash at its end. Null for a path that is not
 * absolute or that has a segment `..`, because such a path may lead anywhere. Null also for a path with a colon, a
 * comma or a control character: container runtimes and lists of allowances give them a meaning.
 */
export function normalPath(path: string): string | null {
  if (!path.startsWith("/") || path.length > PATH_CHARS_MAX || /[:,\p{Cc}]/u.test(path)) return null;
  const segments = path.split("/").filter((segment) => segment !== "" && segment !== ".");
  return segments.includes("..") ? null : `/${segments.join("/")}`;
}

/** Whether a path is a folder or in it. Both are in their normal form: `/dev/shmx` is not within `/dev/shm`. */
export function isWithin(folder: string, path: string): boolean {
  if (!path.startsWith("/")) return false;
  return folder === "/" || path === folder || path.startsWith(`${folder}/`);
}
