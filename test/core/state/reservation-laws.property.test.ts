/** Laws that must hold with reservations, backfill and jobs whose end is known. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_POLICY, FAIR_SHARING_STRATEGIES, type QueuePolicy } from "../../../src/core/plan/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/snapshot.ts";
import type { FleetPlan } from "../../../src/core/plan/state/run-round.ts";
import { queue } from "../plan-world.ts";
import { Draw } from "./random-world.ts";
import { SmallFleet, type SmallGang } from "./small-fleet.ts";

const WORLDS = Number(process.env["GANGWAY_WORLDS"] ?? 150);
const FIRST = Number(process.env["GANGWAY_SEED"] ?? 1);
const ROUNDS_MAX = 120;
const LEAVES = ["left", "right"];
const met = { reserved: 0, takenBack: 0, preempted: 0, passed: 0, late: 0 };

const policy = (parts: Partial<QueuePolicy>): QueuePolicy => ({ ...DEFAULT_POLICY, reserveAfterMs: 2, ...parts });

function randomTree(draw: Draw, preempts: boolean): readonly PlanQueue[] {
  const leaf = (): Partial<QueuePolicy> => ({
    withinQueue: preempts ? draw.of(["NEVER", "LOWER_PRIORITY"]) : "NEVER",
    reclaimWithinTree: preempts ? draw.of(["NEVER", "LOWER_PRIORITY", "ANY"]) : "NEVER",
    weight: draw.of([1, 2]),
  });
  const fairSharing = draw.chance(0.5) ? FAIR_SHARING_STRATEGIES : null;
  const strategy = () => draw.of(["STRICT_FIFO", "BEST_EFFORT_FIFO"] as const);
  return [
    queue("all", { h100: draw.upTo(4) }, { policy: policy({ fairSharing }) }),
    ...LEAVES.map((name) =>
      queue(name, { h100: 2 + draw.upTo(12) }, { parent: "all", strategy: strategy(), policy: policy(leaf()) }),
    ),
  ];
}

function randomGang(draw: Draw, name: string): SmallGang {
  const pods = 1 + draw.upTo(2);
  return {
    name,
    queue: draw.of(LEAVES),
    pods,
    gpus: pods * (1 + draw.upTo(3)),
    priority: draw.upTo(2),
    ...(draw.chance(0.3) ? { maxRuntimeMs: 1 + draw.upTo(20) } : {}),
    ...(draw.chance(0.3) ? { backfill: true } : {}),
  };
}

function randomFleet(draw: Draw, preempts: boolean): SmallFleet {
  const nodes = draw.list(2 + draw.upTo(2), () => 4 + draw.upTo(4));
  return new SmallFleet(randomTree(draw, preempts), nodes, true);
}

function note({ preemptions }: FleetPlan): void {
  for (const { reservation, victims } of preemptions) {
    if (reservation !== undefined) met.reserved += 1;
    if (reservation !== undefined && victims.length > 0) met.takenBack += 1;
    if (reservation === undefined) met.preempted += 1;
  }
}

test("with the clock still and nothing arriving, rounds with reservations come to rest", () => {
  for (let seed = FIRST; seed < FIRST + WORLDS; seed++) {
    const draw = new Draw(seed);
    const fleet = randomFleet(draw, true);
    for (let wave = 0; wave < 4; wave++) {
      for (let at = draw.upTo(5); at >= 0; at--) {
        fleet.submit({ ...randomGang(draw, `g${wave}-${at}`), createTimeMs: fleet.nowMs });
      }
      fleet.nowMs += draw.upTo(4);
      for (const { uid } of fleet.running().filter(() => draw.chance(0.2))) fleet.end(uid);
      const { nowMs } = fleet;
      const last: string[] = [];
      for (let quiet = 0, rounds = 0; quiet < 5; rounds++) {
        const words = last.slice(-6).join("\n");
        assert.ok(rounds < ROUNDS_MAX, `seed ${seed}, wave ${wave}: no rest after ${rounds} rounds:\n${words}`);
        const plan = fleet.step();
        note(plan);
        fleet.nowMs = nowMs;
        const { admissions, preemptions, withdrawn } = plan;
        quiet = admissions.length + preemptions.length + withdrawn.length === 0 ? quiet + 1 : 0;
        last.push(wordsOf(plan));
      }
    }
  }
  assert.ok(
    met.reserved > WORLDS / 2 && met.takenBack > WORLDS / 10 && met.preempted > WORLDS / 10,
    JSON.stringify(met),
  );
});

function wordsOf({ admissions, preemptions, withdrawn }: FleetPlan): string {
  const names = (of: readonly { readonly jobUid: string }[]) => of.map(({ jobUid }) => jobUid).join(", ");
  const nominated = preemptions.map(({ planned, victims, reservation }) => {
    const how = reservation === undefined ? "preempts" : `reserves after ${names(reservation.awaits)}, takes back`;
    return `${planned.jobUid} ${how} ${names(victims)}`;
  });
  return `admitted ${names(admissions)}; ${nominated.join("; ")}; withdrawn ${withdrawn.join(", ")}`;
}
