/** The contexts of the configuration file: services that the user calls by a short name, with a default namespace. */
import type { Security } from "../../config/client-config.ts";
import { isJsonObject, type Json } from "../../runtime/json.ts";
import { yaml } from "../../runtime/lazy-yaml.ts";
import { readYaml } from "../../runtime/yaml.ts";
import type { CliDeps } from "../shell/deps.ts";
import { usageFailure } from "../shell/exit.ts";
import { isAddress } from "../shell/options.ts";
import { CONFIG_FILE_LIMIT } from "./config-file.ts";
import { NO_SECURITY } from "./security.ts";

export type Context = {
  /** HOST:PORT of processes of one service. Empty: the default address. */
  readonly addresses: readonly string[];
  /** Empty: `default`. */
  readonly namespace: string;
  /** Its paths are absolute. */
  readonly security: Security;
};

export type Contexts = {
  /** The name of the context that commands use. Empty: none. */
  readonly current: string;
  readonly contexts: ReadonlyMap<string, Context>;
};

type ConfigFile = CliDeps["configFile"];

/** More than any person has. Protects against a file that is something else. */
const CONTEXTS_MAX = 1000;
const CONTEXT_NAME = /^[A-Za-z0-9][\w.-]{0,62}$/;
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Reads the file. Without one there are no contexts. Throws a usage error that names the file and the wrong member. */
export async function readContexts(file: ConfigFile): Promise<Contexts> {
  const text = await file.read();
  if (text === null) return { current: "", contexts: new Map() };
  const refuse = (why: string) => usageFailure(`${file.path}: ${why}`);
  const json = parsed(text, refuse);
  const { current = "", contexts = {}, ...others } = json;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw refuse(`${unknown} is not a known member; allowed are current and contexts`);
  if (typeof current !== "string") throw refuse("current must be the name of a context");
  if (!isJsonObject(contexts)) throw refuse("contexts must be an object");
  const entries = Object.entries(contexts);
  if (entries.length > CONTEXTS_MAX) throw refuse(`it has more than ${CONTEXTS_MAX} contexts`);
  const read = entries.map(([name, value]) => [name, contextOf(name, value ?? null, refuse)] as const);
  return { current, contexts: new Map(read) };
}

const LIMITS = { ...CONFIG_FILE_LIMIT, depthMax: 16, tokensMax: 100_000, referencesMax: 0 };

type Refuse = (why: string) => Error;

function parsed(text: string, refuse: Refuse): { readonly [member: string]: Json | undefined } {
  const document = readYaml(text, LIMITS);
  if (document.kind === "invalid") {
    const [{ line, message, detail } = { line: null, message: "is not YAML", detail: "" }] = document.problems;
    throw refuse(detail === "" ? `${line === null ? "it" : `line ${line}`} ${message}` : `it is not YAML: ${detail}`);
  }
  const json = document.value ?? {};
  if (!isJsonObject(json)) throw refuse("it must be an object with the members current and contexts");
  return json;
}

function contextOf(name: string, value: Json, refuse: Refuse): Context {
  const at = `contexts.${name}`;
  if (!CONTEXT_NAME.test(name)) throw refuse(`${at}: ${NAME_RULE}`);
  if (!isJsonObject(value)) throw refuse(`${at} must be an object with addresses and namespace`);
  const { addresses = [], namespace = "", tls = false, ...others } = value;
  const unknown = Object.keys(others).find((member) => !isFileMember(member));
  if (unknown !== undefined) throw refuse(`${at}.${unknown} is not a known member; allowed are ${MEMBERS.join(", ")}`);
  if (!isTexts(addresses)) throw refuse(`${at}.addresses must be a list of HOST:PORT`);
  const wrong = addresses.find((address) => !isAddress(address));
  if (wrong !== undefined) throw refuse(`${at}.addresses: ${wrong} is not HOST:PORT`);
  if (typeof namespace !== "string" || (namespace !== "" && !NAMESPACE.test(namespace)))
    throw refuse(`${at}.namespace must be the name of a namespace`);
  if (typeof tls !== "boolean") throw refuse(`${at}.tls must be true or false`);
  const noText = Object.keys(others).find((member) => typeof others[member] !== "string");
  if (noText !== undefined) throw refuse(`${at}.${noText} must be a text`);
  return { addresses, namespace, security: { ...NO_SECURITY, ...others, tls } };
}

const { tls: _, ...TEXTS } = NO_SECURITY;
const MEMBERS = ["addresses", "namespace", "tls", ...Object.keys(TEXTS)];

function isFileMember(member: string): boolean {
  return Object.hasOwn(TEXTS, member);
}

const NAME_RULE =
  "a context's name has at most 63 letters, digits, '-', '_' and '.', and begins with a letter or digit";

function isTexts(value: Json): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

/** The context with this name, or the current one if none is named. Null: there is no current one. */
export function chosenContext({ current, contexts }: Contexts, named: string | undefined): Context | null {
  const name = named ?? current;
  if (name === "") return null;
  const context = contexts.get(name);
  if (context === undefined) {
    const known = [...contexts.keys()].join(", ");
    throw usageFailure(`there is no context ${name}; ${known === "" ? "none is set" : `there are ${known}`}`);
  }
  return context;
}

/** Adds or replaces a context. The first one becomes the current one. */
export function withContext({ current, contexts }: Contexts, name: string, context: Context): Contexts {
  if (!CONTEXT_NAME.test(name)) throw usageFailure(NAME_RULE);
  if (context.namespace !== "" && !NAMESPACE.test(context.namespace))
    throw usageFailure(`--namespace must be the name of a namespace, not ${context.namespace}`);
  return { current: current === "" ? name : current, contexts: new Map([...contexts, [name, context]]) };
}

/** Leaves out what a context does not say. */
export async function writeContexts(file: ConfigFile, { current, contexts }: Contexts): Promise<void> {
  const written = [...contexts].map(([name, { addresses, namespace, security }]) => {
    const said = Object.entries(security).filter(([, value]) => value !== false && value !== "");
    return [name, { addresses, namespace, ...Object.fromEntries(said) }];
  });
  await file.write(yaml().stringify({ current, contexts: Object.fromEntries(written) }));
}
