import assert from "node:assert/strict";
import { test } from "node:test";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import { DEFAULT_POLICY, type QueuePolicy } from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import { compareGangs } from "../../../src/core/plan/queues/order.ts";
import type { FleetPlan } from "../../../src/core/plan/round/run-round.ts";
import { Draw } from "./random-world.ts";
import { ALL_STRATEGIES, playToRest, RESOURCE, RestFleet, randomRest } from "./rest-world.ts";

const STRATEGIES = ["BEST_EFFORT_FIFO", "STRICT_FIFO"] as const;

const queueOf = (strategy: PlanQueue["strategy"], nominal: number, policy: Partial<QueuePolicy> = {}): PlanQueue => ({
  ...{ name: "q", parent: null, strategy, quotas: [{ flavor: "gpu/h100", resource: RESOURCE, nominal }] },
  policy: { ...DEFAULT_POLICY, reserveAfterMs: 0, withinQueue: "LOWER_PRIORITY", ...policy },
});

const gang = (uid: string, size: number, priority: number) => ({ uid, queue: "q", size, priority, createTimeMs: 0 });

type Row = {
  readonly quota: number;
  /** The sizes of the running gangs, the priority of all being 0. */
  readonly runs: readonly number[];
  /** The size of the nominee with priority 1. */
  readonly nominee: number;
  /** The size of the gang with priority 2 that comes while the victims drain. */
  readonly comes: number;
  readonly preempted: number;
  /** What runs in the end. */
  readonly running: Readonly<Record<(typeof STRATEGIES)[number], string>>;
  /** False: the nominee keeps its place. */
  readonly passes: Readonly<Record<(typeof STRATEGIES)[number], boolean>>;
};

const same = <T>(value: T) => ({ BEST_EFFORT_FIFO: value, STRICT_FIFO: value });

const rows: Readonly<Record<string, Row>> = {
  "takes all that the nominee waits for": {
    ...{ quota: 8, runs: [8], nominee: 8, comes: 8, preempted: 1 },
    ...{ running: same("comes:8:gpu/h100"), passes: same(true) },
  },
  "takes a part, and the others of the queue get the rest": {
    ...{ quota: 8, runs: [4, 4], nominee: 8, comes: 4, preempted: 2 },
    // No gang passes the former nominee in a strict queue.
    running: { BEST_EFFORT_FIFO: "comes:4:gpu/h100 runs0:4:gpu/h100", STRICT_FIFO: "comes:4:gpu/h100" },
    passes: same(true),
  },
  "needs more, and preempts others beside": {
    ...{ quota: 8, runs: [4, 4], nominee: 4, comes: 8, preempted: 2 },
    ...{ running: same("comes:8:gpu/h100"), passes: same(true) },
  },
  "fits beside": {
    ...{ quota: 8, runs: [4], nominee: 8, comes: 0, preempted: 1 },
    ...{ running: same("nominee:8:gpu/h100"), passes: same(false) },
  },
  "has room of its own": {
    ...{ quota: 16, runs: [6, 6], nominee: 6, comes: 2, preempted: 1 },
    ...{ running: same("comes:2:gpu/h100 nominee:6:gpu/h100 runs1:6:gpu/h100"), passes: same(false) },
  },
  "can never run": {
    ...{ quota: 8, runs: [8], nominee: 8, comes: 9, preempted: 1 },
    running: { BEST_EFFORT_FIFO: "nominee:8:gpu/h100", STRICT_FIFO: "" },
    passes: same(false),
  },
};

