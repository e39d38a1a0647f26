/** An image reference in its parts, with the registry and folder that container runtimes assume. */
export type ImageName = {
  readonly host: string;
  readonly path: string;
  /** Null: none is given. */
  readonly tag: string | null;
  readonly digest: string | null;
};

const DOCKER_HUB = "docker.io";
const OFFICIAL = "library/";
const HOST = /^[a-z0-9*]([-a-z0-9.*]*[a-z0-9*])?(:[0-9*]{1,5})?$/;
const PATH = /^[a-z0-9*][-a-z0-9._/*]*$/;
const TAG = /^[\w*][-\w.*]{0,127}$/;
const DIGEST = /^[a-zA-Z0-9+._-]+:([0-9a-fA-F*]+)$/;
const DIGEST_CHARS_MAX = 128;
/** Kubernetes' own limit. */
const REFERENCE_CHARS_MAX = 4096;

/** Reads an image reference. Null: it is none. `busybox` is `docker.io/library/busybox`. */
export function readImage(text: string): ImageName | null {
  return text.includes("*") ? null : readImagePattern(text);
}

/** Reads a pattern of references, in which `*` stands for any characters. Null: it is none. */
export function readImagePattern(text: string): ImageName | null {
  if (text.length > REFERENCE_CHARS_MAX) return null;
  if (text === "*") return { host: "*", path: "*", tag: null, digest: null };
  const [, rest = "", , digest = null] = /^([^@]*)(@(.*))?$/s.exec(text) ?? [];
  const [, name = "", , tag = null] = /^(.*?)(:([^/:]*))?$/s.exec(rest) ?? [];
  const { host, path } = withHost(name);
  const isName =
    HOST.test(host) &&
    PATH.test(path) &&
    !path.split("/").some((segment) => /^\.*$/.test(segment)) &&
    (tag === null || TAG.test(tag)) &&
    (digest === null || isDigest(digest));
  return isName ? { host, path, tag, digest } : null;
}

function isDigest(text: string): boolean {
  const [, hex = ""] = DIGEST.exec(text) ?? [];
  return hex !== "" && hex.length <= DIGEST_CHARS_MAX;
}

/** The first segment is a registry if it has a dot or a port, or is `localhost` or a pattern. Else the hub is meant. */
function withHost(name: string): { readonly host: string; readonly path: string } {
  const slash = name.indexOf("/");
  const first = slash < 0 ? "" : name.slice(0, slash);
  if (!/[.:*]/.test(first) && first !== "localhost") {
    return { host: DOCKER_HUB, path: slash < 0 ? `${OFFICIAL}${name}` : name };
  }
  const host = first.toLowerCase() === "index.docker.io" ? DOCKER_HUB : first.toLowerCase();
  const path = name.slice(slash + 1);
  return { host, path: host === DOCKER_HUB && !path.includes("/") && path !== "*" ? `${OFFICIAL}${path}` : path };
}

/**
 * Whether a pattern takes an image. A pattern without a tag takes any tag, and an image without one has the tag
 * `latest`. A runtime that gets a tag and a digest ignores the tag. So a pattern with a tag takes no image with a
 * digest, unless it names the digest too.
 */
export function takesImage(wanted: ImageName | null, given: ImageName | null): boolean {
  if (wanted === null || given === null) return false;
  if (!glob(wanted.host, given.host) || !glob(wanted.path, given.path)) return false;
  if (wanted.digest !== null) return given.digest !== null && glob(wanted.digest, given.digest);
  if (wanted.tag === null || wanted.tag === "*") return true;
  return given.digest === null && glob(wanted.tag, given.tag ?? "latest");
}

/** Whether a text matches a pattern, in which `*` stands for any characters. */
export function glob(pattern: string, text: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  if (rest.length === 0) return pattern === text;
  const last = rest.pop() ?? "";
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= text.length - last.length;
}
