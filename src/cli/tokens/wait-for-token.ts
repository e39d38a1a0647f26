import {
  type AllocateResourceResponse,
  type LinePosition,
  ResourceManager,
} from "../../gen/gangway/v1/resource_manager_pb.ts";
import { abortAfter } from "../../runtime/abort-after.ts";
import { linkedController } from "../../runtime/linked-controller.ts";
import { violationText } from "../output/quota-text.ts";
import { CallError, STATUS } from "../rpc/call-error.ts";
import { retryDelayMs } from "../rpc/rpc-failure.ts";
import type { Run } from "../run/run-command.ts";
import { type HeldTokenRequest, releaseToken } from "./hold-token.ts";

const RETRY_MS = 1000;
/** A restart takes less than this. After a longer outage the wait fails. */
const OUTAGE_MS_MAX = 60_000;
/** A stream that was open for longer has worked, also if it told nothing: a position is told when it changes. */
const STEADY_MS = 60_000;

type TokenWaitOutcome =
  | { readonly kind: "granted"; readonly response: AllocateResourceResponse }
  | { readonly kind: "timedOut" | "interrupted" };

/**
 * Waits in a pool's waiting line until the token is granted, the timeout has passed, or the signal is aborted. Prints
 * each change of its position on stderr. Joins the line again if a server restarts. Releases a token that was granted
 * while it left the line.
 */
export async function waitForToken(
  run: Run,
  request: HeldTokenRequest,
  options: { readonly timeoutMs: number | null; readonly signal: AbortSignal },
): Promise<TokenWaitOutcome> {
  const { clock } = run.deps;
  using over = linkedController(options.signal);
  const timedOut = abortAfter(clock, options.timeoutMs, over);
  try {
    const response = await waitUntilGranted(run, request, over.signal);
    if (response !== null) return { kind: "granted", response };
  } finally {
    over.abort();
  }
  await releaseToken(run, request);
  return { kind: timedOut() ? "timedOut" : "interrupted" };
}

/** Returns null once the signal is aborted. */
async function waitUntilGranted(run: Run, request: HeldTokenRequest, signal: AbortSignal) {
  const { clock } = run.deps;
  const printPosition = positionPrinter(run);
  let workedMs = Number.NEGATIVE_INFINITY;
  const onPosition = (position: LinePosition) => {
    workedMs = clock.monotonicMs();
    printPosition(position);
  };
  while (!signal.aborted) {
    const openedMs = clock.monotonicMs();
    try {
      const response = await waitOnce(run, request, { signal, onPosition });
      if (response !== null) return response;
      await clock.sleep(RETRY_MS, signal);
    } catch (error) {
      if (signal.aborted) return null;
      const nowMs = clock.monotonicMs();
      if (nowMs - openedMs > STEADY_MS) workedMs = nowMs;
      await clock.sleep(retryPauseMs(error, nowMs - workedMs), signal);
    }
  }
  return null;
}

/** Makes one call; returns null if its stream ends without a grant. */
async function waitOnce(
  run: Run,
  request: HeldTokenRequest,
  { signal, onPosition }: { readonly signal: AbortSignal; readonly onPosition: (position: LinePosition) => void },
) {
  for await (const { update } of run.client.stream(ResourceManager.method.waitForResource, request, signal)) {
    if (update.case === "granted") return update.value;
    if (update.case === "position") onPosition(update.value);
  }
  return null;
}

/** Throws the error if a retry cannot help, or if the service has been away for too long. */
function retryPauseMs(error: unknown, outageMs: number): number {
  if (!(error instanceof CallError) || error.code !== STATUS.UNAVAILABLE || outageMs > OUTAGE_MS_MAX) throw error;
  return retryDelayMs(error) ?? RETRY_MS;
}

/** Returns a function that prints a position on stderr, unless its text equals the last one. */
function positionPrinter({ deps }: Run): (position: LinePosition) => void {
  let lastText = "";
  return ({ position, violated }) => {
    const reason = violated === undefined ? "" : `: ${violationText(violated)}`;
    const text = `waiting at position ${position}${reason}\n`;
    if (text !== lastText) deps.stderr(text);
    lastText = text;
  };
}
