import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AllocateResourceRequest,
  type AllocateResourceRequestSchema,
  RenewResult_Outcome,
  ResourceManager,
} from "../../gen/gangway/v1/resource_manager_pb.ts";
import { aborted } from "../../runtime/aborted.ts";
import { CallError } from "../rpc/call-error.ts";
import type { CallBounds } from "../rpc/client.ts";
import { retryDelayMs } from "../rpc/rpc-failure.ts";
import type { Run } from "../run/run-command.ts";
import type { ChildProgram } from "../shell/deps.ts";
import { EXIT } from "../shell/exit.ts";

/** An AllocateResourceRequest, or a WaitForResourceRequest, which has the same fields. */
export type HeldTokenRequest = Pick<AllocateResourceRequest, "resourceNamespace" | "allocationToken"> &
  Omit<MessageInitShape<typeof AllocateResourceRequestSchema>, "$typeName">;

/** A granted token that is renewed while a program runs. */
type RenewedToken = {
  readonly request: HeldTokenRequest;
  /** Null: the token does not expire. */
  readonly leaseMs: number | null;
  /** When the lease began at the earliest, on the monotonic clock: the call that got the token began then. */
  readonly leasedAtMs: number;
  /** True if the token was granted earlier: the rest of its lease is unknown, so it is renewed at once. */
  readonly renewNow: boolean;
};

/** Time between SIGTERM and SIGKILL for a program whose token is lost. */
const KILL_GRACE_MS = 10_000;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 5_000;
const RELEASE_TRIES = 5;
/** The token is renewed after each such part of its lease, and a renewal waits for its answer at most as long. */
const PARTS_OF_LEASE = 3;

/**
 * Renews the token until the program has ended, then releases it. Ends the program if the token is lost, and as soon as
 * its lease is over by this process's own clock: another holder may have the token from then on. Returns the exit
 * status.
 */
export async function holdTokenWhile(run: Run, token: RenewedToken, program: ChildProgram): Promise<number> {
  const { deps } = run;
  const over = new AbortController();
  const ended = program.ended.finally(() => over.abort());
  const loss = await renewUntilLost(run, token, over.signal);
  if (loss !== null) {
    const { allocationToken, resourceNamespace } = token.request;
    const why = loss === "over" ? ": its lease is over, and no renewal was answered" : "";
    deps.stderr(`error: lost token ${allocationToken} of pool ${resourceNamespace}${why}: stopping the program\n`);
    program.signal("SIGTERM");
    await deps.clock.sleep(KILL_GRACE_MS, over.signal);
    if (!over.signal.aborted) program.signal("SIGKILL");
  }
  const exitCode = await ended;
  if (loss !== null) return exitCode === 0 ? EXIT.refused : exitCode;
  await releaseToken(run, token.request);
  return exitCode;
}

/** Returns why the token is lost, or null once `signal` is aborted. */
async function renewUntilLost(run: Run, token: RenewedToken, signal: AbortSignal): Promise<"gone" | "over" | null> {
  const { leaseMs } = token;
  if (leaseMs === null) {
    await aborted(signal);
    return null;
  }
  const renewals = new Renewals(run, { ...token, leaseMs }, signal);
  return renewals.run();
}

/** Renews one token after each third of its lease. */
class Renewals {
  readonly #run: Run;
  readonly #token: RenewedToken & { readonly leaseMs: number };
  readonly #signal: AbortSignal;
  /** When the lease began at the earliest. */
  #leasedAtMs: number;

  constructor(run: Run, token: RenewedToken & { readonly leaseMs: number }, signal: AbortSignal) {
    this.#run = run;
    this.#token = token;
    this.#signal = signal;
    this.#leasedAtMs = token.leasedAtMs;
  }

