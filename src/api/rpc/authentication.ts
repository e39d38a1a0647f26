/** The one place where calls are authenticated: before their messages are read, and again while their streams run. */
import {
  type Metadata,
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptor,
  ServerListenerBuilder,
  status,
} from "@grpc/grpc-js";
import { ANONYMOUS, type Authenticate, type Credentials, type Identity } from "../../core/access/identity.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ConnectionInfo } from "../peer-certificates.ts";
import { type OnInternalError, toStatus, unauthenticated } from "./rpc-error.ts";

/** A caller, with what it has shown. */
export type Caller = { readonly identity: Identity; readonly credentials: Credentials };

export type AuthenticationOptions = {
  readonly authenticate: Authenticate;
  /** The certificate that the client of a connection has shown. */
  readonly certificateOf: (connection: ConnectionInfo) => Credentials["certificate"];
  readonly onInternalError: OnInternalError;
  /** Called for each call that is refused. */
  readonly onRefused: (method: string) => void;
};

const HEADER = "authorization";
/** A stream whose credential was withdrawn ends at most this much later than a new call is refused. */
const LOOK_AGAIN_MS = 5_000;
const NOBODY: Caller = { identity: ANONYMOUS, credentials: { authorization: [], certificate: null } };

/** Callers by the metadata of their calls, which handlers get as well. */
const callers = new WeakMap<Metadata, Caller>();

/** The caller of a call that `authenticationInterceptor` has let through. */
export function callerOf(metadata: Metadata): Caller {
  const caller = callers.get(metadata);
  if (caller === undefined) throw new Error("the call was not authenticated");
  return caller;
}

/** Lets calls through whose caller is known, and answers others with UNAUTHENTICATED. Handlers see no credential. */
export function authenticationInterceptor(options: AuthenticationOptions): ServerInterceptor {
  return (method, call) => {
    const receive = async (metadata: Metadata, next: (metadata: Metadata) => void): Promise<void> => {
      const certificate = options.certificateOf(call.getConnectionInfo());
      const credentials = { authorization: metadata.get(HEADER).map(String), certificate };
      metadata.remove(HEADER);
      try {
        const answer = await options.authenticate(credentials);
        if (answer.kind === "refused") throw unauthenticated(answer.why);
        const { identity } = answer;
        callers.set(metadata, identity.method === "anonymous" ? NOBODY : { identity, credentials });
      } catch (cause) {
        options.onRefused(method.path);
        const failure = toStatus(cause, options.onInternalError);
        call.sendStatus({ code: status.UNKNOWN, details: failure.message, ...failure });
        return;
      }
      next(metadata);
    };
    const listener = new ServerListenerBuilder()
      .withOnReceiveMetadata((metadata, next) => void receive(metadata, next))
      .build();
    return new ServerInterceptingCall(call, new ResponderBuilder().withStart((next) => next(listener)).build());
  };
}

/**
 * Resolves with the reason once the caller's credential does not count any more, or with null when the signal is
 * aborted. A part that is away ends no stream: its caller was known a moment ago.
 */
export async function untilRefused(
  { identity, credentials }: Caller,
  { authenticate, clock }: { readonly authenticate: Authenticate; readonly clock: Pick<Clock, "sleep"> },
  signal: AbortSignal,
): Promise<string | null> {
  if (identity.method === "anonymous") return null;
  while (!signal.aborted) {
    await clock.sleep(LOOK_AGAIN_MS, signal);
    if (signal.aborted) break;
    const answer = await authenticate(credentials).catch(() => null);
    if (answer?.kind === "refused") return answer.why;
  }
  return null;
}
