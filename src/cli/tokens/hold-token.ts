import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AllocateResourceRequest,
  type AllocateResourceRequestSchema,
  RenewResult_Outcome,
  ResourceManager,
} from "../../gen/gangway/v1/resource_manager_pb.ts";
import type { ChildProgram } from "../deps.ts";
import { EXIT } from "../exit.ts";
import { CallError } from "../rpc/call-error.ts";
import { retryDelayMs } from "../rpc/rpc-failure.ts";
import type { Run } from "../run-command.ts";

/** An AllocateResourceRequest, or a WaitForResourceRequest, which has the same fields. */
export type HeldTokenRequest = Pick<AllocateResourceRequest, "resourceNamespace" | "allocationToken"> &
  Omit<MessageInitShape<typeof AllocateResourceRequestSchema>, "$typeName">;

/** A granted token that is renewed while a program runs. */
type RenewedToken = {
  readonly request: HeldTokenRequest;
  /** Null: the token does not expire. */
  readonly leaseMs: number | null;
  /** True if the token was granted earlier: the rest of its lease is unknown, so it is renewed at once. */
  readonly renewNow: boolean;
};

/** Time between SIGTERM and SIGKILL for a program whose token is lost. */
const KILL_GRACE_MS = 10_000;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 5_000;
const RELEASE_TRIES = 5;

/**
 * Renews the token until the program has ended, then releases it. Ends the program if the token is lost. Returns the
 * exit status.
 */
export async function holdTokenWhile(run: Run, token: RenewedToken, program: ChildProgram): Promise<number> {
  const { deps } = run;
  const over = new AbortController();
  const ended = program.ended.finally(() => over.abort());
  const isLost = await renewUntilLost(run, token, over.signal);
  if (isLost) {
    const { allocationToken, resourceNamespace } = token.request;
    deps.stderr(`error: lost token ${allocationToken} of pool ${resourceNamespace}: stopping the program\n`);
    program.signal("SIGTERM");
    await deps.clock.sleep(KILL_GRACE_MS, over.signal);
    if (!over.signal.aborted) program.signal("SIGKILL");
  }
  const exitCode = await ended;
  if (isLost) return exitCode === 0 ? EXIT.refused : exitCode;
  await releaseToken(run, token.request);
  return exitCode;
}

/** Renews after each third of the lease. Returns true when the token is lost, false once `signal` is aborted. */
async function renewUntilLost(run: Run, token: RenewedToken, signal: AbortSignal): Promise<boolean> {
  const { leaseMs, request } = token;
  if (leaseMs === null) {
    await aborted(signal);
    return false;
  }
  const pausesMs = {
    renewed: leaseMs / 3,
    unavailable: Math.min(RETRY_MS_MAX, Math.max(RETRY_MS_MIN, leaseMs / 10)),
  };
  let previous: RenewAttempt["kind"] = "renewed";
  await run.deps.clock.sleep(token.renewNow ? 0 : pausesMs.renewed, signal);
  while (!signal.aborted) {
    const attempt = await renewOnce(run, request);
    if (attempt.kind === "lost") return true;
    if (previous === "renewed" && attempt.kind === "unavailable") {
      const { allocationToken } = request;
      run.deps.stderr(`warning: cannot renew token ${allocationToken}, retrying: ${attempt.reason}\n`);
    }
    previous = attempt.kind;
    await run.deps.clock.sleep(pausesMs[attempt.kind], signal);
  }
  return false;
}

type RenewAttempt = { readonly kind: "renewed" | "lost" } | { readonly kind: "unavailable"; readonly reason: string };

async function renewOnce(run: Run, request: HeldTokenRequest): Promise<RenewAttempt> {
  const { resourceNamespace, allocationToken, holder = "", lease } = request;
  const lines = [{ resourceNamespace, allocationToken }];
  try {
    const { results } = await run.client.call(ResourceManager.method.renewAllocations, {
      lines,
      holder,
      ...(lease === undefined ? {} : { lease }),
    });
    return { kind: results[0]?.outcome === RenewResult_Outcome.RENEWED ? "renewed" : "lost" };
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    return { kind: "unavailable", reason: error.details };
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
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
