import { status } from "@grpc/grpc-js";
import {
  type AllocateResourceResponse,
  type LinePosition,
  ResourceManager,
} from "../gen/gangway/v1/resource_manager_pb.ts";
import { giveBack, type TokenRequest } from "./hold-token.ts";
import { violationText } from "./quota-text.ts";
import { isServiceError, retryDelayMs } from "./rpc-failure.ts";
import type { Run } from "./shell.ts";

const AGAIN_MS = 1000;
/** A service that stays away for longer is not restarting. */
const AWAY_MS_MAX = 60_000;

export type Stood =
  | { readonly kind: "granted"; readonly response: AllocateResourceResponse }
  | { readonly kind: "late" | "left" };

/**
 * Waits in a pool's line until the token is granted, the time is over (`late`), or the signal is aborted (`left`). Says on stderr where it
 * stands; stands again where a server went away. What is granted while it leaves is given back.
 */
export async function standInLine(
  run: Run,
  request: TokenRequest,
  options: { readonly timeoutMs: number | null; readonly signal: AbortSignal },
): Promise<Stood> {
  const { clock } = run.deps;
  const over = new AbortController();
  let late = false;
  if (options.timeoutMs !== null) {
    void clock.sleep(options.timeoutMs, over.signal).then(() => {
      late = !over.signal.aborted;
      over.abort();
    });
  }
  try {
    const response = await standUntilGranted(run, request, AbortSignal.any([options.signal, over.signal]));
    if (response !== null) return { kind: "granted", response };
  } finally {
    over.abort();
  }
  await giveBack(run, request);
  return { kind: late ? "late" : "left" };
}

/** Null once the signal is aborted. */
async function standUntilGranted(run: Run, request: TokenRequest, signal: AbortSignal) {
  const { clock } = run.deps;
  const say = positionSayer(run);
  let heardAtMs = Number.NEGATIVE_INFINITY;
  const onPosition = (place: LinePosition) => {
    heardAtMs = clock.monotonicMs();
    say(place);
  };
  while (!signal.aborted) {
    try {
      const response = await standOnce(run, request, { signal, onPosition });
      if (response !== null) return response;
      await clock.sleep(AGAIN_MS, signal);
    } catch (error) {
      if (signal.aborted) return null;
      await clock.sleep(pauseBeforeAgain(error, clock.monotonicMs() - heardAtMs), signal);
    }
  }
  return null;
}

/** One stream; null where it ends without a grant. */
async function standOnce(
  run: Run,
  request: TokenRequest,
  { signal, onPosition }: { readonly signal: AbortSignal; readonly onPosition: (place: LinePosition) => void },
) {
  for await (const { update } of run.client.stream(ResourceManager.method.waitForResource, request, signal)) {
    if (update.case === "granted") return update.value;
    if (update.case === "position") onPosition(update.value);
  }
  return null;
}

/** Throws the failure if it will not pass, or has not passed for too long. */
function pauseBeforeAgain(error: unknown, silentMs: number): number {
  if (!isServiceError(error) || error.code !== status.UNAVAILABLE || silentMs > AWAY_MS_MAX) throw error;
  return retryDelayMs(error) ?? AGAIN_MS;
}

function positionSayer({ deps }: Run): (place: LinePosition) => void {
  let said = "";
  return ({ position, violated }) => {
    const why = violated === undefined ? "" : `: ${violationText(violated)}`;
    const text = `waiting at position ${position}${why}\n`;
    if (text !== said) deps.stderr(text);
    said = text;
  };
}
