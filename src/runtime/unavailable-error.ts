/** Something that a request needs is away for now (closed, stopping, not connected): asking again later may succeed. */
export class UnavailableError extends Error {
  override readonly name = "UnavailableError";
}
