import fc from "fast-check";
import type { JsonObject } from "../../../src/runtime/json.ts";

export const NOW_MS = Date.parse("2026-01-01T00:00:00Z");
/** The time so many seconds ago. */
export const at = (agoS: number) => new Date(NOW_MS - agoS * 1000).toISOString();

const word = fc.constantFrom(
  "main",
  "side",
  "",
  "gangway-uploader",
  "gangway-downloader",
  "OOMKilled",
  "ImagePullBackOff",
  "InvalidImageName",
  "Evicted",
  "True",
);
const json = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<JsonObject>;
const state = fc.oneof(
  json,
  fc.record({ waiting: fc.oneof(json, fc.record({ reason: word, message: word })) }),
  fc.record({ running: fc.constant({}) }),
  fc.record({ terminated: fc.oneof(json, fc.record({ exitCode: fc.constantFrom(0, 1, 137, 143), reason: word })) }),
);
const container = fc.oneof(
  json,
  fc.record({ name: word, ready: fc.boolean(), state, lastState: state }, { requiredKeys: [] }),
);
const condition = fc.oneof(
  json,
  fc.record({
    type: fc.constantFrom("Ready", "PodScheduled", "Unschedulable", "DisruptionTarget", "Initialized"),
    status: fc.constantFrom("True", "False", "Unknown"),
    lastTransitionTime: fc.oneof(word, fc.integer({ min: -10, max: 400 }).map(at)),
  }),
);
const list = <T>(of: fc.Arbitrary<T>) => fc.oneof(json, fc.array(of, { maxLength: 3 }));

/** The status of a pod, from broken to usual. */
export const status = fc.record(
  {
    phase: fc.oneof(json, fc.constantFrom("Pending", "Running", "Succeeded", "Failed", "Unknown")),
    reason: fc.oneof(json, word),
    conditions: list(condition),
    initContainerStatuses: list(container),
    containerStatuses: list(container),
    ephemeralContainerStatuses: list(container),
  },
  { requiredKeys: [] },
);

export const pods = fc.oneof(
  json,
  fc.record({
    metadata: fc.oneof(json, fc.record({ annotations: fc.record({ primary_container_name: word }) })),
    spec: fc.oneof(json, fc.record({ restartPolicy: fc.constantFrom("Never", "OnFailure", "Always") })),
    status: fc.oneof(json, status),
  }),
) as fc.Arbitrary<JsonObject>;
