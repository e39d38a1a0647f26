import { RefusalMessages } from "../../../src/core/plan/explain/refusal-messages.ts";
import type { Change } from "../../../src/core/plan/facts/changes.ts";
import { FleetState } from "../../../src/core/plan/fleet-state.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import type { PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";
import type { FleetPlan } from "../../../src/core/plan/round/run-round.ts";
import { searchesBeside } from "../../../src/planner/fleet-planner.ts";
import { profileLines, startProfile } from "./measure.ts";
import { Fleet, type FleetSize, GPU, gangChange } from "./plan-fleet.ts";

const NOW = 1_800_000_000_000;
/** How many gangs one round admits at most. */
const ADMISSIONS_MAX = 256;
/** So many rounds fill the fleet at most while they are measured. */
const FILL_ROUNDS_MAX = 100;
/** So many rounds let it come to rest at most, each searches for so many gangs, and none begins after so long. */
const REST_ROUNDS_MAX = 2000;
const REST_SEARCHES = 500;
const REST_MS_MAX = 900_000;

export type PlanBench = FleetSize & { readonly rounds: number; readonly profile: boolean };

type Print = (line: string) => void;

/** Measures a fleet whose queues have no policies, the same with policies, and prints the ratios of their times. */
export async function benchPolicies(of: PlanBench, print: Print): Promise<void> {
  print("queues without policies");
  const without = await benchPlan({ ...of, policies: false }, print);
  print("\nqueues with weights, fair sharing, preemption and reclaim");
  const all = await benchPlan({ ...of, policies: true }, print);
  print("\nhow many times as long with policies");
  for (const [name, before] of Object.entries(without)) {
    const now = all[name];
    if (now === undefined || !(name === "cold plan" || name.includes(", p"))) continue;
    print(`${name.padEnd(44)} ${(now / before).toFixed(2).padStart(9)} times`);
  }
}

