/** Turns what a call throws into what a view says. */
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../../src/gen/google/rpc/error_details_pb.ts";

export type CallFailed = {
  /**
   * `forbidden`: the caller lacks a permission. `signedOut`: the service does not know the caller. `missing`: the thing
   * does not exist. `away`: the service could not be reached, or asks to repeat the call.
   */
  readonly kind: "forbidden" | "signedOut" | "missing" | "away" | "other";
  /** The service's own sentence. */
  readonly message: string;
  /** Empty: the service did not answer. */
  readonly requestId: string;
  /** Of a permission that the caller lacks. Empty: the service did not say. */
  readonly permission: string;
  readonly scope: string;
};

const REQUEST_ID = "x-request-id";

export function callFailed(cause: unknown): CallFailed {
  const error = ConnectError.from(cause);
  const [info] = error.findDetails(ErrorInfoSchema);
  const requestId = error.metadata.get(REQUEST_ID) ?? "";
  const { permission = "", scope = "" } = info?.metadata ?? {};
  const kind = kindOf(error.code, requestId);
  const message = kind === "away" && requestId === "" ? "The service does not answer." : error.rawMessage;
  return { kind, message, requestId, permission, scope };
}

function kindOf(code: Code, requestId: string): CallFailed["kind"] {
  switch (code) {
    case Code.PermissionDenied:
      return "forbidden";
    case Code.Unauthenticated:
      return "signedOut";
    case Code.NotFound:
      return "missing";
    case Code.Unavailable:
    case Code.DeadlineExceeded:
    case Code.ResourceExhausted:
      return "away";
    // A connection that breaks has no code of its own.
    case Code.Unknown:
      return requestId === "" ? "away" : "other";
    default:
      return "other";
  }
}

/** True for failures that another try can mend. */
export function isPassing(cause: unknown): boolean {
  return callFailed(cause).kind === "away";
}
