import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { redisCounters } from "../../../src/adapters/counters/redis/redis-counters.ts";
import { createStore } from "../../../src/adapters/store/store.ts";
import type { PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";
import { BatchSize } from "../../../src/planner/batch-size.ts";
import { carryOut } from "../../../src/planner/carry-out.ts";
import { WaitingPlace } from "../../../src/planner/waiting-place.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { plannerQuota } from "../../../src/tokens/planner-quota.ts";
import { FLAVOR, newJob, plannedFor, sentOf } from "../../store/jobs.ts";
import { poolChange } from "../../store/ledger-fixture.ts";
import { fleetPlanner } from "../../support/fleet-planner.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { gangOfPlanned } from "../../support/planned-gang.ts";
import { RedisServer } from "../../support/redis-server.ts";
import { soleDomain } from "../../support/sole-quota.ts";
import { type Rate, reportLine } from "./measure.ts";
import { scratchServerDb } from "./scratch-db.ts";

export type RecordBench = {
  /** The server of the database. The counters are in a Redis of the bench's own. */
  readonly postgres: string;
  /** The number of gangs whose admissions are recorded. */
  readonly gangs: number;
  /** The number of callers that take and give back tokens at the same time. */
  readonly callers: number;
  /** The highest number of gangs in a batch. */
  readonly batch: number;
  /** How long the callers are measured alone. */
  readonly seconds: number;
};

const CALLERS_POOL = "licences";
const CREATED_TOGETHER = 200;
/** Gangs that are recorded one at a time, as the floor. */
const SINGLES = 100;
const clock = systemClock();

/**
 * Measures how fast admissions are recorded in batches, beside one at a time, and how long callers wait for grants
 * alone and beside full batches. Returns the ratios by name.
 */
export async function benchRecord(
  bench: RecordBench,
  print: (line: string) => void,
): Promise<Readonly<Record<string, number>>> {
  await using parts = new AsyncDisposableStack();
  const planner = await startPlanner(bench, parts);
  const one = await rateOf("one gang at a time", SINGLES, () => planner.admit(SINGLES, 1));
  const many = await rateOf(`${bench.gangs} gangs in batches`, bench.gangs, () =>
    planner.admit(bench.gangs, bench.batch),
  );
  const faster = many.perSecond / one.perSecond;
  print(`${reportLine(many, one)}, ${(1000 / many.perSecond).toFixed(2)} ms a gang`);
  // As the server of an installation that runs for a while has done by itself.
  await planner.analyze();
  const measureCallers = await startCallers(bench, planner, parts);
  const alone = await measureCallers(() => clock.sleep(bench.seconds * 1000));
  const beside = await measureCallers(() => planner.admit(planner.left(), bench.batch));
  const ratio = beside.p99 / alone.p99;
  const text = ({ count, p50, p99 }: Times) => `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms (${count} grants)`;
  print(`grants to ${bench.callers} callers, alone             ${text(alone)}`);
  print(`grants to ${bench.callers} callers, beside batches    ${text(beside)}   ratio of p99 ${ratio.toFixed(2)}`);
  return { "gangs in batches": faster, "callers' p99": ratio };
}

async function rateOf(name: string, count: number, run: () => Promise<void>): Promise<Rate> {
  const startMs = clock.monotonicMs();
  await run();
  return { name, perSecond: (count * 1000) / (clock.monotonicMs() - startMs) };
}

type BenchPlanner = Awaited<ReturnType<typeof startPlanner>>;

/** A planner that leads, and jobs for it: those of the floor, of the batches, and of the batches beside callers. */
async function startPlanner({ postgres, gangs }: RecordBench, parts: AsyncDisposableStack) {
  const { db, url } = await scratchServerDb(parts, postgres);
  const redis = await RedisServer.start();
  parts.defer(() => redis.stop());
  const installation = randomUUID();
  const quiet = { onError: () => undefined, onWarning: () => undefined };
  const counters = await redisCounters({ url: redis.url, installation, domain: "default", ...quiet });
  parts.defer(() => counters.close());
  const options = { clock, kinds: OWN_KINDS, openNamespaces: true, defaultQueue: "bench" };
  const store = createStore(db, { ...options, onAppended: () => undefined });
  const jobs = SINGLES + 6 * gangs;
  const flavor = { name: FLAVOR, resource: "nvidia.com/gpu", nodeLabels: {} };
  await store.clusters.simulate({ name: "east", labels: {}, flavors: [flavor] });
  const quotas = [{ flavor: FLAVOR, resource: "nvidia.com/gpu", nominal: 4 * jobs }];
  await store.admin.ensureQueue({ name: "bench", strategy: "BEST_EFFORT_FIFO", quotas });
  await store.pools.register(poolChange({ name: CALLERS_POOL, quota: 1_000 }), { version: 0, actor: "bench" });
  const waiting: PlannedAdmission[] = [];
  while (waiting.length < jobs) {
    const some = Array.from({ length: Math.min(CREATED_TOGETHER, jobs - waiting.length) }, () =>
      newJob({ queue: "bench" }),
    );
    await store.intake.createJobs(some.map((job) => ({ job, sent: sentOf(job), requestId: "" })));
    for (const job of some) waiting.push(plannedFor(job, { admissionCounter: waiting.length }));
  }
  const domain = soleDomain({ clock, ledger: store.ledgerOf("default", clock), counters });
  parts.defer(() => domain.close());
  const quota = plannerQuota(domain);
  const plannerEpoch = (await store.members.takeLease("planner", "bench")) ?? 0;
  const place = new WaitingPlace(quota);
  const lease = { epoch: () => plannerEpoch };
  const fleet = fleetPlanner(store.planner);
  const parties = { clock, store: store.planner, fleet, quota, lease, wakeJob: () => undefined };
  const context = { ...parties, plannerEpoch, place, batchSize: new BatchSize() };
  const admitNext = async (admissions: readonly PlannedAdmission[]) => {
    const quotaEpoch = await quota.open();
    const gangs = new Map(admissions.map((planned) => [planned.jobUid, gangOfPlanned(planned)]));
    const nothing = {
      evictions: [],
      preemptions: [],
      withdrawn: [],
      refusals: [],
      replanAtMs: null,
      more: false,
      depths: new Map(),
      reservations: 0,
      planMs: 0,
    };
    const decision = { ...nothing, quotaEpoch, plan: { admissions, inLine: null }, gangs };
    const { recorded, failures } = await carryOut(context, { quotaEpoch, decision }, new AbortController().signal);
    if (recorded.length < admissions.length) throw failures[0] ?? new Error("some gangs were not recorded");
  };
  return {
    url,
    redisUrl: redis.url,
    installation,
    left: () => waiting.length,
    analyze: () => db.query("analyze"),
    /** Admits the next gangs, so many together. */
    async admit(count: number, together: number): Promise<void> {
      for (let done = 0; done < count; done += together) await admitNext(waiting.splice(0, together));
    },
  };
}

type Times = { readonly count: number; readonly p50: number; readonly p99: number };

/** Starts callers in a process of their own. Returns a function that measures their grants during some work. */
async function startCallers(bench: RecordBench, planner: BenchPlanner, parts: AsyncDisposableStack) {
  const given = [planner.url, planner.redisUrl, planner.installation, CALLERS_POOL, `${bench.callers}`];
  const child = fork(join(import.meta.dirname, "token-callers.ts"), given);
  parts.defer(async () => {
    child.disconnect();
    await once(child, "exit");
  });
  const measure = async (work: () => Promise<unknown>): Promise<Times> => {
    child.send("start");
    await work();
    child.send("stop");
    const [times] = (await once(child, "message")) as [readonly number[]];
    const sorted = [...times].sort((a, b) => a - b);
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
    return { count: sorted.length, p50: at(0.5), p99: at(0.99) };
  };
  await measure(() => clock.sleep(1_000));
  return measure;
}
