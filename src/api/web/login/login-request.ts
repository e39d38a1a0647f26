/** A request of a login, and its answer. */
import type { Logins } from "../../ports.ts";
import type { WebResponse } from "../answers.ts";
import type { WebRequest } from "../read-request.ts";

export type LoginRequest = {
  readonly logins: Logins;
  readonly request: WebRequest;
  readonly response: WebResponse;
  readonly path: string;
  /** Empty, or `?` and what follows. */
  readonly search: string;
  /** The other end of the call. */
  readonly peer: string;
  /** Aborted once the browser has left, or has its answer. */
  readonly left: AbortSignal;
  /** True: the client waits for "100 Continue" before it sends the body. */
  readonly continues: boolean;
  /** True: the browser uses https. */
  readonly isSecure: boolean;
};

/** A text is shown as it is; anything else is JSON. */
export type LoginAnswer = {
  readonly status?: number;
  readonly body: string | object;
  /** Where the browser goes. */
  readonly location?: string;
  readonly cookies?: readonly string[];
};
