/**
 * The places of objects that an operator opens for plugins, and which URL is in which. A namespace reaches only its own
 * places, with the credentials that the place names.
 */
import { isJsonObject, type Json, type JsonObject } from "../../runtime/json.ts";
import { nearestName } from "../pods/nearest-name.ts";

/** A folder of files, or a part of a bucket. Credentials are names of secrets, never values. */
export type ObjectPlace = {
  /** `s3://bucket/`, `s3://bucket/folder/` or `file:///folder/`, with a slash at its end. */
  readonly url: string;
  /** The server of a bucket, such as `http://minio:9000`. Null: that of AWS in the region. */
  readonly endpoint: string | null;
  readonly region: string;
  /** The names of the secrets. Null: requests are not signed. */
  readonly accessKeySecret: string | null;
  readonly secretKeySecret: string | null;
  readonly sessionTokenSecret: string | null;
  /** Null: every namespace. */
  readonly namespaces: readonly string[] | null;
};

/** An object's URL in its parts, without escapes. */
export type ObjectName = { readonly scheme: "s3" | "file"; readonly bucket: string; readonly path: string };

type PlacesOutcome =
  | { readonly kind: "read"; readonly value: readonly ObjectPlace[] }
  | { readonly kind: "refused"; readonly errors: readonly string[] };

const PLACES_MAX = 1_000;
const URL_CHARS_MAX = 2_048;
const SECRET_NAME = /^[A-Za-z0-9][-A-Za-z0-9._]{0,252}$/;
const MEMBERS = ["url", "endpoint", "region", "accessKeySecret", "secretKeySecret", "sessionTokenSecret", "namespaces"];

/** Reads the file of places, `stores: [{ url, … }]`. Names every wrong member. */
export function readObjectPlaces(file: Json): PlacesOutcome {
  const stores = isJsonObject(file) ? file["stores"] : undefined;
  const unknown = isJsonObject(file) ? Object.keys(file).filter((name) => name !== "stores") : [];
  if (!Array.isArray(stores) || unknown.length > 0) {
    const [name] = unknown;
    const what = name === undefined ? "stores must be a list" : `${name} is unknown; known is stores`;
    return { kind: "refused", errors: [what] };
  }
  if (stores.length > PLACES_MAX) return { kind: "refused", errors: [`stores has more than ${PLACES_MAX} items`] };
  const errors: string[] = [];
  const value = (stores as readonly Json[]).map((store, index) => placeOf(store, `stores[${index}]`, errors));
  return errors.length > 0 ? { kind: "refused", errors } : { kind: "read", value };
}

function placeOf(store: Json, at: string, errors: string[]): ObjectPlace {
  const members: JsonObject = isJsonObject(store) ? store : {};
  if (!isJsonObject(store)) errors.push(`${at} must be an object`);
  for (const name of Object.keys(members)) {
    if (MEMBERS.includes(name)) continue;
    const near = nearestName(name, MEMBERS);
    const meant = near === null ? `; known are ${MEMBERS.join(", ")}` : `: did you mean ${near}?`;
    errors.push(`${at}.${name} is unknown${meant}`);
  }
  const textAt = (name: string): string | null => {
    const value = members[name] ?? null;
    if (value === null || (typeof value === "string" && value !== "")) return value;
    errors.push(`${at}.${name} must be text`);
    return null;
  };
  const secretAt = (name: string): string | null => {
    const value = textAt(name);
    if (value === null || SECRET_NAME.test(value)) return value;
    errors.push(`${at}.${name} must be the name of a secret, not its value`);
    return null;
  };
  const url = textAt("url") ?? "";
  const name = objectNameOf(url);
  if (name === null || !url.endsWith("/")) {
    const allowed = "must be like s3://bucket/folder/ or file:///folder/, with / at its end";
    errors.push(`${at}.url is "${url.slice(0, 80)}": ${allowed}`);
  }
  const keys = [secretAt("accessKeySecret"), secretAt("secretKeySecret")] as const;
  if ((keys[0] === null) !== (keys[1] === null))
    errors.push(`${at} must name both accessKeySecret and secretKeySecret`);
  return {
    url,
    endpoint: endpointOf(textAt("endpoint"), `${at}.endpoint`, errors),
    region: textAt("region") ?? "us-east-1",
    accessKeySecret: keys[0],
    secretKeySecret: keys[1],
    sessionTokenSecret: secretAt("sessionTokenSecret"),
    namespaces: namespacesOf(members["namespaces"], `${at}.namespaces`, errors),
  };
}

function endpointOf(text: string | null, at: string, errors: string[]): string | null {
  const url = text === null ? null : URL.parse(text);
  if (text === null) return null;
  const isPlain =
    url !== null && /^https?:$/.test(url.protocol) && url.pathname === "/" && url.search + url.hash === "";
  if (isPlain && url.username + url.password === "") return url.origin;
  errors.push(`${at} must be like https://s3.example.com:9000, without a path and without credentials`);
  return null;
}

function namespacesOf(value: Json | undefined, at: string, errors: string[]): readonly string[] | null {
  if (value === undefined || value === null) return null;
  if (Array.isArray(value) && value.every((one: Json) => typeof one === "string" && one !== "")) {
    return value as readonly string[];
  }
  errors.push(`${at} must be a list of namespaces`);
  return null;
}

/**
 * The parts of an object's URL. Null: it is none. A path with `.` or `..` is none, however it is escaped, so that no
 * path leaves the place that it begins with.
 */
export function objectNameOf(text: string): ObjectName | null {
  if (text.length > URL_CHARS_MAX || UNFIT.test(text)) return null;
  const scheme = schemeOf(text);
  const rest = text.slice(`${scheme}://`.length);
  const slash = rest.indexOf("/");
  const path = slash < 0 ? null : unescaped(rest.slice(slash));
  if (scheme === null || path === null || !staysInside(path)) return null;
  const bucket = rest.slice(0, slash);
  return scheme === "s3" && !BUCKET.test(bucket) ? null : { scheme, bucket, path };
}

const UNFIT = /[?#\\\p{Cc}]/u;
const BUCKET = /^[a-z0-9][-a-z0-9.]{1,61}[a-z0-9]$/;

function schemeOf(text: string): ObjectName["scheme"] | null {
  if (text.startsWith("s3://")) return "s3";
  return text.startsWith("file:///") ? "file" : null;
}

function staysInside(path: string): boolean {
  return !/\p{Cc}/u.test(path) && !path.split("/").some((one) => one === "." || one === "..");
}

function unescaped(path: string): string | null {
  try {
    return decodeURIComponent(path);
  } catch {
    return null;
  }
}

/** The place of an object for jobs of a namespace: the longest one that holds it. Null: none does. */
export function placeOfObject(
  places: readonly ObjectPlace[],
  of: { readonly namespace: string; readonly name: ObjectName },
): ObjectPlace | null {
  const { namespace, name } = of;
  let best: { readonly place: ObjectPlace; readonly length: number } | null = null;
  for (const place of places) {
    if (place.namespaces !== null && !place.namespaces.includes(namespace)) continue;
    const length = lengthInside(place, name);
    if (length !== null && (best === null || length > best.length)) best = { place, length };
  }
  return best?.place ?? null;
}

/** How long the path of a place is that holds an object. Null: it does not hold it. */
function lengthInside(place: ObjectPlace, { scheme, bucket, path }: ObjectName): number | null {
  const root = objectNameOf(place.url);
  if (root === null || root.scheme !== scheme || root.bucket !== bucket) return null;
  return path.startsWith(root.path) && path.length > root.path.length ? root.path.length : null;
}
