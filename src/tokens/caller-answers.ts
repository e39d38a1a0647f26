import { holderText } from "../core/quota/allocations.ts";
import type { AllocateAnswer, ReleaseAnswer, RenewAnswer, WaitAnswer } from "../core/quota/calls.ts";
import type { Allocation, Violation } from "../core/quota/counters.ts";
import { unreachable } from "../runtime/assert.ts";
import type { AllocateOutcome } from "./allocate.ts";
import type { HolderReleaseOutcome } from "./release.ts";
import type { HolderRenewOutcome } from "./renew.ts";
import type { WaitStep } from "./wait.ts";

/** The answer to a request for these allocations. */
export function allocateAnswer(
  outcome: AllocateOutcome,
  allocations: readonly Allocation[],
  nowMs: number,
): AllocateAnswer {
  switch (outcome.kind) {
    case "granted": {
      const { fence, held, expiresInMs } = outcome;
      const granted = allocations.map(({ pool, token }, at) => {
        return { pool, token, expireTimeMs: later(nowMs, expiresInMs[at] ?? null) };
      });
      return { kind: "granted", fence, held, allocations: granted };
    }
    case "exhausted": {
      const { violation, index } = outcome;
      return { kind: isCap(violation) ? "namespaceQuotaExceeded" : "exhausted", violation, index };
    }
    case "heldOtherwise":
      return { ...outcome, holder: holderText(outcome.holder) };
    case "tooManyTokens":
      return outcome;
    default:
      return unreachable(outcome);
  }
}

/** Whether a project or a namespace is at its cap, while the pool and the queues may have room. */
export function isCap({ scope }: Violation): boolean {
  return scope.kind === "project" || scope.kind === "namespace";
}

export function waitAnswer(step: WaitStep, allocations: readonly Allocation[], nowMs: number): WaitAnswer {
  if (step.kind === "waiting" || step.kind === "never" || step.kind === "lineFull") return step;
  return allocateAnswer(step, allocations, nowMs);
}

export function releaseAnswer(outcome: HolderReleaseOutcome): ReleaseAnswer {
  // Only forced releases are refused for a live admission, and no caller is an admission.
  if (outcome.kind === "otherHolder" || outcome.kind === "liveAdmission") return { kind: "otherHolder" };
  return outcome;
}

export function renewAnswer(outcome: HolderRenewOutcome, nowMs: number): RenewAnswer {
  if (outcome.kind !== "renewed") return outcome;
  return { kind: "renewed", fence: outcome.fence, expireTimeMs: later(nowMs, outcome.expiresInMs) };
}

function later(nowMs: number, inMs: number | null): number | null {
  return inMs === null ? null : nowMs + inMs;
}

/** The labels under which metrics count an answer. */
export function outcomeOf(answer: AllocateAnswer): {
  readonly outcome: string;
  readonly scope: Violation["scope"]["kind"] | "";
} {
  if (answer.kind === "granted") return { outcome: answer.held ? "held" : "granted", scope: "" };
  if (answer.kind === "exhausted" || answer.kind === "namespaceQuotaExceeded") {
    return { outcome: answer.kind, scope: answer.violation.scope.kind };
  }
  return { outcome: answer.kind, scope: "" };
}
