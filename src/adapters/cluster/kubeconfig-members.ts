/** The members that a kubeconfig may have, each with its type and form. Every other member is refused by its name. */
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { createSecureContext } from "node:tls";
import { type NameHelp, nameHelp } from "../../core/pods/nearest-name.ts";
import { isJsonObject, type Json, type JsonObject, stringAt } from "../../runtime/json.ts";
import { certificatesIn } from "../../runtime/scan-text.ts";

/** A member of a kubeconfig's object. */
type Member = {
  readonly type: "text" | "flag" | "program" | "empty object";
  /** The problem of a text, as the end of a sentence that begins with the member's path. Omitted: any text. */
  readonly problem?: (text: string) => string | null;
  /** Why only a server that trusts its callers takes this member, as part of a sentence. Omitted: each server does. */
  readonly reach?: string;
};

export type Members = Readonly<Record<string, Member>>;

const FILE: Member = { type: "text", reach: "names a file", problem: pathProblem };

export const CONFIG_MEMBERS: Members = {
  apiVersion: { type: "text", problem: (text) => (text === "v1" ? null : "must be v1") },
  kind: { type: "text", problem: (text) => (text === "Config" ? null : "must be Config") },
  // kubectl writes it, always empty.
  preferences: { type: "empty object" },
  "current-context": { type: "text" },
};

export const CLUSTER_MEMBERS: Members = {
  server: { type: "text", problem: (text) => urlProblem(text) },
  "certificate-authority-data": { type: "text", problem: certificatesProblem },
  "insecure-skip-tls-verify": { type: "flag" },
  "tls-server-name": { type: "text", problem: serverNameProblem },
  "certificate-authority": FILE,
  "proxy-url": { type: "text", reach: "leads through a proxy", problem: (text) => urlProblem(text) },
};

export const USER_MEMBERS: Members = {
  token: { type: "text", problem: tokenProblem },
  username: { type: "text", problem: usernameProblem },
  password: { type: "text" },
  "client-certificate-data": { type: "text", problem: certificatesProblem },
  "client-key-data": { type: "text", problem: (text) => base64Problem(text) },
  exec: { type: "program", reach: "runs a program" },
  "client-certificate": FILE,
  "client-key": FILE,
  tokenFile: FILE,
};

export const CONTEXT_MEMBERS: Members = {
  cluster: { type: "text" },
  user: { type: "text" },
  // Jobs name their namespaces, so this one is not used.
  namespace: { type: "text" },
};

/** Members that every server refuses, with the reason: users know them from kubectl. */
const NEVER: Readonly<Record<string, string>> = {
  "auth-provider": "runs a program, which this server does not allow",
};

type ProgramMember = { readonly form: string; readonly fits: (value: Json) => boolean };
const TEXT: ProgramMember = { form: "text", fits: (value) => typeof value === "string" };

const PROGRAM_MEMBERS: Readonly<Record<string, ProgramMember>> = {
  apiVersion: TEXT,
  command: TEXT,
  args: { form: "a list of texts", fits: isTexts },
  env: { form: "a list of objects with name and value", fits: isVariables },
  interactiveMode: TEXT,
  provideClusterInfo: { form: "true or false", fits: (value) => typeof value === "boolean" },
  installHint: TEXT,
};

/** More than any object of a kubeconfig may have. */
const MEMBERS_READ_MAX = 50;
/** The longest name that an error shows: Kubernetes' own limit for names that people write. */
const NAME_SHOWN_MAX = 63;

/** Says everything that is wrong with an object. No problem quotes a value. */
export function memberProblems(
  object: JsonObject,
  at: string,
  { members, allowLocal }: { readonly members: Members; readonly allowLocal: boolean },
): readonly string[] {
  const allowed = Object.keys(members).filter((name) => allowLocal || members[name]?.reach === undefined);
  const help = nameHelp();
  const problemOf = (name: string, value: Json): string | null => {
    const member = Object.hasOwn(members, name) ? members[name] : undefined;
    if (Object.hasOwn(NEVER, name)) return ` ${NEVER[name]}`;
    if (member === undefined) return ` is not allowed${suggestion(name, allowed, help)}`;
    const { reach } = member;
    return reach === undefined || allowLocal ? valueProblem(value, member) : ` ${reach}${NOT_ALLOWED[reach] ?? ""}`;
  };
  // An object with more members has a wrong one among the first.
  const read = Object.entries(object).slice(0, MEMBERS_READ_MAX);
  return read.flatMap(([name, value]) => {
    const problem = problemOf(name, value ?? null);
    return problem === null ? [] : [`${at}${at === "" ? "" : "."}${shownName(name)}${problem}`];
  });
}

const NOT_ALLOWED: Readonly<Record<string, string>> = {
  "runs a program": ", which this server does not allow",
  "names a file": ", which this server does not allow: embed it, as kubectl config view --flatten does",
  "leads through a proxy": ", which this server does not allow",
};