/** Measures the planner's state on a fleet in memory, without any input or output. */
export async function benchPlan(of: PlanBench, print: Print): Promise<Readonly<Record<string, number>>> {
  const figures: Record<string, number> = {};
  const note = (name: string, value: number, unit: string) => {
    figures[name] = value;
    print(`${name.padEnd(44)} ${value.toFixed(unit === "ms" ? 1 : 0).padStart(9)} ${unit}`);
  };
  const fleet = new Fleet(of);
  // A half of the fleet runs before the planner takes over.
  fillHalf(fleet);
  for (let at = 0; at < of.gangs; at++) fleet.newGang();
  const rows = rowsOf(fleet.load());
  const asks = new Map(fleet.asks.map(({ hash, ask }) => [hash, ask]));
  const stop = of.profile ? await startProfile() : null;

  const floorMs = timed(() => void rows.map((row) => JSON.parse(row)));
  note("floor: parse the rows of a load", floorMs, "ms");
  const state = new FleetState();
  note(
    "cold load, from rows",
    timed(() => loadRows(state, rows, asks)),
    "ms",
  );
  let plan = state.round(NOW, { admissionsMax: 0 });
  note(
    "cold sync of rooms",
    timed(() => {
      plan = state.round(NOW, { admissionsMax: 0 });
    }),
    "ms",
  );
  let wordsMs = 0;
  const planMs = timed(() => {
    const bounds = { ...boundsOf(state), admissionsMax: Number.POSITIVE_INFINITY };
    plan = state.round(NOW, bounds, ({ refused, admissions }, { fleet: known, pendingUse }) => {
      wordsMs = timed(() => {
        const messages = new RefusalMessages(known, { callers: [], admissions, pendingUse });
        for (const { gang, cause } of refused) messages.refusalOf(gang, cause);
      });
    });
  });
  note("cold plan", planMs - wordsMs, "ms");
  note("  words for its refusals", wordsMs, "ms");
  note("  admissions", plan.admissions.length, "gangs");
  note("  preemptions", plan.preemptions.length, "gangs");
  note("  refusals", plan.refused.length, "gangs");
  const { used, all } = fleet.gpus();
  // Rounds of at most 256 admissions until nothing fits, and every gang has looked whom it may preempt.
  const fillMs: number[] = [];
  for (let more = true; more && fillMs.length < FILL_ROUNDS_MAX; ) {
    fillMs.push(
      timed(() => {
        plan = state.round(NOW, boundsOf(state));
      }),
    );
    for (const change of carryOut(fleet, plan)) state.apply(change);
    more = plan.more || plan.admissions.length + plan.preemptions.length > 0;
  }
  note("rounds of 256 until full, p50", quantile(fillMs, 0.5), "ms");
  note("rounds of 256 until full, p99", quantile(fillMs, 0.99), "ms");
  note("  rounds", fillMs.length, "");
  plan = comeToRest(fleet, state, print);
  print(`GPUs in use before ${used}, after ${fleet.gpus().used}, of ${all}`);
  for (const count of [1, 100, 10_000]) {
    const times: number[] = [];
    const decidedTimes: number[] = [];
    const rounds = roundsAfter(count, of.rounds);
    let [planned, unfinished] = [0, 0];
    for (let at = 0; at < rounds; at++) {
      const changes = nextChanges(fleet, count, plan);
      const ms = timed(() => {
        for (const change of changes) state.apply(change);
        plan = state.round(NOW, boundsOf(state));
      });
      // With what the last round has decided, these are several times as many changes.
      if (changes.length > 2 * count) decidedTimes.push(ms);
      else times.push(ms);
      planned += plan.admissions.length;
      unfinished += plan.more ? 1 : 0;
    }
    const each = [
      [`round after ${count} changes`, times] as const,
      [`round after ${count} and a decision`, decidedTimes] as const,
    ];
    for (const [name, list] of each.filter(([, list]) => list.length > 0)) {
      note(`${name}, p50`, quantile(list, 0.5), "ms");
      note(`${name}, p99`, quantile(list, 0.99), "ms");
    }
    note("  admissions a round", planned / rounds, "gangs");
    note("  rounds that left searches for the next one", (100 * unfinished) / rounds, "%");
  }
  const searchMs = timed(() => {
    for (let rounds = 0; plan.more && rounds < FILL_ROUNDS_MAX; rounds++) {
      for (const change of carryOut(fleet, plan)) state.apply(change);
      plan = state.round(NOW, boundsOf(state));
    }
  });
  note(`rounds without changes, ${plan.more ? "some" : "until all have searched"}`, searchMs, "ms");
  note(
    "hash of the state, first",
    timed(() => void state.hash()),
    "ms",
  );
  note("resident memory", process.memoryUsage().rss / 2 ** 20, "MiB");
  globalThis.gc?.();
  note("heap after a collection", process.memoryUsage().heapUsed / 2 ** 20, "MiB");
  if (stop !== null) for (const line of profileLines("plan", await stop())) print(line);
  return figures;
}

/** What one round decides at most. */
function boundsOf({ changedFacts }: FleetState) {
  return { admissionsMax: ADMISSIONS_MAX, searchesMax: searchesBeside(changedFacts) };
}

/** Short rounds are measured more often, so that a few collections of garbage are not the slowest hundredth. */
function roundsAfter(changes: number, rounds: number): number {
  if (changes === 1) return 5 * rounds;
  return changes > 1000 ? Math.max(3, rounds >> 4) : rounds;
}

/** Runs long rounds until one changes nothing, and returns the last one, which is not carried out. */
function comeToRest(fleet: Fleet, state: FleetState, print: Print): FleetPlan {
  const bounds = { admissionsMax: Number.POSITIVE_INFINITY, searchesMax: REST_SEARCHES };
  const moves = ({ more, admissions, preemptions, withdrawn }: FleetPlan) =>
    more || admissions.length + preemptions.length + withdrawn.length > 0;
  let plan = state.round(NOW, bounds);
  let rounds = 1;
  const untilMs = performance.now() + REST_MS_MAX;
  for (; moves(plan) && rounds < REST_ROUNDS_MAX && performance.now() < untilMs; rounds++) {
    for (const change of carryOut(fleet, plan)) state.apply(change);
    plan = state.round(NOW, bounds);
  }
  print(`${moves(plan) ? "not at rest" : "at rest"} after ${rounds} more long rounds`);
  return plan;
}