  async run(): Promise<"gone" | "over" | null> {
    const { clock } = this.#run.deps;
    const { leaseMs, renewNow } = this.#token;
    const partMs = leaseMs / PARTS_OF_LEASE;
    for (let isDue = renewNow; !this.#signal.aborted; isDue = false) {
      if (!isDue) await clock.sleep(Math.max(0, this.#leasedAtMs + partMs - clock.monotonicMs()), this.#signal);
      const outcome = await this.#renewInTime(partMs);
      if (outcome !== "renewed") return outcome;
    }
    return null;
  }

  /** Tries until the token is renewed, gone, or its lease over. After a failed try, the client asks another address. */
  async #renewInTime(partMs: number): Promise<"renewed" | "gone" | "over" | null> {
    const { clock, stderr } = this.#run.deps;
    const { leaseMs, request } = this.#token;
    const pauseMs = Math.min(RETRY_MS_MAX, Math.max(RETRY_MS_MIN, leaseMs / 10));
    for (let tries = 1; !this.#signal.aborted; tries += 1) {
      const startedMs = clock.monotonicMs();
      const leftMs = this.#leasedAtMs + leaseMs - startedMs;
      if (leftMs <= 0) return "over";
      const timeoutMs = Math.min(partMs, leftMs);
      const attempt = await renewOnce(this.#run, request, { timeoutMs, signal: this.#signal });
      if (this.#signal.aborted) return null;
      if (attempt.kind === "lost") return "gone";
      if (attempt.kind === "renewed") {
        this.#leasedAtMs = startedMs;
        return "renewed";
      }
      if (tries === 1) {
        stderr(`warning: cannot renew token ${request.allocationToken}, retrying: ${attempt.reason}\n`);
      }
      // A try that waited for long is followed by the next at once.
      const spentMs = clock.monotonicMs() - startedMs;
      const untilOverMs = this.#leasedAtMs + leaseMs - clock.monotonicMs();
      await clock.sleep(Math.max(0, Math.min(pauseMs - spentMs, untilOverMs)), this.#signal);
    }
    return null;
  }
}

type RenewAttempt =
  | { readonly kind: "renewed" }
  | { readonly kind: "lost" }
  | { readonly kind: "unavailable"; readonly reason: string };

async function renewOnce(run: Run, request: HeldTokenRequest, within: CallBounds): Promise<RenewAttempt> {
  const { resourceNamespace, allocationToken, holder = "", lease } = request;
  const lines = [{ resourceNamespace, allocationToken }];
  try {
    const { results } = await run.client.call(
      ResourceManager.method.renewAllocations,
      { lines, holder, ...(lease === undefined ? {} : { lease }) },
      within,
    );
    return results[0]?.outcome === RenewResult_Outcome.RENEWED ? { kind: "renewed" } : { kind: "lost" };
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    return { kind: "unavailable", reason: error.details };
  }
}

/** Releases a token. Warns after the last failed try: the token's lease ends it then. */
export async function releaseToken(run: Run, request: HeldTokenRequest): Promise<void> {
  const { resourceNamespace, allocationToken, holder = "" } = request;
  for (let tries = 1; ; tries++) {
    try {
      await run.client.call(ResourceManager.method.releaseResource, { resourceNamespace, allocationToken, holder });
      return;
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      const retryAfterMs = retryDelayMs(error);
      if (retryAfterMs === null || tries === RELEASE_TRIES) {
        run.deps.stderr(`warning: token ${allocationToken} could not be released: ${error.details}\n`);
        return;
      }
      await run.deps.clock.sleep(retryAfterMs);
    }
  }
}

/** Returns the lease that a token will get, in milliseconds: the requested one, or the pool's default. Null: none. */
export async function leaseOfToken(run: Run, pool: string, requestedMs: number | undefined): Promise<number | null> {
  if (requestedMs !== undefined) return requestedMs;
  const response = await run.client.call(ResourceManager.method.getPool, { name: pool });
  const lease = response.pool?.defaultLease;
  const defaultMs = lease === undefined ? 0 : Number(lease.seconds) * 1000 + lease.nanos / 1e6;
  return defaultMs === 0 ? null : defaultMs;
}

/** The `lease` field of a request. Omitted: the pool's default lease. */
export function leaseField(leaseMs: number | undefined) {
  return leaseMs === undefined ? {} : { lease: durationFromMs(leaseMs) };
}
