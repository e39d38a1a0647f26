import type { Registry } from "../../src/core/kinds/registry.ts";
import { PLAIN_POD_CONFIG, type PodConfig } from "../../src/core/pods/pod-config.ts";
import { createIntake, type Intake } from "../../src/intake/intake.ts";
import { NO_CLASSES } from "../support/no-classes.ts";

/** An intake that stores nothing. There are every namespace and every queue. */
export function bareIntake(kinds: Registry, podConfig: PodConfig = PLAIN_POD_CONFIG): Intake {
  const facts = {
    namespace: { project: "p", defaultQueue: "q" },
    priorityClasses: NO_CLASSES,
    queueExists: async () => true,
    nodeResources: async () => null,
  };
  return createIntake({
    clock: { nowMs: () => 0, monotonicMs: () => 0, sleep: async () => {} },
    kinds,
    store: {
      facts: async () => facts,
      earlierRequest: async () => null,
      createJob: async ({ job }) => ({ kind: "created", job }),
      createJobs: async (jobs) => jobs.map(({ job }) => ({ kind: "created", job })),
      changeJob: async () => ({ kind: "notFound" }),
      requestCancel: async () => ({ kind: "notFound" }),
      requestDelete: async () => ({ kind: "notFound" }),
    },
    podConfig: () => podConfig,
    randomBytes: (count) => new Uint8Array(count),
    wakePlanner: () => {},
    wakeJob: () => {},
  });
}
