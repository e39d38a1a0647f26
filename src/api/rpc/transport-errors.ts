import { type ServerInterceptor, status } from "@grpc/grpc-js";
import { toStatus, undecodable } from "./rpc-error.ts";

/** Mistakes of a caller that grpc-js answers with INTERNAL before any handler sees the call. */
const CALLER_MISTAKES = ["Invalid grpc-timeout value", "Failed to decompress message"];

/**
 * Answers INVALID_ARGUMENT to a request that the transport cannot read: its timeout is no timeout, or its message is
 * not compressed as it says. INTERNAL means a defect of the service. `interceptor` gets the call then.
 */
export function refusingUnreadable(interceptor: ServerInterceptor): ServerInterceptor {
  return (method, call) => {
    // grpc-js sends its own errors through the innermost call, which is this one; the responder of an interceptor sees
    // only those of handlers.
    const send = call.sendStatus.bind(call);
    call.sendStatus = (sent) => {
      const text = sent.details ?? "";
      const mistaken = sent.code === status.INTERNAL && CALLER_MISTAKES.some((mistake) => text.startsWith(mistake));
      send(mistaken ? { ...sent, ...toStatus(undecodable(text), () => {}) } : sent);
    };
    return interceptor(method, call);
  };
}
