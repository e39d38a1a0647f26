import { type Shortage, ShortageError, UnavailableError } from "../../../runtime/unavailable-error.ts";

/** The transaction lost a race against another one, and may succeed when it is run again. */
const LOST_RACE = new Set(["40001", "40P01"]);

/**
 * The server has too many connections or is only a replica now, or the statement, transaction or session took too long.
 * Classes 08, a broken connection, and 57, an intervention such as a shutdown or a crash of the server, count too.
 */
const SERVER_AWAY = new Set(["53300", "25006", "25P03", "25P04"]);
const CLASSES_AWAY = /^(08|57)...$/;

/** Classes 53, insufficient resources, and 58, errors of the system that the server runs on. The session goes on. */
const SHORTAGES: Readonly<Record<string, Shortage>> = { "53100": "disk_full", "53200": "out_of_memory" };
const CLASS_LIMITS = /^53...$/;
const CLASS_SYSTEM = /^58...$/;

/** Codes of sockets and name servers. Errors of a TLS handshake are not among them: waiting does not repair those. */
const NETWORK = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "ENETDOWN",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ENOENT",
]);

/** The driver's messages for a connection that was lost or could not be made in time; it gives them no codes. */
const DRIVER = [
  "Connection terminated",
  "Client has encountered a connection error",
  "Client was closed",
  "timeout exceeded when trying to connect",
  "timeout expired",
  "Query read timeout",
  "Cannot use a pool after calling end",
];

/** True if the transaction may succeed when it is run again: a serialization failure or a deadlock. */
export function lostRace(error: unknown): boolean {
  return LOST_RACE.has(codeOf(error));
}

/** The shortage of the server that caused an error. Null: the error has another cause. */
export function shortageOf(error: unknown): Shortage | null {
  const code = codeOf(error);
  if (SERVER_AWAY.has(code)) return null;
  return SHORTAGES[code] ?? (CLASS_LIMITS.test(code) ? "limit_reached" : CLASS_SYSTEM.test(code) ? "io_error" : null);
}

/** True if the server cannot be reached. Then it is unknown whether a running statement took effect. */
export function isAway(error: unknown): boolean {
  if (error instanceof UnavailableError) return !(error instanceof ShortageError);
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  if (SERVER_AWAY.has(code) || NETWORK.has(code) || CLASSES_AWAY.test(code)) return true;
  if (error instanceof AggregateError) return error.errors.some(isAway);
  return DRIVER.some((words) => error.message.startsWith(words));
}

/**
 * An error as callers see it: `UnavailableError` with its cause if the server cannot be reached, `ShortageError` if it
 * lacks something, else the same error.
 */
export function translated(error: unknown): unknown {
  if (error instanceof UnavailableError) return error;
  const shortage = shortageOf(error);
  if (shortage !== null) return new ShortageError(shortage, { cause: error });
  if (!isAway(error)) return error;
  const why = reasonOf(error);
  return new UnavailableError(`the database does not answer${why === "" ? "" : `: ${why}`}`, { cause: error });
}

function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(reasonOf).join("; ");
  if (!(error instanceof Error)) return "";
  return error.message.includes("unsupported startup parameter")
    ? `${error.message}: ${IGNORE_PARAMETERS}`
    : error.message;
}

/** PgBouncer refuses connections that ask for settings which its own configuration does not ignore. */
const IGNORE_PARAMETERS =
  "set ignore_startup_parameters = statement_timeout, idle_in_transaction_session_timeout in the pooler's " +
  "configuration, and these two settings by alter database";

function codeOf(error: unknown): string {
  const code = error instanceof Error ? (error as { readonly code?: unknown }).code : undefined;
  return typeof code === "string" ? code : "";
}
