/** Reads the variables that name certificates and keys, with their files. */
import type { TlsOptions } from "../adapters/counters/redis/address.ts";
import { readBoundedFileSync } from "../runtime/read-bounded-file.ts";
import {
  type ClientCertificates,
  type TlsContext,
  type TlsFiles,
  tlsContext,
  tlsPaths,
} from "../runtime/server-tls.ts";
import { type Environment, given } from "./client-config.ts";
import type { VariableName } from "./variables.ts";

/** A file with certificates or a key. All public authorities together take a quarter of it. */
export const PEM_LIMIT = { bytesMax: 1024 * 1024 };

/** The files of the listeners' TLS with their texts, in the order of `tlsPaths`. */
export type TlsConfig = {
  readonly clients: ClientCertificates;
  readonly files: TlsFiles;
  readonly texts: readonly string[];
  readonly context: TlsContext;
};

/** Throws an error that names the variable or the file. Null: the listeners speak no TLS. */
export function readTls(env: Environment): TlsConfig | null {
  requirePair(env, "GANGWAY_TLS_CERT_FILE", "GANGWAY_TLS_KEY_FILE");
  const certFile = given(env, "GANGWAY_TLS_CERT_FILE");
  const keyFile = given(env, "GANGWAY_TLS_KEY_FILE");
  const clientCaFile = given(env, "GANGWAY_TLS_CLIENT_CA_FILE");
  const clients = clientCertificates(env);
  if (certFile === null || keyFile === null) {
    if (clients === "none") return null;
    throw new Error(
      "GANGWAY_TLS_CLIENT_CA_FILE is set, but clients show certificates only if GANGWAY_TLS_CERT_FILE is",
    );
  }
  const files: TlsFiles = { certFile, keyFile, clientCaFile };
  try {
    const texts = tlsPaths(files).map((path) => readBoundedFileSync(path, PEM_LIMIT));
    return { clients, files, texts, context: tlsContext(files, texts) };
  } catch (error) {
    throw new Error(`the files of GANGWAY_TLS_… cannot be used: ${error instanceof Error ? error.message : error}`);
  }
}

function clientCertificates(env: Environment): ClientCertificates {
  const text = given(env, "GANGWAY_TLS_CLIENT");
  const verifies = given(env, "GANGWAY_TLS_CLIENT_CA_FILE") !== null;
  if (text !== null && !verifies) {
    throw new Error("GANGWAY_TLS_CLIENT is set, but not GANGWAY_TLS_CLIENT_CA_FILE, which verifies the certificates");
  }
  if (text === null || text === "required") return verifies ? "required" : "none";
  if (text === "optional") return "optional";
  throw new Error(`GANGWAY_TLS_CLIENT is "${text}"; allowed are optional, required`);
}

function requirePair(env: Environment, one: VariableName, other: VariableName): void {
  if ((given(env, one) === null) === (given(env, other) === null)) return;
  throw new Error(`${one} and ${other} belong together: set both or neither`);
}

const REDIS_TLS = ["REDIS_CA_FILE", "REDIS_CERT_FILE", "REDIS_KEY_FILE", "REDIS_TLS_SERVER_NAME"] as const;

export function readRedisTls(env: Environment, url: string): TlsOptions {
  const unused = REDIS_TLS.find((name) => given(env, name) !== null);
  if (unused !== undefined && !url.startsWith("rediss")) {
    throw new Error(`${unused} is set, but REDIS_URL asks for no TLS: begin it with rediss instead of redis`);
  }
  requirePair(env, "REDIS_CERT_FILE", "REDIS_KEY_FILE");
  return {
    ca: readPem(env, "REDIS_CA_FILE"),
    cert: readPem(env, "REDIS_CERT_FILE"),
    key: readPem(env, "REDIS_KEY_FILE"),
    serverName: given(env, "REDIS_TLS_SERVER_NAME"),
  };
}

/** The text of a file in PEM. */
function readPem(env: Environment, name: VariableName): string | null {
  const file = given(env, name);
  if (file === null) return null;
  let text: string;
  try {
    text = readBoundedFileSync(file, PEM_LIMIT);
  } catch (error) {
    throw new Error(`${name} names ${file}, which cannot be read: ${error instanceof Error ? error.message : error}`);
  }
  if (!text.includes("-----BEGIN ")) throw new Error(`${name} names ${file}, which is not in PEM`);
  return text;
}
