/** The named keys that encrypt the credentials of clusters, and the file that gives them. */

import { compareText } from "../../runtime/compare-text.ts";
import { isJsonObject, type Json, type JsonObject } from "../../runtime/json.ts";
import { append } from "../../runtime/lists.ts";
import { known, listOf, objectOf, textOf } from "../../runtime/read-members.ts";

/** The name of the key in GANGWAY_CREDENTIALS_KEY. Credentials that name no key are encrypted with it. */
export const DEFAULT_KEY = "default";
export const KEY_BYTES = 32;
/** More than anybody keeps. */
const KEYS_MAX = 100;

export type CredentialKeys = {
  /** The name of the key that encrypts. Null: there is no key. */
  readonly current: string | null;
  readonly keys: ReadonlyMap<string, Buffer>;
};

export type NamedKey = { readonly name: string; readonly bytes: Buffer };

/** The key that encrypts. Null: there is no key. */
export function currentKey({ current, keys }: CredentialKeys): NamedKey | null {
  const bytes = current === null ? undefined : keys.get(current);
  return current === null || bytes === undefined ? null : { name: current, bytes };
}

/** The key of the environment alone. */
export function onlyDefault(key: Buffer | null): CredentialKeys {
  return key === null
    ? { current: null, keys: new Map() }
    : { current: DEFAULT_KEY, keys: new Map([[DEFAULT_KEY, key]]) };
}

/** Reads a key. The error says what is wrong, and shows nothing of the key. */
export function parseKey(text: string): { readonly key: Buffer } | { readonly problem: string } {
  const trimmed = text.trim();
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(trimmed)) return { problem: `${WANTED}; it has other characters than base64` };
  const key = Buffer.from(trimmed, "base64");
  return key.length === KEY_BYTES ? { key } : { problem: `${WANTED}; it has ${key.length}` };
}

const WANTED = `must be ${KEY_BYTES} bytes in base64, as \`openssl rand -base64 ${KEY_BYTES}\` prints them`;

type FileOutcome =
  | { readonly kind: "read"; readonly value: CredentialKeys }
  /** Each error names a member and says what is allowed. */
  | { readonly kind: "refused"; readonly errors: readonly string[] };

/** Reads the file. The key of the environment belongs to the result, too. */
export function readCredentialKeys(value: Json, environment: Buffer | null): FileOutcome {
  const errors: string[] = [];
  if (!isJsonObject(value)) return { kind: "refused", errors: ["it must be an object"] };
  known(value, "", ["current", "keys"], errors);
  const listed = listOf(value["keys"] ?? [], "keys", errors);
  if (listed.length > KEYS_MAX) errors.push(`keys must have at most ${KEYS_MAX} entries`);
  const given = listed.map((one, at) => readKey(one, `keys[${at}]`, errors));
  append(errors, repeatedNames(given));
  append(errors, otherDefaults(given, environment));
  const names = new Set([...onlyDefault(environment).keys.keys(), ...given.map(({ name }) => name)]);
  const current = textOf(value["current"] ?? null, "current", errors);
  if (current !== "" && !names.has(current)) {
    errors.push(`current is ${JSON.stringify(current)}, which is no key; ${keysOf([...names])}`);
  }
  if (errors.length > 0) return { kind: "refused", errors };
  const keys = given.map(({ name, bytes }) => [name, bytes] as const);
  return { kind: "read", value: { current, keys: new Map([...onlyDefault(environment).keys, ...keys]) } };
}

/** Without bytes if there is an error. */
function readKey(value: Json, at: string, errors: string[]): NamedKey {
  const of = objectOf(value, at, errors);
  known(of, `${at}.`, ["name", "key"], errors);
  const name = textOf(of["name"] ?? null, `${at}.name`, errors);
  if (name !== "" && !NAME.test(name)) {
    errors.push(
      `${at}.name must be at most 63 lower-case letters, digits, '-' and '.', a letter or digit at both ends`,
    );
  }
  const text = textOf(of["key"] ?? null, `${at}.key`, errors);
  const parsed = text === "" ? { key: NO_BYTES } : parseKey(text);
  if ("key" in parsed) return { name, bytes: parsed.key };
  errors.push(`${at}.key ${parsed.problem}`);
  return { name, bytes: NO_BYTES };
}

const NO_BYTES = Buffer.alloc(0);

function repeatedNames(given: readonly NamedKey[]): readonly string[] {
  const names = given.map(({ name }) => name);
  return names.flatMap((name, at) =>
    name !== "" && names.indexOf(name) < at ? [`keys[${at}].name is that of another one`] : [],
  );
}

/** The file may repeat the key of the environment, so that an operator can move it there. */
function otherDefaults(given: readonly NamedKey[], environment: Buffer | null): readonly string[] {
  return given.flatMap(({ name, bytes }, at) =>
    name === DEFAULT_KEY && environment !== null && bytes.length > 0 && !environment.equals(bytes)
      ? [`keys[${at}].key is not that of GANGWAY_CREDENTIALS_KEY, whose name is ${DEFAULT_KEY}: give it another name`]
      : [],
  );
}

const NAME = /^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/;

/** Says which keys there are, for errors. */
export function keysOf(names: readonly string[]): string {
  return names.length === 0 ? "there is no key" : `there are ${names.join(", ")}`;
}

/** The clusters whose credentials are encrypted with a key, ordered by name. */
export type KeyUse = { readonly name: string; readonly clusters: readonly string[] };

/** A key that a process has, that stored credentials need, or both. */
export type KeyRecord = KeyUse & {
  /** This process encrypts with it. */
  readonly isCurrent: boolean;
  /** This process has it. */
  readonly isKnown: boolean;
};

/** All keys, ordered by name. */
export function keyRecords({ current, keys }: CredentialKeys, used: readonly KeyUse[]): readonly KeyRecord[] {
  const clustersOf = new Map(used.map(({ name, clusters }) => [name, clusters]));
  const names = [...new Set([...keys.keys(), ...clustersOf.keys()])].sort(compareText);
  return names.map((name) => ({
    name,
    clusters: clustersOf.get(name) ?? [],
    isCurrent: name === current,
    isKnown: keys.has(name),
  }));
}

/** Encrypts stored credentials of a cluster with another key, or says why it cannot. */
export type Reseal = (
  stored: JsonObject,
  cluster: string,
) => { readonly kind: "sealed"; readonly credentials: JsonObject } | { readonly kind: "kept"; readonly why: string };

/** What became of the credentials of some clusters. */
export type ResealedPage = {
  readonly changed: number;
  /** The credentials that stay as they are. */
  readonly kept: readonly KeptCredentials[];
  /** The last cluster that was looked at. Null: there is no further one. */
  readonly last: string | null;
};

/** Why credentials are still encrypted with another key. */
export type KeptCredentials = { readonly cluster: string; readonly message: string };

/** How a rotation ended. */
export type RotationOutcome =
  | {
      readonly kind: "done";
      /** The number of clusters whose credentials were encrypted again. */
      readonly changed: number;
      readonly keys: readonly KeyRecord[];
      /** By cluster. */
      readonly problems: readonly KeptCredentials[];
    }
  /** This process has no key. */
  | { readonly kind: "noKey" }
  /** Another key is to encrypt than the current one. */
  | { readonly kind: "otherKey"; readonly current: string };
