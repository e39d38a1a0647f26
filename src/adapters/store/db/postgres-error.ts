import { UnavailableError } from "../../../runtime/unavailable-error.ts";

/** The transaction lost a race against another one, and may succeed when it is run again. */
const LOST_RACE = new Set(["40001", "40P01"]);

/**
 * The server is stopping, starting, recovering, full or only a replica now, or a statement took too long. Codes of
 * class 08, a broken connection, count too.
 */
const SERVER_AWAY = new Set(["57P01", "57P02", "57P03", "57P05", "53300", "25006", "57014", "25P03"]);

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

/** True if the server cannot be reached. Then it is unknown whether a running statement took effect. */
export function isAway(error: unknown): boolean {
  if (error instanceof UnavailableError) return true;
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  if (SERVER_AWAY.has(code) || NETWORK.has(code) || /^08...$/.test(code)) return true;
  if (error instanceof AggregateError) return error.errors.some(isAway);
  return DRIVER.some((words) => error.message.startsWith(words));
}

/**
 * An error as callers see it: `UnavailableError` with its cause if the server cannot be reached, else the same error.
 */
export function translated(error: unknown): unknown {
  if (error instanceof UnavailableError || !isAway(error)) return error;
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

/** PgBouncer refuses connections that ask for settings, unless it is told to ignore them. */
const IGNORE_PARAMETERS =
  "set ignore_startup_parameters = statement_timeout, idle_in_transaction_session_timeout in the pooler's " +
  "configuration, and these two settings by alter database";

function codeOf(error: unknown): string {
  const code = error instanceof Error ? (error as { readonly code?: unknown }).code : undefined;
  return typeof code === "string" ? code : "";
}
