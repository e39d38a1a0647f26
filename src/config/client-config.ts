/**
 * Reads the part of the environment that every command needs. It loads nothing else, so that a call of the command line
 * starts fast; `config.ts` reads what the service needs.
 */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { VariableName } from "./variables.ts";

/** Paths of files, relative to the working directory. Empty: not given. */
export type Security = {
  /** True: TLS also without any of the files. */
  readonly tls: boolean;
  readonly caFile: string;
  readonly clientCertFile: string;
  readonly clientKeyFile: string;
  /** The name in the service's certificate, if the service is reached by another one. */
  readonly tlsServerName: string;
  /** The file of a bearer token. */
  readonly tokenFile: string;
};

export type ClientConfig = {
  /** Where the command line finds the service. Null: the context or the default says. */
  readonly address: string | null;
  /** The namespace of the command line's jobs. Null: likewise. */
  readonly namespace: string | null;
  /** How the command line protects its calls. Empty: the context says. */
  readonly security: Security;
  /** The file of the command line's contexts. */
  readonly contextsFile: string;
  /** The command of the editor that the user prefers, as a shell reads it. */
  readonly editor: string;
  /** The command line prints no colours. */
  readonly plain: boolean;
  /** Modules whose kinds of jobs are also served. */
  readonly plugins: readonly string[];
};

export type Environment = Readonly<Record<string, string | undefined>>;

/** The environment of a program that the command line starts: this process' own, with these variables. */
export function programEnvironment(
  variables: Readonly<Record<string, string>>,
  env: Environment = process.env,
): Environment {
  return { ...env, ...variables };
}

/** Relative paths begin at `workingDirectory`. */
export function readClientConfig(workingDirectory: string, env: Environment = process.env): ClientConfig {
  const folder = join(given(env, "XDG_CONFIG_HOME") ?? join(homedir(), ".config"), "gangway");
  return {
    address: given(env, "GANGWAY_ADDRESS"),
    namespace: given(env, "GANGWAY_NAMESPACE"),
    security: {
      tls: onOrOff(env, "GANGWAY_TLS"),
      caFile: given(env, "GANGWAY_CA_FILE") ?? "",
      clientCertFile: given(env, "GANGWAY_CLIENT_CERT_FILE") ?? "",
      clientKeyFile: given(env, "GANGWAY_CLIENT_KEY_FILE") ?? "",
      tlsServerName: given(env, "GANGWAY_TLS_SERVER_NAME") ?? "",
      tokenFile: given(env, "GANGWAY_TOKEN_FILE") ?? "",
    },
    contextsFile: resolve(workingDirectory, given(env, "GANGWAY_CONFIG") ?? join(folder, "config.yaml")),
    editor: given(env, "KUBE_EDITOR") ?? given(env, "EDITOR") ?? "vi",
    plain: given(env, "NO_COLOR") !== null,
    plugins: namesOf(given(env, "GANGWAY_PLUGINS") ?? ""),
  };
}

/** The value of a variable; null if it is unset or empty. */
export function given(env: Environment, name: VariableName): string | null {
  return env[name] || null;
}

/** Throws an error that names the variable for a value other than `on` and `off`. Unset: off. */
function onOrOff(env: Environment, name: VariableName): boolean {
  const text = given(env, name) ?? "off";
  if (text === "on" || text === "off") return text === "on";
  throw new Error(`${name} is "${text}"; allowed are on, off`);
}

/** The names in a list that commas separate. */
export function namesOf(list: string): readonly string[] {
  return list
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}
