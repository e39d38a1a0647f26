import { podFailure } from "../../../src/core/pods/read/failure.ts";
import type { PodReading } from "../../../src/core/pods/read/pod-reading.ts";
import { podView } from "../../../src/core/pods/read/pod-view.ts";
import { PENDING_LIMITS, readPending } from "../../../src/core/pods/read/read-pending.ts";
import { readPrimary, readSuccess } from "../../../src/core/pods/read/read-pod.ts";
import { arrayAt, isJsonObject, type JsonObject, numberAt, objectAt, stringAt } from "../../../src/runtime/json.ts";
import type { Case } from "./case.ts";
import { equalLoosely } from "./compare.ts";

const NOW_MS = Date.parse("2026-01-01T00:00:00Z");

type Read = (input: JsonObject, config: JsonObject) => PodReading;

const READS: Readonly<Record<string, Read>> = {
  DemystifyPending: (input, config) => readPending(podOf(withAges(input)), { nowMs: NOW_MS, limits: limitsOf(config) }),
  DemystifySuccess: ({ status }) => readSuccess(podOf(status)),
  DemystifyFailure: readFailure,
  ConvertPodFailureToError: readFailure,
  DeterminePrimaryContainerPhase: (input) =>
    readPrimary(
      podOf({ containerStatuses: arrayAt(input, "containerStatuses") }),
      stringAt(input, "primaryContainerName") ?? "",
    ),
};

const PHASES = { queued: "Queued", initializing: "Initializing", running: "Running", succeeded: "Success" } as const;

/**
 * Reads a pod's status as production does, and compares it in Flyte's words. Returns null if the case names no such
 * function.
 */
export function podStatus({ fn = "", input, config = {}, expected }: Case): readonly string[] | null {
  const read = READS[fn];
  if (read === undefined) return null;
  const found = inFlytesWords(read(input, config));
  return Object.keys(expected).flatMap((member) =>
    equalLoosely(expected[member], found[member])
      ? []
      : [`${member}: expected ${JSON.stringify(expected[member])}, found ${JSON.stringify(found[member])}`],
  );
}

function readFailure(input: JsonObject): PodReading {
  const primary = stringAt(input, "primaryContainerName") ?? null;
  return { kind: "failed", failure: podFailure(podOf(input["status"]), primary) };
}

function inFlytesWords(reading: PodReading): JsonObject {
  if (reading.kind !== "failed") {
    const phase = reading.kind === "unknown" ? "Undefined" : PHASES[reading.kind];
    return { phase, version: 0, cleanupOnFailure: false };
  }
  const { code, kind, message, permanent, cleanup } = reading.failure;
  const phase = permanent ? "PermanentFailure" : "RetryableFailure";
  return { phase, version: 0, cleanupOnFailure: cleanup, error: { code, kind }, code, message };
}

function podOf(status: unknown) {
  return podView({ metadata: { name: "pod" }, status: objectAt({ status } as JsonObject, "status") });
}

/** The status with the times at which its conditions changed. */
function withAges(input: JsonObject): JsonObject {
  const status = objectAt(input, "status");
  const ages = arrayAt(input, "conditionAgesSec");
  const conditions = arrayAt(status, "conditions").map((condition, index) => {
    const lastTransitionTime = new Date(NOW_MS - Number(ages[index] ?? 0) * 1000).toISOString();
    return isJsonObject(condition) ? { ...condition, lastTransitionTime } : condition;
  });
  return { ...status, conditions };
}

function limitsOf(config: JsonObject) {
  const ms = (name: string, absent: number) => {
    const seconds = numberAt(config, name);
    return seconds === undefined ? absent : seconds * 1000;
  };
  return {
    createContainerErrorGraceMs: ms("createContainerErrorGraceSec", PENDING_LIMITS.createContainerErrorGraceMs),
    createContainerConfigErrorGraceMs: ms(
      "createContainerConfigErrorGraceSec",
      PENDING_LIMITS.createContainerConfigErrorGraceMs,
    ),
    imagePullBackoffGraceMs: ms("imagePullBackoffGraceSec", PENDING_LIMITS.imagePullBackoffGraceMs),
    podPendingTimeoutMs: ms("podPendingTimeoutSec", PENDING_LIMITS.podPendingTimeoutMs),
  };
}
