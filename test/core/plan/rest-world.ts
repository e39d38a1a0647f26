/** Worlds in which nothing arrives or ends, played with the planner's own rounds until they are at rest. */

import { preemptionBackoffMs } from "../../../src/core/job/preemption.ts";
import { keyedReason } from "../../../src/core/plan/explain/kept-reason.ts";
import { RefusalMessages } from "../../../src/core/plan/explain/refusal-messages.ts";
import type { Change } from "../../../src/core/plan/facts/changes.ts";
import { FleetState } from "../../../src/core/plan/fleet-state.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import type { PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";
import { nominationBy, type PlannedPreemption, type PlannedVictim } from "../../../src/core/plan/model/preemption.ts";
import {
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type QueuePolicy,
} from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import { reasonOf } from "../../../src/core/plan/round/reasons.ts";
import type { FleetPlan } from "../../../src/core/plan/round/run-round.ts";
import { scopeKey } from "../../../src/core/quota/scopes.ts";
import { contentHash } from "../../../src/runtime/content-hash.ts";
import { amounts, cluster, node, pool } from "./plan-world.ts";
import type { Draw } from "./random-world.ts";

export const RESOURCE = "nvidia.com/gpu";
const ROLE = "Worker";
export const MODELS = ["h100", "a100", "l4"] as const;

export type RestGang = {
  readonly uid: string;
  readonly queue: string;
  /** GPUs: one of each member. */
  readonly size: number;
  /** Omitted: it is not elastic. */
  readonly min?: number;
  readonly priority: number;
  readonly createTimeMs: number;
};

/** The gangs come in waves: each once the world is at rest without it. */
export type RestWorld = {
  readonly queues: readonly PlanQueue[];
  readonly gangs: readonly RestGang[];
  readonly waves: readonly (readonly RestGang[])[];
};

/** A planner's state, and a store that records each plan at once. Nodes have room for everything. */
export class RestFleet {
  state = new FleetState();
  /** The last change of each entity. */
  readonly #facts = new Map<string, Change>();
  readonly gangs = new Map<string, PlanGang>();
  nowMs = 1_000_000;
  /** Whole gangs that were preempted, and how often elastic ones gave up members. */
  preempted = 0;
  shrunk = 0;
  readonly #used = new Map<string, number>();
  #version = 1;

  readonly #drainRounds: number;
  #leaving: readonly { readonly victim: PlannedVictim; readonly rounds: number }[] = [];

  constructor({ queues }: Pick<RestWorld, "queues">, { drainRounds = 0 } = {}) {
    this.#drainRounds = drainRounds;
    for (const one of queues) this.#apply({ kind: "queue", name: one.name, version: 1, queue: one });
    const models = new Set(queues.flatMap(({ quotas }) => quotas.map(({ flavor }) => flavor.slice("gpu/".length))));
    for (const model of models) {
      this.#apply({ kind: "pool", name: `gpu/${model}`, version: 1, pool: pool(`gpu/${model}`) });
    }
    const room = amounts(1_000_000, 1e6);
    const nodes = [...models].map((model) => node(model, model, { allocatable: room, free: room }));
    const { capacity: _, ...facts } = cluster("east", { nodes });
    this.#apply({ kind: "cluster", name: "east", version: 1, facts });
    const changes = nodes.map((one) => {
      const key = { kind: "node", name: one.name } as const;
      return { key, entry: { ...key, node: one, members: [] } };
    });
    this.#apply({ kind: "capacity", cluster: "east", epoch: 1, since: null, sequence: 1, changes });
  }

