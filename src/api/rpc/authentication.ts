/**
 * The one place where calls are authenticated before their messages are read. Calls beyond the limits of their caller
 * end here too. `until-refused.ts` judges callers again while their streams run.
 */
import {
  type Metadata,
  ResponderBuilder,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  ServerListenerBuilder,
  status,
} from "@grpc/grpc-js";
import type { CallPlace, LimitCalls, LimitedCall } from "../../core/access/call-limits.ts";
import type { Authenticate, Authentication, Credentials, Identity } from "../../core/access/identity.ts";
import { invariant } from "../../runtime/assert.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { FairStart, FairTask } from "../../runtime/fair-start.ts";
import { Semaphore } from "../../runtime/semaphore.ts";
import { type Soon, whenThere } from "../../runtime/soon.ts";
import type { ConnectionInfo } from "../peer-certificates.ts";
import { boundDecompression, DECOMPRESSED_AT_A_TIME } from "./decompression.ts";
import { limitedCall } from "./limited-call.ts";
import { type OnInternalError, toStatus, unauthenticated } from "./rpc-error.ts";

/** A caller, with what it has shown. */
export type Caller = {
  readonly identity: Identity;
  readonly credentials: Credentials;
  /** Its handler keeps the place, and gives it back when it has ended. */
  readonly keepPlace: () => CallPlace;
};

export type AuthenticationOptions = {
  readonly authenticate: Authenticate;
  readonly limits: LimitCalls;
  readonly clock: Pick<Clock, "sleep">;
  /** Lets callers take turns before their messages are read. */
  readonly starts: FairStart;
  /** The certificate that the client of a connection has shown. */
  readonly certificateOf: (connection: ConnectionInfo) => Credentials["certificate"];
  readonly onInternalError: OnInternalError;
  /** The most bytes of a message. */
  readonly messageBytesMax: number;
  /** Called for each call that is refused. */
  readonly onRefused: (method: string) => void;
};

const HEADER = "authorization";
const NO_CREDENTIALS: Credentials = { authorization: [], certificate: null };

/** Callers by the metadata of their calls, which handlers get as well. */
const callers = new WeakMap<Metadata, Caller>();

/** The caller of a call that `authenticationInterceptor` has let through. */
export function callerOf(metadata: Metadata): Caller {
  const caller = callers.get(metadata);
  if (caller === undefined) throw new Error("the call was not authenticated");
  return caller;
}

/**
 * Lets calls through whose caller is known and within its limits, each in its caller's turn. Answers others with
 * UNAUTHENTICATED or RESOURCE_EXHAUSTED. Handlers see no credential.
 */
export function authenticationInterceptor(options: AuthenticationOptions): ServerInterceptor {
  const { messageBytesMax: bytesMax, onInternalError } = options;
  const turns = new Semaphore(DECOMPRESSED_AT_A_TIME);
  return (method, call) => {
    const held = heldUntilStatus(call);
    const ahead = new PaidAhead();
    const pay = async (bytes: number) => {
      const { subject } = ahead.caller;
      const beyond = await ahead.pay(bytes);
      if (beyond !== null) await refusedLater(beyond, { subject, held, clock: options.clock });
    };
    boundDecompression(call, { bytesMax, isStream: method.requestStream, pay, turns, onInternalError });
    const enter = (metadata: Metadata): Soon<void> => {
      const shown = { certificate: options.certificateOf(call.getConnectionInfo()) };
      const pays = (identity: Identity, place: CallPlace) => ahead.of(identity, place);
      return enterCall(metadata, shown, { method, held, pays }, options);
    };
    const refuse = (cause: unknown) => {
      const failure = toStatus(cause, options.onInternalError);
      call.sendStatus({ code: status.UNKNOWN, details: failure.message, ...failure });
    };
    const receive = (metadata: Metadata, next: (metadata: Metadata) => void): void => {
      let entered: Soon<void>;
      try {
        entered = enter(metadata);
      } catch (cause) {
        refuse(cause);
        return;
      }
      if (entered instanceof Promise) entered.then(() => next(metadata), refuse);
      else next(metadata);
    };
    const listener = new ServerListenerBuilder().withOnReceiveMetadata(receive).withOnCancel(held.end).build();
    return new ServerInterceptingCall(call, new ResponderBuilder().withStart((next) => next(listener)).build());
  };
}

/** A method of a service: its path begins with a slash. */
type Method = Pick<Parameters<ServerInterceptor>[0], "path" | "responseStream">;

export type EnteringCall = {
  readonly method: Method;
  /** Keeps the call's place until its handler keeps it. */
  readonly held: HeldPlace;
  /** The place that the handler gets, which may have been paid for in part. */
  readonly pays: (identity: Identity, place: CallPlace) => CallPlace;
};

export type EnteringOptions = Omit<AuthenticationOptions, "certificateOf" | "messageBytesMax" | "onInternalError">;

/**
 * Lets a call in whose caller is known and within its limits, in its caller's turn; `callerOf` then knows the caller of
 * this metadata, which loses its credentials. Throws UNAUTHENTICATED or RESOURCE_EXHAUSTED, perhaps later.
 */
