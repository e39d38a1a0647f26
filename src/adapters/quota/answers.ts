import type { AllocationLine, Grant, Violation } from "../../core/quota/counters.ts";
import { unreachable } from "../../runtime/assert.ts";
import type { Allocated } from "./allocate.ts";
import type { LineRefusal } from "./build-lines.ts";
import { holderText } from "./holder.ts";
import type { Released } from "./release.ts";
import type { Renewed } from "./renew.ts";
import type { WaitStep } from "./wait.ts";

export type AllocateAnswer =
  | {
      readonly kind: "granted";
      readonly fence: bigint;
      readonly held: boolean;
      readonly lines: readonly {
        readonly pool: string;
        readonly token: string;
        /** Null: it does not lapse. */
        readonly expireTimeMs: number | null;
      }[];
    }
  | {
      readonly kind: "exhausted" | "namespaceQuotaExceeded";
      readonly violation: Violation;
      readonly line: number;
    }
  | {
      readonly kind: "heldOtherwise";
      readonly pool: string;
      readonly token: string;
      readonly holder: string;
      readonly amount: number;
      readonly fence: bigint;
    }
  | LineRefusal
  | { readonly kind: "tooManyTokens"; readonly tokensMax: number };

export type WaitAnswer =
  | AllocateAnswer
  | { readonly kind: "waiting"; readonly position: number; readonly violation: Violation | null }
  | { readonly kind: "never"; readonly violation: Violation }
  | { readonly kind: "lineFull"; readonly waitersMax: number };

export type ReleaseAnswer =
  | { readonly kind: "unknownPool" | "otherHolder" }
  | Exclude<Released, { readonly kind: "otherHolder" | "liveAdmission" }>;

export type RenewAnswer =
  | { readonly kind: "renewed"; readonly expireTimeMs: number | null; readonly fence: bigint }
  | { readonly kind: "lost" | "otherHolder" | "unknownPool" };

/** `line` is the first whose pool allows no lease as long as the one asked for. */
export type LeaseRefusal = Extract<LineRefusal, { readonly kind: "leaseTooLong" }>;

/** Of a request for these lines. */
export function allocateAnswer(settled: Allocated, lines: readonly AllocationLine[], nowMs: number): AllocateAnswer {
  switch (settled.kind) {
    case "granted":
      return grantedAnswer(settled, lines, nowMs);
    case "exhausted": {
      const { violation } = settled;
      const isCap = violation.scope.kind === "project" || violation.scope.kind === "namespace";
      const kind = isCap ? "namespaceQuotaExceeded" : "exhausted";
      return { kind, violation, line: settled.line };
    }
    case "heldOtherwise":
      return { ...settled, holder: holderText(settled.holder) };
    case "tooManyTokens":
      return settled;
    default:
      return unreachable(settled);
  }
}

export function waitAnswer(step: WaitStep, lines: readonly AllocationLine[], nowMs: number): WaitAnswer {
  if (step.kind === "waiting" || step.kind === "never" || step.kind === "lineFull") return step;
  return allocateAnswer(step, lines, nowMs);
}

function grantedAnswer(
  grant: Pick<Grant, "fence" | "held" | "expiresInMs">,
  lines: readonly AllocationLine[],
  nowMs: number,
): AllocateAnswer {
  const { fence, held, expiresInMs } = grant;
  const shown = lines.map(({ pool, token }, at) => ({
    pool,
    token,
    expireTimeMs: later(nowMs, expiresInMs[at] ?? null),
  }));
  return { kind: "granted", fence, held, lines: shown };
}

export function releaseAnswer(outcome: Released): ReleaseAnswer {
  // Only a forced release is refused for a live admission; a caller's never names one as holder.
  if (outcome.kind === "otherHolder" || outcome.kind === "liveAdmission") return { kind: "otherHolder" };
  return outcome;
}

export function renewAnswer(outcome: Renewed, nowMs: number): RenewAnswer {
  if (outcome.kind !== "renewed") return outcome;
  return { kind: "renewed", fence: outcome.fence, expireTimeMs: later(nowMs, outcome.expiresInMs) };
}

function later(nowMs: number, inMs: number | null): number | null {
  return inMs === null ? null : nowMs + inMs;
}

/** An answer as operators count them. */
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
