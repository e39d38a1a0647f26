/**
 * A planner beside PostgreSQL, in a process of its own: each message `decide` is answered with a decision, its times,
 * and how long the process's main event loop was blocked at most since it began.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { PlannerThread } from "../../../src/compose/planner-thread.ts";
import { postgresOptions } from "../../support/postgres.ts";

const [url = ""] = process.argv.slice(2);
const { connectTimeoutMs, idleTimeoutMs } = postgresOptions(url);
const thread = new PlannerThread({
  server: { url, directUrl: url, poolMax: 2, connectTimeoutMs, statementTimeoutMs: 60_000, idleTimeoutMs },
  plugins: [],
  reservationsPerPool: 1,
  workingDirectory: process.cwd(),
  isStopped: () => false,
});
// Always on: a histogram that is enabled again counts the time between as one delay.
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();

export type ProcessAnswer = Awaited<ReturnType<typeof decide>>;

async function decide() {
  const startMs = performance.now();
  const before = process.cpuUsage();
  const { plan, refusals, more, planMs } = await thread.decide({ nowMs: 1_800_000_000_000, plannerEpoch: 1 });
  const { user, system } = process.cpuUsage(before);
  const ms = performance.now() - startMs;
  return {
    admissions: plan.admissions,
    refusals: refusals.length,
    more,
    planMs,
    ms,
    cpuMs: (user + system) / 1000,
    blockedMs: { p999: delay.percentile(99.9) / 1e6, max: delay.max / 1e6 },
    residentMiB: process.memoryUsage().rss / 2 ** 20,
  };
}

process.on("message", async () => void process.send?.(await decide()));
process.on("disconnect", () => void thread.close());