export function enterCall(
  metadata: Metadata,
  shown: Omit<Credentials, "authorization">,
  { method, held, pays }: EnteringCall,
  options: EnteringOptions,
): Soon<void> {
  const credentials = { ...shown, authorization: metadata.get(HEADER).map(String) };
  metadata.remove(HEADER);
  return whenThere(identify(credentials, method, options), (identity) =>
    whenThere(admit(identity, { method, held }, options), (place) => {
      const kept = identity.method === "anonymous" ? NO_CREDENTIALS : credentials;
      const paying = pays(identity, place);
      callers.set(metadata, { identity, credentials: kept, keepPlace: () => held.keep(paying) });
    }),
  );
}

/** Throws UNAUTHENTICATED, perhaps later, if the caller is not known. */
function identify(
  credentials: Credentials,
  { path }: Pick<Method, "path">,
  { authenticate, onRefused }: Pick<AuthenticationOptions, "authenticate" | "onRefused">,
): Soon<Identity> {
  const known = (answer: Authentication): Identity => {
    if (answer.kind === "identity") return answer.identity;
    onRefused(path);
    throw unauthenticated(answer.why);
  };
  const answer = authenticate(credentials);
  if (!(answer instanceof Promise)) return known(answer);
  return answer.then(known, (cause: unknown) => {
    onRefused(path);
    throw cause;
  });
}

/** Waits for the caller's turn. Throws RESOURCE_EXHAUSTED, perhaps later, if it is at its limits. */
function admit(
  identity: Identity,
  { method, held }: { readonly method: Method; readonly held: HeldPlace },
  { limits, starts, clock }: Pick<AuthenticationOptions, "limits" | "starts" | "clock">,
): Soon<CallPlace> {
  const { subject } = identity;
  const begun = (place: CallPlace, task: FairTask): CallPlace => {
    if (!task.runs) return place;
    const running = { ...place, leave: leaveOnce(place, () => starts.end(task)) };
    held.hold(running);
    return running;
  };
  return whenThere(limits.enter(identity, method.path.slice(1)), (place) => {
    if (place.kind === "limited") return refusedLater(place, { subject, held, clock });
    held.hold(place);
    const task = { caller: subject, runs: place.isLimited && !method.responseStream };
    return whenThere(starts.turn(task), () => begun(place, task));
  });
}

async function refusedLater(
  limited: LimitedCall,
  {
    subject,
    held,
    clock,
  }: Pick<AuthenticationOptions, "clock"> & { readonly subject: string; readonly held: HeldPlace },
): Promise<never> {
  if (limited.heldMs > 0) await clock.sleep(limited.heldMs, held.untilEnded());
  throw limitedCall(limited, subject);
}

/** The bytes that a call has paid for before its handler got them. */
class PaidAhead {
  #admitted: { readonly caller: Identity; readonly place: CallPlace } | null = null;
  #bytes = 0;

  /** Messages are read once their caller is admitted. */
  get caller(): Identity {
    invariant(this.#admitted !== null, "a message is read after its caller was admitted");
    return this.#admitted.caller;
  }

  /** The place of a call whose handler pays only for the other bytes. */
  of(caller: Identity, place: CallPlace): CallPlace {
    this.#admitted = { caller, place };
    return { ...place, pay: (bytes) => place.pay(Math.max(bytes - this.#bytes, 0)) };
  }

  pay(bytes: number): Soon<LimitedCall | null> {
    this.#bytes += bytes;
    return this.#admitted?.place.pay(bytes) ?? null;
  }
}

function leaveOnce({ leave }: CallPlace, ended: () => void): () => void {
  let runs = true;
  return () => {
    leave();
    if (runs) ended();
    runs = false;
  };
}

/** The place of a call until its handler keeps it. */
export type HeldPlace = {
  readonly hold: (entered: CallPlace) => void;
  readonly keep: (entered: CallPlace) => CallPlace;
  /** Gives the place back, unless the handler keeps it. */
  readonly end: () => void;
  /** Aborted once the call has ended. */
  readonly untilEnded: () => AbortSignal;
};

/** The place of a call of grpc-js, which gives it back when it ends. */
function heldUntilStatus(call: ServerInterceptingCallInterface): HeldPlace {
  const held = heldPlace();
  // grpc-js sends its own errors through this call, past the responder of an interceptor.
  const send = call.sendStatus.bind(call);
  call.sendStatus = (sent) => {
    held.end();
    send(sent);
  };
  return held;
}

/** Gives the place of a call back if `end` is called before its handler keeps the place. */
export function heldPlace(): HeldPlace {
  let place: CallPlace | null = null;
  let ended = false;
  let left: AbortController | null = null;
  const end = () => {
    ended = true;
    place?.leave();
    left?.abort("ended");
  };
  const hold = (entered: CallPlace) => {
    if (ended) entered.leave();
    else place = entered;
  };
  const keep = (entered: CallPlace) => {
    place = null;
    return entered;
  };
  const untilEnded = () => {
    left = new AbortController();
    if (ended) left.abort("ended");
    return left.signal;
  };
  return { hold, keep, end, untilEnded };
}
