/** Measures how many of a cluster's GPUs pods get by four rules, on seeded worlds made from a trace. */
import { seededRandom } from "../../../support/random.ts";
import { churn } from "./churn.ts";
import { fill } from "./fill.ts";
import { carriedOut, type Packer, packerOf, RULES, type RuleName } from "./rules.ts";
import { readTrace, type Trace } from "./trace.ts";
import { churnWorld, equalWorld, type PackWorld, traceWorld } from "./worlds.ts";

export type PackBench = {
  readonly dir: string;
  readonly seeds: number;
  readonly churn: boolean;
  readonly racks: boolean;
  /** How many gangs come and go in each history. */
  readonly gangs: number;
};

/** One column of the table: the worlds, and whether gangs come and go. */
type Column = {
  readonly name: string;
  readonly comes: "once" | "and goes";
  readonly world: (seed: number) => PackWorld;
};

/** What a rule reaches in a column: the means over all seeds. */
type Reached = {
  readonly percent: number;
  /** By load, for worlds whose gangs come once. */
  readonly byLoad: readonly number[];
};

type RowName = RuleName | "carried out";

const ROWS: readonly RowName[] = [...RULES, "carried out"];
/** Goals in points of percent. */
const BELOW_BEST_FIT_MAX = 0.2;
const ABOVE_SPREAD_MIN = 4;
const RACKS_ABOVE_NAMES_MIN = 3;
const CARRIED_OUT_MAX = 0.5;
const JUDGED_LOAD_MIN = 80;

/** Prints the table and the goals. Returns false if a goal is missed. */
export function benchPack(of: PackBench, print: (line: string) => void): boolean {
  const columns = columnsOf(readTrace(of.dir), of);
  print(`percent of the GPUs in use, mean of ${of.seeds} seeds`);
  print(["rule", ...columns.map(({ name }) => name)].map(cell).join(""));
  const table = new Map<RowName, readonly Reached[]>();
  for (const row of ROWS) {
    const reached = columns.map((column) => reachedIn(column, row, of.seeds));
    table.set(row, reached);
    print([row, ...reached.map(({ percent }) => percent.toFixed(1))].map(cell).join(""));
  }
  const judged = columns.flatMap((column, at) => goalsOf(column, (row) => table.get(row)?.[at] as Reached));
  for (const { text, met } of judged) print(`${met ? "met" : "MISSED"}: ${text}`);
  return judged.every(({ met }) => met);
}

function columnsOf(trace: Trace, { churn: comesAndGoes, racks, gangs }: PackBench): readonly Column[] {
  const churning = (hasRacks: boolean) => (seed: number) => churnWorld(trace, seed, { gangs, racks: hasRacks });
  return [
    { name: "trace", comes: "once", world: (seed) => traceWorld(trace, seed, { half: false }) },
    { name: "half", comes: "once", world: (seed) => traceWorld(trace, seed, { half: true }) },
    { name: "8-GPU", comes: "once", world: equalWorld },
    ...(comesAndGoes ? [{ name: "churn", comes: "and goes" as const, world: churning(false) }] : []),
    ...(racks ? [{ name: "racks", comes: "and goes" as const, world: churning(true) }] : []),
  ];
}

function reachedIn({ comes, world }: Column, row: RowName, seeds: number): Reached {
  const runs = Array.from({ length: seeds }, (_, at) => {
    const made = world(at + 1);
    const packer = rowPacker(row, made, at + 1);
    if (comes === "and goes") return { percent: churn(packer, made), byLoad: [] };
    const byLoad = fill(packer, made);
    return { percent: byLoad.at(-1) ?? 0, byLoad };
  });
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / seeds;
  return {
    percent: mean(runs.map(({ percent }) => percent)),
    byLoad: (runs[0]?.byLoad ?? []).map((_, load) => mean(runs.map(({ byLoad }) => byLoad[load] ?? 0))),
  };
}

function rowPacker(row: RowName, { nodes }: PackWorld, seed: number): Packer {
  return row === "carried out" ? carriedOut(nodes) : packerOf(row, nodes, seededRandom(seed));
}

type Goal = { readonly text: string; readonly met: boolean };

function goalsOf({ name }: Column, of: (row: RowName) => Reached): readonly Goal[] {
  const [ours, best, spread, real] = [of("ours"), of("best fit"), of("spread"), of("carried out")];
  const loads = ours.byLoad.map((percent, load) => ({ load, below: (best.byLoad[load] ?? 0) - percent }));
  const judged = loads.filter(({ load }) => load >= JUDGED_LOAD_MIN).map(({ below }) => below);
  const below = Math.max(best.percent - ours.percent, ...judged);
  const above = ours.percent - spread.percent;
  const aside = Math.abs(ours.percent - real.percent);
  const overNames = ours.percent - best.percent;
  const goals = [
    { text: `below best fit by ${below.toFixed(2)}, at most ${BELOW_BEST_FIT_MAX}`, met: below <= BELOW_BEST_FIT_MAX },
    { text: `above spread by ${above.toFixed(1)}, at least ${ABOVE_SPREAD_MIN}`, met: above >= ABOVE_SPREAD_MIN },
    { text: `carried out within ${aside.toFixed(2)}, at most ${CARRIED_OUT_MAX}`, met: aside <= CARRIED_OUT_MAX },
    ...(name === "racks"
      ? [
          {
            text: `above ties by name by ${overNames.toFixed(1)}, at least ${RACKS_ABOVE_NAMES_MIN}`,
            met: overNames >= RACKS_ABOVE_NAMES_MIN,
          },
        ]
      : []),
  ];
  return goals.map(({ text, met }) => ({ text: `${name}: ${text}`, met }));
}

function cell(text: string): string {
  return text.padEnd(14);
}