  #apply(change: Change): void {
    const { kind } = change;
    const name =
      kind === "sum" ? scopeKey(change.scope) : "uid" in change ? change.uid : "name" in change ? change.name : "";
    this.#facts.set(`${kind} ${name}`, change);
    this.state.apply(change);
  }

  /** Another planner takes over, and loads the state. */
  reload(): void {
    this.state = new FleetState();
    for (const change of this.#facts.values()) this.state.apply(change);
  }

  /** The state of a planner that has loaded all but one gang that waits. */
  without(uid: string): FleetState {
    const state = new FleetState();
    for (const [key, change] of this.#facts) if (key !== `gang ${uid}`) state.apply(change);
    return state;
  }

  /** Why a gang waits, in words. */
  wordsOf(uid: string): string {
    const { parts } = this.state;
    const gang = parts.queues.gangs.get(uid);
    const cause = gang === undefined ? null : reasonOf(parts, gang, this.nowMs);
    if (gang === undefined || cause === null) return "";
    const messages = new RefusalMessages(parts, { callers: [], admissions: [] });
    return messages.refusalOf(gang.facts, keyedReason(cause).cause).message;
  }

  /** A new gang, or another size of one that waits. */
  submit(gang: RestGang): void {
    const { ask, askHash } = planGangOf(gang);
    this.#set({ ...planGangOf(gang), ...this.gangs.get(gang.uid), ask, askHash });
  }

  setQueue(queue: PlanQueue): void {
    this.#apply({ kind: "queue", name: queue.name, version: this.#next(), queue });
  }

  end(uid: string): void {
    const gang = this.gangs.get(uid) as PlanGang;
    this.#use(gang, -1);
    this.gangs.delete(uid);
    this.#apply({ kind: "gang", uid, version: this.#next(), gang: null });
  }

  /** True while pods of victims have not ended. */
  get isDraining(): boolean {
    return this.#leaving.length > 0;
  }

  /** One round, recorded. Victims leave `drainRounds` rounds later. */
  step(): FleetPlan {
    this.drain();
    const plan = this.state.round(this.nowMs, { admissionsMax: Number.POSITIVE_INFINITY });
    for (const planned of plan.admissions) this.#admit(planned);
    for (const preemption of plan.preemptions) this.#preempt(preemption);
    for (const uid of plan.withdrawn) this.#set(withoutNomination(this.gangs.get(uid) as PlanGang));
    this.nowMs += 1;
    return plan;
  }

  /** The members that run, with their pools. */
  get running(): string {
    return [...this.gangs.values()]
      .flatMap((gang) => gang.admissions.map((live) => `${gang.uid}:${live.members[ROLE]}:${poolOf(live.flavors)}`))
      .sort()
      .join(" ");
  }

  usedOf(uid: string): ReadonlyMap<string, number> {
    const [live] = this.gangs.get(uid)?.admissions ?? [];
    return live === undefined ? new Map() : new Map([[poolOf(live.flavors), live.members[ROLE] ?? 0]]);
  }

  /** The first time after now at which a gang has backed off. Null: none backs off. */
  nextBackoffMs(): number | null {
    const times = [...this.gangs.values()].flatMap(({ backoff }) => backoff?.notBeforeMs ?? []);
    const later = times.filter((atMs) => atMs > this.nowMs);
    return later.length === 0 ? null : Math.min(...later);
  }

  #admit({ jobUid, admission: number, members, flavors, flavorLabels }: PlannedAdmission): void {
    const gang = this.gangs.get(jobUid) as PlanGang;
    this.#use(gang, -1);
    const [before] = gang.admissions;
    const times = { admitTimeMs: before?.admitTimeMs ?? this.nowMs, tokensReleasedMs: null, goneMs: null };
    const live = { number, cluster: "east", state: "live" as const, members, flavors, flavorLabels, ...times };
    const made = { ...withoutNomination(gang), waits: false, admissions: [live], lastAdmission: number };
    this.#use(made, 1);
    this.#set(made);
  }

  #preempt(preemption: PlannedPreemption): void {
    const { planned, victims, takesOver = [] } = preemption;
    const ended = takesOver.filter((one) => one.victims !== undefined);
    for (const { jobUid } of ended) this.#set(withoutNomination(this.gangs.get(jobUid) as PlanGang));
    for (const victim of victims) {
      const gang = this.gangs.get(victim.jobUid) as PlanGang;
      const { keeps } = victim;
      this.#set(keeps === undefined ? { ...gang, evicted: true } : { ...gang, shrinksTo: keeps });
      this.#leaving = [...this.#leaving, { victim, rounds: this.#drainRounds }];
    }
    const gang = this.gangs.get(planned.jobUid) as PlanGang;
    this.#set({ ...gang, nomination: nominationBy(preemption, this.nowMs) });
  }

  /** Lets victims go whose pods have ended by now. */
  drain(): void {
    const due = this.#leaving.filter(({ rounds }) => rounds === 0);
    this.#leaving = this.#leaving.flatMap((one) => (one.rounds === 0 ? [] : [{ ...one, rounds: one.rounds - 1 }]));
    for (const { victim } of due) this.#let(victim);
  }

  #let({ jobUid, keeps, treeDigest }: PlannedVictim): void {
    const { evicted: _evicted, shrinksTo: _shrinks, ...gang } = this.gangs.get(jobUid) as PlanGang;
    this.#use(gang, -1);
    if (keeps !== undefined) {
      this.shrunk += 1;
      const admissions = gang.admissions.map((live) => ({ ...live, members: keeps }));
      this.#use({ ...gang, admissions }, 1);
      this.#set({ ...gang, admissions });
      return;
    }
    this.preempted += 1;
    const preemptions = (gang.preemptions ?? 0) + 1;
    const notBeforeMs = this.nowMs + preemptionBackoffMs(preemptions);
    const backoff = { undone: 1, notBeforeMs, lastCluster: "east" };
    const preemptedIn = treeDigest === undefined ? {} : { preemptedIn: treeDigest };
    this.#set({ ...gang, waits: true, admissions: [], preemptions, backoff, ...preemptedIn });
  }

  #set(gang: PlanGang): void {
    const made = { ...gang, version: this.#next(), generation: gang.generation + 1 };
    this.gangs.set(made.uid, made);
    this.#apply({ kind: "gang", uid: made.uid, version: made.version, gang: made });
  }

  #use({ queue, admissions }: PlanGang, times: 1 | -1): void {
    for (const { flavors, members } of admissions) {
      const key = `${queue} ${poolOf(flavors)}`;
      const used = (this.#used.get(key) ?? 0) + times * (members[ROLE] ?? 0);
      this.#used.set(key, used);
      const scope = { kind: "queue" as const, pool: poolOf(flavors), queue };
      this.#apply({ kind: "sum", scope, version: this.#next(), used });
    }
  }

  #next(): number {
    this.#version += 1;
    return this.#version;
  }
}

