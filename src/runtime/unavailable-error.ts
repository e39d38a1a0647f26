/** A part that a request needs is closed, stopping or not connected. A later attempt may succeed. */
export class UnavailableError extends Error {
  override readonly name = "UnavailableError";
}
