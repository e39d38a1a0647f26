/** Reads the files with settings that the environment names. They are YAML, and JSON with it. */

import type { Json } from "../runtime/json.ts";
import { readBoundedFile, readBoundedFileSync } from "../runtime/read-bounded-file.ts";
import { readYaml } from "../runtime/yaml.ts";
import { type Environment, given } from "./client-config.ts";
import type { VariableName } from "./variables.ts";

/** A file that is read again when it changes. `value` is that of `text`. `parse` throws like `readConfig`. */
export type SettingsFile<T> = {
  readonly path: string;
  readonly text: string;
  readonly value: T;
  readonly parse: (text: string) => T;
};

/** More than the settings of any platform. */
const SETTINGS_LIMITS = { bytesMax: 1024 * 1024, depthMax: 64, tokensMax: 300_000, referencesMax: 1_000 };

/** The text of a file with settings, at the start of the process. Throws if the file is too large for one. */
export function readSettingsText(path: string): string {
  return readBoundedFileSync(path, SETTINGS_LIMITS);
}

/** The text of a file with settings that is followed. Throws if the file is too large for one. */
export function readSettingsAgain(path: string): Promise<string> {
  return readBoundedFile(path, SETTINGS_LIMITS);
}

/** Null: the variable is not set. Throws an error that names the variable, the file and what is wrong. */
export function readSettingsFile<T>(
  env: Environment,
  variable: VariableName,
  read: (
    value: Json,
  ) => { readonly kind: "read"; readonly value: T } | { readonly kind: "refused"; readonly errors: readonly string[] },
): SettingsFile<T> | null {
  const path = given(env, variable);
  if (path === null) return null;
  const refuse = (why: string) => new Error(`${variable} names ${path}, ${why}`);
  const parse = (text: string) => {
    const outcome = read(readable(() => parsedYaml(text), refuse));
    if (outcome.kind === "refused") throw refuse(`where ${outcome.errors.join("; ")}`);
    return outcome.value;
  };
  const text = readable(() => readSettingsText(path), refuse);
  return { path, text, parse, value: parse(text) };
}

/** Throws the error that `refuse` makes of the reason if `read` throws. */
export function readable<T>(read: () => T, refuse: (why: string) => Error): T {
  try {
    return read();
  } catch (error) {
    throw refuse(`which cannot be read: ${error instanceof Error ? error.message : error}`);
  }
}

/** An empty text is an empty object. Throws an error that names the lines. */
export function parsedYaml(text: string): Json {
  const document = readYaml(text, SETTINGS_LIMITS);
  if (document.kind === "value") return document.value ?? {};
  const texts = document.problems.map(
    ({ line, message, detail }) => detail || `${line ? `line ${line}` : "it"} ${message}`,
  );
  throw new Error(texts.join("; "));
}