for (const strategy of STRATEGIES) {
  for (const [what, row] of Object.entries(rows)) {
    test(`while a nominee waits, an earlier gang of its ${strategy} queue ${what}`, () => {
      const fleet = new RestFleet({ queues: [queueOf(strategy, row.quota)] }, { drainRounds: 3 });
      for (const [at, size] of row.runs.entries()) fleet.submit(gang(`runs${at}`, size, 0));
      playToRest(fleet);
      fleet.submit(gang("nominee", row.nominee, 1));
      fleet.step();
      assert.notEqual(fleet.gangs.get("nominee")?.nomination, undefined);
      if (row.comes > 0) fleet.submit(gang("comes", row.comes, 2));
      const passed = new Set<string>();
      const admitted: string[] = [];
      playToRest(fleet, ({ preemptions, admissions }) => {
        for (const { takesOver = [] } of preemptions) {
          for (const { jobUid, victims } of takesOver) if (victims !== undefined) passed.add(jobUid);
        }
        for (const { jobUid } of admissions) admitted.push(jobUid);
      });
      assert.equal(fleet.running, row.running[strategy]);
      assert.deepEqual([...passed], row.passes[strategy] ? ["nominee"] : []);
      assert.equal(fleet.preempted, row.preempted);
      if (row.passes[strategy]) assert.ok(!admitted.includes("nominee"), "the nominee has not started in between");
    });
  }
}

const WORLDS = Number(process.env["GANGWAY_WORLDS"] ?? 600);
const FIRST = Number(process.env["GANGWAY_SEED"] ?? 1);

/** What a state that differs only in that a gang does not exist would give gangs of its queue that come before it. */
function givenWithout(fleet: RestFleet, nominee: PlanGang): readonly string[] {
  const { admissions, preemptions } = fleet.without(nominee.uid).round(fleet.nowMs, { admissionsMax: 1_000 });
  const given = [...admissions.filter(({ kind }) => kind === "admit"), ...preemptions.map(({ planned }) => planned)];
  const victims = new Set(nominee.nomination?.victims.map(({ jobUid }) => jobUid));
  return given.flatMap(({ jobUid }) => {
    const gang = fleet.gangs.get(jobUid);
    const isBefore = gang?.queue === nominee.queue && gang.nomination === undefined && !victims.has(jobUid);
    return isBefore && compareGangs({ facts: gang }, { facts: nominee }) < 0 ? [jobUid] : [];
  });
}

for (const [name, of] of Object.entries({
  "one flavor": { strategies: ALL_STRATEGIES, flavorsMax: 1, elastic: false, gangsMax: 10 },
  "up to three flavors and elastic gangs": { strategies: ALL_STRATEGIES, flavorsMax: 3, elastic: true, gangsMax: 10 },
})) {
  test(`with ${name}: no nominee starts while an earlier gang of its queue could in its place`, (context) => {
    const met = { nominees: 0, passed: 0 };
    for (let seed = FIRST; seed < FIRST + WORLDS; seed++) {
      const draw = new Draw(seed);
      const world = randomRest(draw, of);
      const fleet = new RestFleet(world, { drainRounds: 1 + draw.upTo(2) });
      const step = (): FleetPlan => {
        const nominees = [...fleet.gangs.values()].filter(({ nomination }) => nomination !== undefined);
        // Those that leave in this round have left before it.
        fleet.drain();
        const free = new Map(nominees.map((one) => [one.uid, givenWithout(fleet, fleet.gangs.get(one.uid) ?? one)]));
        const plan = fleet.step();
        const given = new Set(
          [...plan.admissions, ...plan.preemptions.map(({ planned }) => planned)].map((one) => one.jobUid),
        );
        for (const { jobUid } of plan.admissions) {
          const before = (free.get(jobUid) ?? []).filter((uid) => !given.has(uid));
          assert.deepEqual(before, [], `seed ${seed}: ${jobUid} starts`);
          if (free.has(jobUid)) met.nominees += 1;
        }
        met.passed += plan.preemptions.flatMap(({ takesOver = [] }) => takesOver).length;
        return plan;
      };
      for (const wave of world.waves) {
        for (const gang of wave) fleet.submit(gang);
        // The next ones come while victims drain.
        for (let at = draw.upTo(3); at >= 0; at--) step();
      }
      for (let moved = true; moved; ) {
        const { admissions, preemptions, withdrawn, more } = step();
        moved = admissions.length + preemptions.length + withdrawn.length > 0 || more || fleet.isDraining;
      }
    }
    context.diagnostic(`${met.nominees} nominees started, and ${met.passed} were passed, in ${WORLDS} worlds`);
    assert.ok(met.passed > WORLDS / 500 && met.nominees > WORLDS / 20, JSON.stringify(met));
  });
}
