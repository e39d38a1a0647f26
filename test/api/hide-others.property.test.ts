/** Words about why jobs wait, as callers read them that see more or less of an installation. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { wordsFor } from "../../src/api/job/hide-others.ts";
import { recordedWithoutClusters } from "../../src/core/plan/explain/hidden-clusters.ts";
import { withoutNames } from "../../src/core/plan/explain/hidden-names.ts";
import { messageWithoutQuotas } from "../../src/core/plan/explain/hidden-quotas.ts";

const jobs = fc.constantFrom("nlp/a", "vision/b", "another/job");
const clusters = fc.constantFrom("east", "west", "another");
const pools = fc.constantFrom("gpu/h100", "gpu", "another");
const texts = fc
  .tuple(jobs, clusters, fc.nat(2), pools)
  .chain(([job, cluster, pods, pool]) =>
    fc.constantFrom(
      "the job is created",
      `waits behind ${job}, the head of queue q`,
      `preempted for ${job}, which has a higher priority`,
      `gangs that were preempted for it have ended: ${job}`,
      `waits until these jobs have ended: ${job}, vision/b; nobody knows when it starts`,
      `needs 2 of ${pool}; pool ${pool} uses 8 of 8 (held by caller ann, ${job})`,
      `needs 2 of ${pool}; queue root uses 8 of 8; it is in the waiting line of ${pool} and cpu`,
      `1 is free, and keeps 1 for ${job}`,
      `${pods} of 3 pods fit now on ${cluster}; node n1 is full`,
      `no cluster can be used: ${cluster} is drained`,
      `is kept for the reservation of gang ${job} on cluster ${cluster}; it waits`,
      `another cluster cannot be used; another cluster cannot be used`,
    ),
  );
const sights = fc.record({
  jobs: fc.subarray(["nlp/a", "vision/b"]),
  clusters: fc.subarray(["east", "west"]),
  quotas: fc.subarray(["gpu/h100", "root"]),
});

test("each caller reads its own words, however many others have read the same text before", () => {
  const own = fc.record({ clusters: fc.subarray(["east"]), quotas: fc.subarray(["gpu"]) });
  const reads = fc.array(fc.record({ text: texts, sight: sights, own }), { maxLength: 20 });
  const law = (all: typeof reads extends fc.Arbitrary<infer T> ? T : never) => {
    for (const { text, sight, own } of all) {
      const mayName = (name: string) => sight.jobs.includes(name);
      const maySee = (name: string) => sight.clusters.includes(name);
      const placed = recordedWithoutClusters(
        withoutNames(text, mayName),
        (name) => own.clusters.includes(name) || maySee(name),
      );
      const seen = (name: string) => own.quotas.includes(name) || sight.quotas.includes(name);
      const alone = messageWithoutQuotas(placed, { pool: seen, queue: seen });
      const of = (name: string) => sight.quotas.includes(name);
      assert.equal(wordsFor({ mayName, maySee, maySeeQuota: { pool: of, queue: of } }, text, own), alone);
    }
  };
  fc.assert(fc.property(reads, law), { numRuns: 500 });
});
