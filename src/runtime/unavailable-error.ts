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
