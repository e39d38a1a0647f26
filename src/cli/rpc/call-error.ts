/** The numbers of gRPC's statuses, by name: https://grpc.github.io/grpc/core/md_doc_statuscodes.html */
export const STATUS = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

/** A call that did not succeed. */
export class CallError extends Error {
  override readonly name = "CallError";
  /** A number of `STATUS`, or another one that the service sent. */
  readonly code: number;
  /** The message of the status. */
  readonly details: string;
  /** The encoded google.rpc.Status. Null: the service sent none. */
  readonly encodedStatus: Uint8Array | null;
  /** True if the service may have received the request. */
  readonly isSent: boolean;
  /** Node's code for why there is no connection. Empty: there is one, or no code. */
  readonly reasonCode: string;
  /** Lines that say what to do. Empty: nothing is known. */
  remedy: readonly string[] = [];

  constructor(
    code: number,
    details: string,
    {
      encodedStatus = null,
      isSent = true,
      reasonCode = "",
    }: { encodedStatus?: Uint8Array | null; isSent?: boolean; reasonCode?: string } = {},
  ) {
    super(`${codeName(code)}: ${details}`);
    this.code = code;
    this.details = details;
    this.encodedStatus = encodedStatus;
    this.isSent = isSent;
    this.reasonCode = reasonCode;
  }
}

/** The name of a status, such as NOT_FOUND. */
export function codeName(code: number): string {
  return Object.entries(STATUS).find(([, number]) => number === code)?.[0] ?? `code ${code}`;
}

/** True for a call that failed because its object does not exist. */
export function isNotFound(error: unknown): error is CallError {
  return error instanceof CallError && error.code === STATUS.NOT_FOUND;
}