function poolOf(flavors: Readonly<Record<string, string>>): string {
  return flavors[RESOURCE] ?? "";
}

function withoutNomination({ nomination: _, ...gang }: PlanGang): PlanGang {
  return gang;
}

function planGangOf({ uid, queue, size, min, priority, createTimeMs }: RestGang): PlanGang {
  const ask = {
    roles: [{ role: ROLE, replicas: size, first: min ?? size, podClass: 0 }],
    podClasses: [{ requests: { [RESOURCE]: 1000 }, scheduling: {} }],
    placement: { clusters: [], clusterSelector: {}, gpuModels: [] },
    elastic: min !== undefined,
    service: false,
  };
  return {
    uid,
    namespace: "ml",
    name: uid,
    project: "research",
    queue,
    priority,
    createTimeMs,
    version: 1,
    generation: 1,
    askHash: contentHash(ask),
    ask,
    waits: true,
    ends: false,
    suspended: false,
    awaitsResult: null,
    backoff: null,
    waitsSinceMs: createTimeMs,
    admissions: [],
    lastAdmission: 0,
  };
}

export type RandomRest = {
  readonly strategies: readonly QueuePolicy["fairSharing"][];
  readonly flavorsMax: number;
  readonly elastic: boolean;
  readonly gangsMax: number;
};