/** Lets gangs run until they use a half of the GPUs. */
export function fillHalf(fleet: Fleet): void {
  const { all } = fleet.gpus();
  for (let tries = 0; fleet.gpus().used < all / 2 && tries < 5000; tries++) {
    for (let at = 0; at < 50; at++) {
      const gang = fleet.newGang();
      const cluster = fleet.of(fleet.clusterNames);
      const model = gang.ask.placement.gpuModels[0] ?? fleet.of(["h100", "a100", "l40s", "v100"]);
      const members = Object.fromEntries(gang.ask.roles.map(({ role, replicas }) => [role, replicas]));
      const gpus = gang.ask.roles.reduce((sum, { replicas, podClass }) => {
        return sum + replicas * ((gang.ask.podClasses[podClass]?.requests["nvidia.com/gpu"] ?? 0) / 1000);
      }, 0);
      const amounts = [{ pool: `gpu/${model}`, amount: gpus }];
      const flavors = { "nvidia.com/gpu": `gpu/${model}` };
      fleet.admit(gang, { cluster, flavors, flavorLabels: { [GPU]: { gpu: model } }, members, amounts });
    }
  }
}

/** Records a planned admission, and returns the changes that follow. */
export function recordOf(fleet: Fleet, planned: PlannedAdmission): readonly Change[] {
  const gang = fleet.gangs.get(planned.jobUid) as PlanGang;
  const { cluster, flavors, flavorLabels, members, allocations } = planned;
  return fleet.admit(gang, { cluster: cluster ?? "", flavors, flavorLabels, members, amounts: allocations });
}

type Decided = Pick<FleetPlan, "admissions" | "preemptions" | "withdrawn">;

/** Records what a round has decided, as if victims were gone at once, and returns the changes that follow. */
export function carryOut(fleet: Fleet, { admissions, preemptions, withdrawn }: Decided): Change[] {
  const admitted = admissions.flatMap((planned) => recordOf(fleet, planned));
  const preempted = preemptions.flatMap((preemption) => {
    const { planned, victims } = preemption;
    const gone = victims.flatMap(({ jobUid }) => fleet.end(fleet.gangs.get(jobUid) as PlanGang));
    return [...gone, ...(preemption.reservation ? fleet.reserve(preemption) : recordOf(fleet, planned))];
  });
  return [...admitted, ...preempted, ...withdrawn.flatMap((jobUid) => fleet.withdraw(jobUid))];
}

/** About `count` changes: the records of the last round, gangs that end, and new ones. */
function nextChanges(fleet: Fleet, count: number, plan: Decided): readonly Change[] {
  const changes = carryOut(fleet, plan);
  const running = [...fleet.gangs.values()].filter(({ waits }) => !waits);
  while (changes.length < count) {
    changes.push(gangChange(fleet.newGang()));
    if (changes.length >= count || running.length === 0) continue;
    const gang = fleet.of(running);
    if (fleet.gangs.has(gang.uid)) changes.push(...fleet.end(gang));
  }
  return changes;
}

/** The rows of a load as text, as a database driver receives them. Asks are rows of their own. */
function rowsOf(changes: readonly Change[]): readonly string[] {
  return changes.map((change) => {
    if (change.kind !== "gang" || change.gang === null) return JSON.stringify(change);
    return JSON.stringify({ ...change, gang: { ...change.gang, ask: undefined } });
  });
}

function loadRows(state: FleetState, rows: readonly string[], asks: ReadonlyMap<string, PlanGang["ask"]>): void {
  for (const row of rows) {
    const change = JSON.parse(row) as Change;
    if (change.kind !== "gang" || change.gang === null) state.apply(change);
    else state.apply({ ...change, gang: { ...change.gang, ask: asks.get(change.gang.askHash) as PlanGang["ask"] } });
  }
}

/**
 * The CPU time of this process that a run takes. Unlike the time on the clock, other processes do not matter much.
 * That of one thread comes in steps of some milliseconds only, as long as most rounds.
 */
function timed(run: () => void): number {
  const start = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}