/** A name from outside, short and on one line. */
export function shownName(name: string): string {
  return /^[\w.@:/-]{1,63}$/.test(name) ? name : JSON.stringify(name.slice(0, NAME_SHOWN_MAX));
}

/** Says what type a value has, in the words of YAML. */
export function typeName(value: Json | undefined): string {
  if (value === null || value === undefined) return "empty";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  return typeof value === "string" ? "text" : `a ${typeof value === "boolean" ? "true or false" : "number"}`;
}

function suggestion(name: string, allowed: readonly string[], help: NameHelp): string {
  const near = name.length > NAME_SHOWN_MAX ? null : help(name, allowed);
  return near === null ? `: allowed are ${allowed.join(", ")}` : `: did you mean ${near}?`;
}

/** The problem of a value: the rest of its path, if the error is inside, and the end of the sentence. */
function valueProblem(value: Json, { type, problem }: Member): string | null {
  if (type === "program") return programProblem(value);
  if (type === "text") return textProblem(value, problem);
  if (type === "flag") return typeof value === "boolean" ? null : ` must be true or false, but is ${typeName(value)}`;
  return isJsonObject(value) && Object.keys(value).length === 0 ? null : " must be an empty object";
}

function textProblem(value: Json, problem: Member["problem"]): string | null {
  if (typeof value !== "string") {
    return ` must be text, but is ${typeName(value)}${typeof value === "object" ? "" : ": put it in quotes"}`;
  }
  const wrong = value === "" ? "must not be empty" : problem?.(value);
  return wrong ? ` ${wrong}` : null;
}

/** An `exec` member as kubectl reads it. Its texts reach the program and nothing else. */
function programProblem(value: Json): string | null {
  if (!isJsonObject(value)) return ` must be an object, but is ${typeName(value)}`;
  const problems = Object.entries(value).map(([name, inner]) => {
    if (!Object.hasOwn(PROGRAM_MEMBERS, name)) return `${shownName(name)} is not allowed`;
    return PROGRAM_MEMBERS[name]?.fits(inner ?? null) ? null : `${name} must be ${PROGRAM_MEMBERS[name]?.form}`;
  });
  const first =
    problems.find((problem) => problem !== null) ?? (stringAt(value, "command") ? null : "command is missing");
  return first === null ? null : `.${first}: allowed are ${Object.keys(PROGRAM_MEMBERS).join(", ")}`;
}

function isTexts(value: Json): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

function isVariables(value: Json): boolean {
  return (
    Array.isArray(value) &&
    value.every((one) => isJsonObject(one) && isTexts([one["name"] ?? null, one["value"] ?? null]))
  );
}

const URL_CHARS_MAX = 2_048;

function urlProblem(text: string): string | null {
  const url = text.length > URL_CHARS_MAX ? null : URL.parse(text);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:") || url.hostname === "") {
    return `must be an https or http URL of at most ${URL_CHARS_MAX} characters`;
  }
  if (url.username !== "" || url.password !== "") return "must not hold a user or password";
  return url.search === "" && url.hash === "" ? null : "must not have a query or fragment";
}

const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/i;

/** TLS takes only names here: an IP address makes the connection throw. */
function serverNameProblem(text: string): string | null {
  const isName = text.length <= 253 && isIP(text) === 0 && text.split(".").every((label) => LABEL.test(label));
  return isName ? null : "must be a DNS name";
}

/** A path that the system can open: it takes text up to the first zero byte. */
function pathProblem(text: string): string | null {
  return text.includes("\0") ? "must be a path" : null;
}

function tokenProblem(text: string): string | null {
  return /^[\x21-\x7e]+$/.test(text) ? null : "must be printable ASCII without spaces and line breaks";
}

/** HTTP's basic authentication ends the user's name at the first colon. */
function usernameProblem(text: string): string | null {
  return text.includes(":") ? "must not contain a colon" : null;
}

function base64Problem(text: string): string | null {
  const joined = text.replaceAll(/[\r\n]/g, "");
  const isBase64 = joined.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(joined);
  return isBase64 && decoded(joined).includes("-----BEGIN ") ? null : "must be a PEM file in base64";
}

function certificatesProblem(text: string): string | null {
  const problem = base64Problem(text);
  if (problem !== null) return problem;
  const blocks = certificatesIn(decoded(text));
  if (blocks.length === 0) return "must hold a certificate in PEM";
  const broken = blocks.findIndex((block) => !isCertificate(block));
  return broken < 0 ? null : `must hold valid certificates, but number ${broken + 1} is not one`;
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== null;
  } catch {
    return false;
  }
}

/** Says whether TLS can use a client's certificate and key. The reason names no part of them. */
export function keyPairProblem(certificate: string, key: string): string | null {
  try {
    createSecureContext({ cert: decoded(certificate), key: decoded(key) });
    return null;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    return `must be the key of client-certificate-data, without a passphrase${code}`;
  }
}

function decoded(base64: string): string {
  return Buffer.from(base64, "base64").toString("latin1");
}