/** A tree below one root, and gangs of its leaves, that all wait. */
export function randomRest(draw: Draw, of: RandomRest): RestWorld {
  const flavors = MODELS.slice(0, 1 + draw.upTo(of.flavorsMax - 1));
  const fairSharing = draw.of(of.strategies);
  const ownsNothing = draw.chance(0.5);
  const quotas = (max: number) =>
    flavors.map((model) => ({ flavor: `gpu/${model}`, resource: RESOURCE, nominal: draw.upTo(max) }));
  const own = () =>
    ownsNothing ? flavors.map((model) => ({ flavor: `gpu/${model}`, resource: RESOURCE, nominal: 0 })) : quotas(4);
  const policy = (): QueuePolicy => {
    const reclaimWithinTree = draw.of(["NEVER", "LOWER_PRIORITY", "ANY", "ANY", "ANY"] as const);
    const borrows = reclaimWithinTree !== "NEVER" && draw.chance(0.3);
    return {
      ...DEFAULT_POLICY,
      reserveAfterMs: 0,
      weight: draw.of([1, 1, 1, 2, 0.5, 0]),
      withinQueue: draw.of(["NEVER", "LOWER_PRIORITY", "LOWER_OR_NEWER_EQUAL_PRIORITY"]),
      reclaimWithinTree,
      borrowWithin: borrows
        ? { policy: "LOWER_PRIORITY", maxPriority: draw.maybe(1) }
        : { policy: "NEVER", maxPriority: null },
      fungibility: {
        whenCanBorrow: draw.of(["MAY_STOP_SEARCH", "TRY_NEXT_FLAVOR"]),
        whenCanPreempt: draw.of(["MAY_STOP_SEARCH", "TRY_NEXT_FLAVOR"]),
        preference: draw.of([null, null, "PREEMPTION_OVER_BORROWING", "BORROWING_OVER_PREEMPTION"]),
      },
    };
  };
  const made = (name: string, parent: string | null, mine: PlanQueue["quotas"]): PlanQueue => ({
    name,
    parent,
    strategy: draw.chance(0.2) ? "STRICT_FIFO" : "BEST_EFFORT_FIFO",
    policy: { ...policy(), fairSharing: parent === null ? fairSharing : null },
    quotas: mine,
  });
  const root = made(
    "root",
    null,
    flavors.map((model) => ({ flavor: `gpu/${model}`, resource: RESOURCE, nominal: 2 + draw.upTo(7) })),
  );
  const inner = draw.chance(0.4) ? [made("team", "root", own())] : [];
  const parents = ["root", ...inner.map(({ name }) => name)];
  const leaves = draw.list(2 + draw.upTo(2), (at) => made(`q${at}`, draw.of(parents), own()));
  const sizes = 2 + draw.upTo(3);
  const gangs = draw.list(2 + draw.upTo(of.gangsMax - 2), (at): RestGang => {
    const size = 1 + draw.upTo(sizes);
    const isElastic = of.elastic && draw.chance(0.25);
    return {
      uid: `g${at}`,
      queue: draw.of(leaves).name,
      size,
      ...(isElastic ? { min: 1 + draw.upTo(size - 1) } : {}),
      priority: draw.upTo(1),
      createTimeMs: draw.upTo(3),
    };
  });
  const waves: RestGang[][] = [[]];
  for (const gang of gangs) {
    if (draw.chance(0.4)) waves.push([]);
    waves.at(-1)?.push(gang);
  }
  return { queues: [root, ...inner, ...leaves], gangs, waves };
}

export const ALL_STRATEGIES = [
  FAIR_SHARING_STRATEGIES,
  FAIR_SHARING_STRATEGIES,
  FAIR_SHARING_STRATEGIES.slice(1),
  FAIR_SHARING_STRATEGIES.slice(0, 1),
  null,
];

/** So many moments at rest a world has at most. */
const MOMENTS_MAX = 400;
/** So many rounds come to rest at one time at most. */
const ROUNDS_MAX = 120;

export type Played = {
  /** Null: no set of running members has come twice, and the world is at rest for good. */
  readonly fault: string | null;
  readonly preempted: number;
  readonly shrunk: number;
  readonly moments: readonly string[];
};

/** Plays a world until nothing changes any more, also after all backoffs. `onStep` sees each plan after its record. */
export function playToRest(
  fleet: RestFleet,
  onStep: (plan: FleetPlan, fleet: RestFleet) => void = () => undefined,
): Played {
  const moments: string[] = [];
  const seen = new Set<string>();
  const before = { preempted: fleet.preempted, shrunk: fleet.shrunk };
  const end = (fault: string | null) => {
    const preempted = fleet.preempted - before.preempted;
    return { fault, preempted, shrunk: fleet.shrunk - before.shrunk, moments };
  };
  let last: string | null = null;
  for (let at = 0; at < MOMENTS_MAX; at++) {
    let replanAtMs: number | null = null;
    for (let rounds = 0, moved = true; moved; rounds++) {
      if (rounds > ROUNDS_MAX) return end(`busy for ${ROUNDS_MAX} rounds at one time`);
      const plan = fleet.step();
      onStep(plan, fleet);
      const { admissions, preemptions, withdrawn, more } = plan;
      ({ replanAtMs } = plan);
      moved = admissions.length + preemptions.length + withdrawn.length > 0 || more || fleet.isDraining;
    }
    const { running } = fleet;
    if (running !== last) {
      moments.push(running);
      if (seen.has(running)) return end(`comes twice: ${running}`);
      seen.add(running);
      last = running;
    }
    const times = [replanAtMs, fleet.nextBackoffMs()].filter((one) => one !== null);
    const nextMs = Math.min(...times);
    if (!Number.isFinite(nextMs)) return end(null);
    fleet.nowMs = Math.max(fleet.nowMs, nextMs);
  }
  return end("no rest");
}
