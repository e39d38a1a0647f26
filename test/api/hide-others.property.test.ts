/** Words about why jobs wait, as callers read them that see more or less of an installation. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { wordsFor } from "../../src/api/job/hide-others.ts";
import { recordedWithoutClusters } from "../../src/core/plan/hidden-clusters.ts";
import { withoutNames } from "../../src/core/plan/hidden-names.ts";

const jobs = fc.constantFrom("nlp/a", "vision/b", "another/job");
const clusters = fc.constantFrom("east", "west", "another");
const texts = fc
  .tuple(jobs, clusters, fc.nat(2))
  .chain(([job, cluster, pods]) =>
    fc.constantFrom(
      "the job is created",
      `waits behind ${job}, the head of queue q`,
      `preempted for ${job}, which has a higher priority`,
      `gangs that were preempted for it have ended: ${job}`,
      `waits until these jobs have ended: ${job}, vision/b; nobody knows when it starts`,
      `needs 2 tokens of gpu (held by caller ann, ${job})`,
      `1 is free, and keeps 1 for ${job}`,
      `${pods} of 3 pods fit now on ${cluster}; node n1 is full`,
      `no cluster can be used: ${cluster} is drained`,
      `is kept for the reservation of gang ${job} on cluster ${cluster}; it waits`,
      `another cluster cannot be used; another cluster cannot be used`,
    ),
  );
const sights = fc.record({ jobs: fc.subarray(["nlp/a", "vision/b"]), clusters: fc.subarray(["east", "west"]) });

test("each caller reads its own words, however many others have read the same text before", () => {
  const reads = fc.array(fc.record({ text: texts, sight: sights, own: fc.subarray(["east"]) }), { maxLength: 20 });
  const law = (all: typeof reads extends fc.Arbitrary<infer T> ? T : never) => {
    for (const { text, sight, own } of all) {
      const mayName = (name: string) => sight.jobs.includes(name);
      const maySee = (name: string) => sight.clusters.includes(name);
      const alone = recordedWithoutClusters(withoutNames(text, mayName), (name) => own.includes(name) || maySee(name));
      assert.equal(wordsFor({ mayName, maySee }, text, own), alone);
    }
  };
  fc.assert(fc.property(reads, law), { numRuns: 500 });
});
