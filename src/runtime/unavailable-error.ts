/** A part that a request needs is closed, stopping or not connected. A later attempt may succeed. */
export class UnavailableError extends Error {
  override readonly name: string = "UnavailableError";
  /** The reason that a client sees. */
  readonly reason: string = "STORE_UNAVAILABLE";
}

/** Another call takes or gives back the same token at this moment. No store is away; a later attempt succeeds. */
export class TokenContendedError extends UnavailableError {
  override readonly name = "TokenContendedError";
  override readonly reason = "TOKEN_CONTENDED";
}

/** An issuer of tokens is away, and none of its keys are known. */
export class IssuerUnavailableError extends UnavailableError {
  override readonly name = "IssuerUnavailableError";
  override readonly reason = "ISSUER_UNAVAILABLE";
}

/** What a database lacks: room on its disk, memory, a limit of its configuration, or files that it can use. */
export type Shortage = "disk_full" | "out_of_memory" | "limit_reached" | "io_error";

const SHORTAGE_WORDS: Readonly<Record<Shortage, string>> = {
  disk_full: "its disk is full",
  out_of_memory: "it is out of memory",
  limit_reached: "it has reached a limit of its configuration",
  io_error: "it cannot use its files",
};

/** The database answers, but cannot do what was asked for lack of something. It has changed nothing. */
export class ShortageError extends UnavailableError {
  override readonly name = "ShortageError";
  readonly shortage: Shortage;
  /** What an operator reads. */
  readonly words: string;

  /** `advice`: what to do once the shortage is over. Omitted: nothing, it continues by itself. */
  constructor(shortage: Shortage, { advice, ...options }: ErrorOptions & { readonly advice?: string } = {}) {
    const words = `${shortageWords(shortage)}${advice === undefined ? "" : `; ${advice}`}`;
    super(`the database cannot do this now: ${words}`, options);
    this.shortage = shortage;
    this.words = words;
  }
}

export function shortageWords(shortage: Shortage): string {
  return SHORTAGE_WORDS[shortage];
}

/**
 * True if each request that shared the failed work would fail by itself too. False for a lack of memory: one request
 * may be the cause.
 */
export function wouldFailAlone(error: unknown): boolean {
  const isOfOne = error instanceof ShortageError && error.shortage === "out_of_memory";
  return error instanceof UnavailableError && !isOfOne;
}
