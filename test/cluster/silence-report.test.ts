import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ClusterHealth } from "../../src/adapters/cluster/health.ts";
import { SilenceReport } from "../../src/adapters/cluster/silence-report.ts";
import { SleepersClock } from "../support/sleepers-clock.ts";

/** A step of a history: whether this process observes, how the cluster is, and for how long it is asked in vain. */
type Step = { readonly observes: boolean; readonly health: "active" | "unreachable"; readonly vainMs: number };

const someSteps = fc.array(
  fc.record({
    observes: fc.boolean(),
    health: fc.constantFrom("active", "unreachable"),
    vainMs: fc.nat(8_000),
    takes: fc.constantFrom("counts", "refuses", "fails"),
  }),
  { maxLength: 20 },
);

test("what is counted is what the observer waited in vain since it became that, and no more than that", async () => {
  await fc.assert(
    fc.asyncProperty(someSteps, async (steps) => {
      const clock = new SleepersClock();
      let now: Step & { readonly takes: string } = { observes: true, health: "active", vainMs: 0, takes: "counts" };
      let silenceMs = 0;
      let counted = 0;
      const health = (): ClusterHealth => {
        return now.health === "active" ? { kind: "active" } : { kind: "unreachable", forMs: silenceMs };
      };
      const report = new SilenceReport({
        cluster: "east",
        clock,
        health,
        silenceMs: () => silenceMs,
        observes: () => now.observes,
        onSilence: async (ms) => {
          assert.ok(now.observes && now.health === "unreachable" && ms > 0);
          if (now.takes === "fails") throw new Error("the database is away");
          if (now.takes === "counts") counted += ms;
          return now.takes === "counts";
        },
        onError: () => undefined,
      });
      report.start();
      // Since the last answer or the last time that another process observed, less what was counted.
      let due = 0;
      let expected = 0;
      let atMs = 0;
      for (const step of steps) {
        now = step;
        const answered = step.health === "active";
        silenceMs = answered ? 0 : silenceMs + step.vainMs;
        due = answered || !step.observes ? 0 : due + step.vainMs;
        if (due > 0 && step.takes === "counts") {
          expected += due;
          due = 0;
        }
        atMs += 2_000;
        await clock.goOn(atMs);
        assert.equal(counted, expected);
      }
      await report.close();
    }),
    { numRuns: 300 },
  );
});
