import assert from "node:assert/strict";
import { test } from "node:test";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import {
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type QueuePolicy,
} from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import type { FleetPlan } from "../../../src/core/plan/round/run-round.ts";
import { Draw } from "./random-world.ts";
import {
  ALL_STRATEGIES,
  playToRest,
  type RandomRest,
  RESOURCE,
  RestFleet,
  randomRest,
  randomRooms,
} from "./rest-world.ts";

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

test("an earlier gang takes a nominee's place before a queue with a greater share gets what else it needs", () => {
  const of = (name: string, nominal: number): PlanQueue => {
    const tree = { parent: name === "all" ? null : "all", strategy: "BEST_EFFORT_FIFO" as const };
    const quotas = [{ flavor: "gpu/h100", resource: RESOURCE, nominal }];
    const fairSharing = name === "all" ? FAIR_SHARING_STRATEGIES : null;
    const preempts = { withinQueue: "LOWER_PRIORITY", reclaimWithinTree: "LOWER_PRIORITY" } as const;
    return { name, ...tree, quotas, policy: { ...DEFAULT_POLICY, reserveAfterMs: 0, ...preempts, fairSharing } };
  };
  const fleet = new RestFleet({ queues: [of("all", 6), of("q", 0), of("other", 0)] });
  fleet.submit(gang("runs", 2, 0));
  fleet.submit({ ...gang("beside", 3, 0), queue: "other" });
  playToRest(fleet);
  fleet.submit(gang("nominee", 2, 1));
  fleet.step();
  assert.notEqual(fleet.gangs.get("nominee")?.nomination, undefined);
  fleet.submit(gang("comes", 3, 2));
  fleet.submit({ ...gang("more", 1, 0), queue: "other" });
  playToRest(fleet);
  assert.equal(fleet.running, "beside:3:gpu/h100 comes:3:gpu/h100");
  assert.equal(fleet.preempted, 1);
});

const WORLDS = Number(process.env["GANGWAY_WORLDS"] ?? 400);
const FIRST = Number(process.env["GANGWAY_SEED"] ?? 1);
/** More rounds than any of these worlds needs. */
const ROUNDS_MAX = 200;

/** The clusters of the gangs that a plan admits or nominates. */
type Given = ReadonlyMap<string, string | null>;

function givenBy({ admissions, preemptions }: FleetPlan): Given {
  const admitted = admissions.filter(({ kind }) => kind === "admit");
  const all = [...admitted, ...preemptions.map(({ planned }) => planned)];
  return new Map(all.map(({ jobUid, cluster }) => [jobUid, cluster]));
}

/** What a state gives that differs only in that a gang is no nominee. `before`: gangs of its queue before it. */
type GivenWithout = { readonly all: Given; readonly before: readonly string[] };

function givenWithout(fleet: RestFleet, nominee: PlanGang): GivenWithout {
  const all = givenBy(fleet.without(nominee.uid).round(fleet.nowMs, { admissionsMax: 1_000 }));
  const victims = new Set(nominee.nomination?.victims.map(({ jobUid }) => jobUid));
  const before = [...all.keys()].filter((uid) => {
    const gang = fleet.gangs.get(uid);
    const mayPass = gang?.queue === nominee.queue && gang.nomination === undefined && !victims.has(uid);
    return mayPass && fleet.isBefore(uid, nominee.uid);
  });
  return { all, before };
}

/** Plays a step of a world in which no nominee may start while an earlier gang of its queue could in its place. */
function stepInOrder(fleet: RestFleet, name: string): FleetPlan & { readonly started: number } {
  const nominees = [...fleet.gangs.values()].filter(({ nomination }) => nomination !== undefined);
  // Those that leave in this round have left before it.
  fleet.drain();
  const without = new Map(nominees.map((one) => [one.uid, givenWithout(fleet, fleet.gangs.get(one.uid) ?? one)]));
  const plan = fleet.step();
  const given = givenBy(plan);
  for (const { jobUid } of plan.admissions) {
    const { before, all } = without.get(jobUid) ?? { before: [], all: given };
    const { queue } = fleet.gangs.get(jobUid) as PlanGang;
    const others = (of: Given) => [...of].filter(([uid]) => fleet.gangs.get(uid)?.queue !== queue);
    // What a nominee holds counts in the share of its queue, so that the turns of other queues may differ.
    const isSame = others(given).sort().join() === others(all).sort().join();
    const passed = isSame ? before.filter((uid) => !given.has(uid)) : [];
    assert.deepEqual(passed, [], `${name}: ${jobUid} starts`);
  }
  return { ...plan, started: plan.admissions.filter(({ jobUid }) => without.has(jobUid)).length };
}

const MANY = { strategies: ALL_STRATEGIES, gangsMax: 12, priorityMax: 3, ages: true };
const KINDS: Readonly<Record<string, RandomRest>> = {
  "with one flavor": { ...MANY, flavorsMax: 1, elastic: false },
  "with up to three flavors and elastic gangs": { ...MANY, flavorsMax: 3, elastic: true },
};

for (const [name, of] of Object.entries(KINDS)) {
  for (const [where, hasRooms] of Object.entries({ "room for everything": false, "little room": true })) {
    test(`${name}, ${where}: no nominee starts while an earlier gang of its queue could in its place`, (context) => {
      const met = { nominees: 0, passed: 0 };
      for (let seed = FIRST; seed < FIRST + WORLDS; seed++) {
        const draw = new Draw(seed);
        const world = randomRest(draw, of);
        const rooms = hasRooms ? { rooms: randomRooms(draw, world) } : {};
        const fleet = new RestFleet(world, {
          drainRounds: seed % 2 === 0 ? () => draw.upTo(5) : 1 + draw.upTo(2),
          ...rooms,
        });
        const step = (): FleetPlan => {
          const plan = stepInOrder(fleet, `seed ${seed}`);
          met.nominees += plan.started;
          met.passed += plan.preemptions.flatMap(({ takesOver = [] }) => takesOver).length;
          return plan;
        };
        for (const wave of world.waves) {
          for (const gang of wave) fleet.submit(gang);
          // The next ones come while victims drain.
          for (let at = draw.upTo(3); at >= 0; at--) step();
        }
        for (let moved = true, rounds = 0; moved; rounds++) {
          assert.ok(rounds < ROUNDS_MAX, `seed ${seed}: no rest after ${ROUNDS_MAX} rounds`);
          const { admissions, preemptions, withdrawn, more } = step();
          moved = admissions.length + preemptions.length + withdrawn.length > 0 || more || fleet.isDraining;
        }
      }
      context.diagnostic(`${met.nominees} nominees started, and ${met.passed} were passed, in ${WORLDS} worlds`);
      assert.ok(met.passed > WORLDS / 500 && met.nominees > WORLDS / 20, JSON.stringify(met));
    });
  }
}
