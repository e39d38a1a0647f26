import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AllocateResourceRequest,
  type AllocateResourceRequestSchema,
  RenewResult_Outcome as Renewal,
  ResourceManager,
} from "../gen/gangway/v1/resource_manager_pb.ts";
import type { Program } from "./deps.ts";
import { EXIT } from "./exit.ts";
import { isServiceError, retryDelayMs } from "./rpc-failure.ts";
import type { Run } from "./shell.ts";

/** An AllocateResourceRequest, or a WaitForResourceRequest, which has the same fields. */
export type TokenRequest = Pick<AllocateResourceRequest, "resourceNamespace" | "allocationToken"> &
  Omit<MessageInitShape<typeof AllocateResourceRequestSchema>, "$typeName">;

/** What is held while a program runs. */
export type HeldToken = {
  readonly request: TokenRequest;
  /** Null: it does not lapse. */
  readonly leaseMs: number | null;
  /** It was granted before: nobody knows how much of its lease is left. */
  readonly renewNow: boolean;
};

/** Between the request to end and the end by force, of a program whose token is lost. */
const KILL_GRACE_MS = 10_000;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 5_000;
const RELEASE_TRIES = 5;

/** Renews the token until the program has ended, then releases it; ends the program if the token is lost. Returns the exit status. */
export async function holdWhile(run: Run, held: HeldToken, program: Program): Promise<number> {
  const { deps } = run;
  const over = new AbortController();
  const ended = program.ended.finally(() => over.abort());
  const isLost = await renewUntil(run, held, over.signal);
  if (isLost) {
    const { allocationToken, resourceNamespace } = held.request;
    deps.stderr(`error: lost token ${allocationToken} of pool ${resourceNamespace}: the program is ended\n`);
    program.signal("SIGTERM");
    await deps.clock.sleep(KILL_GRACE_MS, over.signal);
    if (!over.signal.aborted) program.signal("SIGKILL");
  }
  const exitCode = await ended;
  if (isLost) return exitCode === 0 ? EXIT.refused : exitCode;
  await giveBack(run, held.request);
  return exitCode;
}

/** Renews at a third of the lease; true as soon as the token is lost, false once the signal is aborted. */
async function renewUntil(run: Run, held: HeldToken, over: AbortSignal): Promise<boolean> {
  const { leaseMs, request } = held;
  if (leaseMs === null) {
    await aborted(over);
    return false;
  }
  const pausesMs = {
    renewed: leaseMs / 3,
    away: Math.min(RETRY_MS_MAX, Math.max(RETRY_MS_MIN, leaseMs / 10)),
  };
  let before: Renewed["kind"] = "renewed";
  await run.deps.clock.sleep(held.renewNow ? 0 : pausesMs.renewed, over);
  while (!over.aborted) {
    const answer = await renewOnce(run, request);
    if (answer.kind === "lost") return true;
    if (before === "renewed") warn(run, request, answer);
    before = answer.kind;
    await run.deps.clock.sleep(pausesMs[answer.kind], over);
  }
  return false;
}

function warn({ deps }: Run, { allocationToken }: TokenRequest, answer: Renewed): void {
  if (answer.kind !== "away") return;
  deps.stderr(`warning: token ${allocationToken} cannot be renewed for now: ${answer.why}\n`);
}

type Renewed = { readonly kind: "renewed" | "lost" } | { readonly kind: "away"; readonly why: string };

async function renewOnce(run: Run, request: TokenRequest): Promise<Renewed> {
  const { resourceNamespace, allocationToken, holder = "", lease } = request;
  const sent = { lines: [{ resourceNamespace, allocationToken }], holder, ...(lease === undefined ? {} : { lease }) };
  try {
    const { results } = await run.client.call(ResourceManager.method.renewAllocations, sent);
    return { kind: results[0]?.outcome === Renewal.RENEWED ? "renewed" : "lost" };
  } catch (error) {
    if (!isServiceError(error)) throw error;
    return { kind: "away", why: error.details };
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Releases a token; where that does not succeed for a while, its lease does it. */
export async function giveBack(run: Run, request: TokenRequest): Promise<void> {
  const { resourceNamespace, allocationToken, holder = "" } = request;
  for (let tries = 1; ; tries++) {
    try {
      await run.client.call(ResourceManager.method.releaseResource, { resourceNamespace, allocationToken, holder });
      return;
    } catch (error) {
      if (!isServiceError(error)) throw error;
      const retryAfterMs = retryDelayMs(error);
      if (retryAfterMs === null || tries === RELEASE_TRIES) {
        run.deps.stderr(`warning: token ${allocationToken} could not be released: ${error.details}\n`);
        return;
      }
      await run.deps.clock.sleep(retryAfterMs);
    }
  }
}

/** The lease that a token will have, in milliseconds; null: none. */
export async function leaseOf(run: Run, pool: string, askedMs: number | undefined): Promise<number | null> {
  if (askedMs !== undefined) return askedMs;
  const { pool: found } = await run.client.call(ResourceManager.method.getPool, { name: pool });
  const lease = found?.defaultLease;
  const defaultMs = lease === undefined ? 0 : Number(lease.seconds) * 1000 + lease.nanos / 1e6;
  return defaultMs === 0 ? null : defaultMs;
}

export function leaseField(leaseMs: number | undefined) {
  return leaseMs === undefined ? {} : { lease: durationFromMs(leaseMs) };
}
