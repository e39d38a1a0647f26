/** Worlds in which nothing arrives or ends, played with the planner's own rounds until they are at rest. */

import { ofRole } from "../../../src/core/job/flavor-labels.ts";
import { preemptionBackoffMs } from "../../../src/core/job/preemption.ts";
import { keyedReason } from "../../../src/core/plan/explain/kept-reason.ts";
import { RefusalMessages } from "../../../src/core/plan/explain/refusal-messages.ts";
import type { Change } from "../../../src/core/plan/facts/changes.ts";
import { FleetState } from "../../../src/core/plan/fleet-state.ts";
import { amountsOfMembers } from "../../../src/core/plan/model/flavors.ts";
import { memberGroups } from "../../../src/core/plan/model/gang.ts";
import type { PlanGang, PlannedFrom } from "../../../src/core/plan/model/plan-gang.ts";
import type { PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";
import { nominationBy, type PlannedPreemption, type PlannedVictim } from "../../../src/core/plan/model/preemption.ts";
import {
  DEFAULT_POLICY,
  FAIR_SHARING_STRATEGIES,
  type QueuePolicy,
} from "../../../src/core/plan/model/queue-policy.ts";
import type { PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import { compareAged } from "../../../src/core/plan/queues/order.ts";
import type { GangRecord } from "../../../src/core/plan/queues/records.ts";
import { reasonOf } from "../../../src/core/plan/round/reasons.ts";
import type { FleetPlan } from "../../../src/core/plan/round/run-round.ts";
import { scopeKey } from "../../../src/core/quota/scopes.ts";
import { contentHash } from "../../../src/runtime/content-hash.ts";
import { amounts, cluster, node, pool } from "./plan-world.ts";
import type { Draw } from "./random-world.ts";
import { RestLedger, type TellHeld } from "./rest-ledger.ts";

export const RESOURCE = "nvidia.com/gpu";
const ROLE = "Worker";
const HEADS = "Master";
export const MODELS = ["h100", "a100", "l4"] as const;

export type RestGang = {
  readonly uid: string;
  readonly queue: string;
  /** GPUs: one of each member. */
  readonly size: number;
  /** Members of a second replica type, each with a GPU, which may get another flavor. Omitted: none. */
  readonly heads?: number;
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

/** How many GPUs of each model each cluster has. */
export type Rooms = Readonly<Record<string, Readonly<Record<string, number>>>>;

type RestOptions = {
  /** How many rounds later a victim leaves. Omitted: at once. */
  readonly drainRounds?: number | (() => number);
  /** Omitted: one cluster has room for everything. */
  readonly rooms?: Rooms;
};

/** A planner's state, and a store that records each plan at once. */
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
  readonly #ledger = new RestLedger((...of) => this.#tellHeld(...of));
  #version = 1;

  readonly #queues: readonly PlanQueue[];
  readonly #drainRounds: () => number;
  #leaving: readonly { readonly victim: PlannedVictim; readonly rounds: number }[] = [];

  constructor({ queues }: Pick<RestWorld, "queues">, { drainRounds = 0, rooms }: RestOptions = {}) {
    this.#drainRounds = typeof drainRounds === "number" ? () => drainRounds : drainRounds;
    this.#queues = queues;
    for (const one of queues) this.#apply({ kind: "queue", name: one.name, version: 1, queue: one });
    const models = new Set(queues.flatMap(({ quotas }) => quotas.map(({ flavor }) => flavor.slice("gpu/".length))));
    for (const model of models) {
      this.#apply({ kind: "pool", name: `gpu/${model}`, version: 1, pool: pool(`gpu/${model}`) });
    }
    const everything = { east: Object.fromEntries([...models].map((model) => [model, 1_000_000])) };
    for (const [name, room] of Object.entries(rooms ?? everything)) this.#addCluster(name, room);
  }

  #addCluster(name: string, room: Readonly<Record<string, number>>): void {
    const nodes = Object.entries(room).map(([model, gpus]) => {
      const all = amounts(gpus, 1e6);
      return node(model, model, { allocatable: all, free: all });
    });
    const { capacity: _, ...facts } = cluster(name, { nodes });
    this.#apply({ kind: "cluster", name, version: 1, facts });
    const changes = nodes.map((one) => {
      const key = { kind: "node", name: one.name } as const;
      return { key, entry: { ...key, node: one, members: [] } };
    });
    this.#apply({ kind: "capacity", cluster: name, epoch: 1, since: null, sequence: 1, changes });
  }

  #apply(change: Change): void {
    const { kind } = change;
    const own = "uid" in change ? change.uid : "name" in change ? change.name : "";
    const name = kind === "sum" ? scopeKey(change.scope) : kind === "capacity" ? change.cluster : own;
    this.#facts.set(`${kind} ${name}`, change);
    this.state.apply(change);
  }

  /** Another planner takes over, and loads the state. */
  reload(): void {
    this.state = new FleetState();
    for (const change of this.#facts.values()) this.state.apply(change);
  }

  /** The state of a planner that has loaded everything, but that one gang is no nominee and holds nothing. */
  without(uid: string): FleetState {
    const { queue = "" } = this.gangs.get(uid) ?? {};
    const held = new Map([...this.#ledger.heldBy(uid)].map(([pool, amount]) => [sumKey(queue, pool), amount]));
    const state = new FleetState();
    for (const [key, change] of this.#facts) {
      if (change.kind === "gang" && change.uid === uid && change.gang !== null)
        state.apply({ ...change, gang: withoutNomination(change.gang) });
      else if (change.kind === "sum") state.apply({ ...change, used: change.used - (held.get(key) ?? 0) });
      else if (key !== `holds ${uid}`) state.apply(change);
    }
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
    const made = { ...planGangOf(gang), waitsSinceMs: this.nowMs };
    this.#set({ ...made, ...this.gangs.get(gang.uid), ask, askHash });
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

  /** True if the order of a queue puts one of its waiting gangs before another one. */
  isBefore(uid: string, other: string): boolean {
    const { gangs } = this.state.parts.queues;
    return compareAged(gangs.get(uid) as GangRecord, gangs.get(other) as GangRecord, this.nowMs) < 0;
  }

  isStrict(queue: string): boolean {
    return this.#queues.some(({ name, strategy }) => name === queue && strategy === "STRICT_FIFO");
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
    for (const uid of plan.withdrawn) this.#withdraw(uid);
    this.nowMs += 1;
    return plan;
  }

  /** The members that run, with their pools. */
  get running(): string {
    return [...this.gangs.values()]
      .flatMap(({ uid, admissions }) => admissions.map((live) => `${uid}:${live.members[ROLE]}:${poolsOf(live)}`))
      .sort()
      .join(" ");
  }

  usedOf(uid: string): ReadonlyMap<string, number> {
    const gang = this.gangs.get(uid);
    const [live] = gang?.admissions ?? [];
    return gang === undefined || live === undefined ? new Map() : usesOf(gang, live);
  }

  /** The first time after now at which a gang has backed off. Null: none backs off. */
  nextBackoffMs(): number | null {
    const times = [...this.gangs.values()].flatMap(({ backoff }) => backoff?.notBeforeMs ?? []);
    const later = times.filter((atMs) => atMs > this.nowMs);
    return later.length === 0 ? null : Math.min(...later);
  }

  #admit({ jobUid, admission: number, cluster, members, flavors, flavorLabels }: PlannedAdmission): void {
    this.#ledger.release(jobUid);
    const gang = this.gangs.get(jobUid) as PlanGang;
    this.#use(gang, -1);
    const [before] = gang.admissions;
    const times = { admitTimeMs: before?.admitTimeMs ?? this.nowMs, tokensReleasedMs: null, goneMs: null };
    const live = { number, cluster, state: "live" as const, members, flavors, flavorLabels, ...times };
    const made = { ...withoutNomination(gang), waits: false, admissions: [live], lastAdmission: number };
    this.#use(made, 1);
    this.#set(made);
  }

  #withdraw(uid: string): void {
    this.#ledger.release(uid);
    this.#set(withoutNomination(this.gangs.get(uid) as PlanGang));
  }

  #preempt(preemption: PlannedPreemption): void {
    const { planned, victims, takesOver = [] } = preemption;
    const nomination = nominationBy(preemption, this.nowMs);
    this.#ledger.name(planned, [...nomination.victims, ...takesOver]);
    for (const overtaken of takesOver) {
      this.#ledger.cede(overtaken);
      if (overtaken.victims !== undefined) this.#withdraw(overtaken.jobUid);
      const { treeDigest: preemptedIn } = overtaken;
      if (preemptedIn !== undefined) this.#set({ ...(this.gangs.get(overtaken.jobUid) as PlanGang), preemptedIn });
    }
    for (const victim of victims) {
      const gang = this.gangs.get(victim.jobUid) as PlanGang;
      const { keeps } = victim;
      this.#set(keeps === undefined ? { ...gang, evicted: true } : { ...gang, shrinksTo: keeps });
      this.#leaving = [...this.#leaving, { victim, rounds: this.#drainRounds() }];
    }
    const gang = this.gangs.get(planned.jobUid) as PlanGang;
    this.#set({ ...gang, nomination });
  }

  /** Lets victims go whose pods have ended by now. */
  drain(): void {
    const due = this.#leaving.filter(({ rounds }) => rounds === 0);
    this.#leaving = this.#leaving.flatMap((one) => (one.rounds === 0 ? [] : [{ ...one, rounds: one.rounds - 1 }]));
    for (const { victim } of due) if (this.gangs.get(victim.jobUid)?.admissions.length !== 0) this.#let(victim);
  }

  #let({ jobUid, admission, keeps, treeDigest }: PlannedVictim): void {
    const { shrinksTo: _shrinks, ...gang } = this.gangs.get(jobUid) as PlanGang;
    const before = this.usedOf(jobUid);
    this.#use(gang, -1);
    const [live] = gang.admissions as [PlannedFrom];
    const kept = keeps === undefined ? new Map<string, number>() : usesOf(gang, { ...live, members: keeps });
    const given = new Map([...before].map(([pool, amount]) => [pool, amount - (kept.get(pool) ?? 0)]));
    this.#ledger.turnOver({ jobUid, admission }, given);
    if (keeps !== undefined) {
      this.shrunk += 1;
      const admissions = gang.admissions.map((live) => ({ ...live, members: keeps }));
      this.#use({ ...gang, admissions }, 1);
      this.#set({ ...gang, admissions });
      return;
    }
    this.#leaving = this.#leaving.filter(({ victim }) => victim.jobUid !== jobUid);
    const { evicted: _evicted, ...whole } = gang;
    this.preempted += 1;
    const preemptions = (gang.preemptions ?? 0) + 1;
    const notBeforeMs = this.nowMs + preemptionBackoffMs(preemptions);
    const backoff = { undone: 1, notBeforeMs, lastCluster: live.cluster ?? "" };
    const preemptedIn = treeDigest === undefined ? {} : { preemptedIn: treeDigest };
    const waits = { waits: true, waitsSinceMs: this.nowMs };
    this.#set({ ...whole, ...waits, admissions: [], preemptions, backoff, ...preemptedIn });
  }

  #set(gang: PlanGang): void {
    const made = { ...gang, version: this.#next(), generation: gang.generation + 1 };
    this.gangs.set(made.uid, made);
    this.#apply({ kind: "gang", uid: made.uid, version: made.version, gang: made });
  }

  #use(gang: PlanGang, times: 1 | -1): void {
    for (const [pool, amount] of gang.admissions.flatMap((live) => [...usesOf(gang, live)]))
      this.#addTo(gang.queue, pool, times * amount);
  }

  #addTo(queue: string, pool: string, amount: number): void {
    const key = sumKey(queue, pool);
    const used = (this.#used.get(key) ?? 0) + amount;
    this.#used.set(key, used);
    this.#apply({ kind: "sum", scope: { kind: "queue", pool, queue }, version: this.#next(), used });
  }

  #tellHeld: TellHeld = (uid, held, { pool, amount }) => {
    const { queue, lastAdmission } = this.gangs.get(uid) as PlanGang;
    this.#addTo(queue, pool, amount);
    const amounts = Object.fromEntries([...held].filter(([, one]) => one > 0));
    const holds = Object.keys(amounts).length === 0 ? null : { admission: lastAdmission + 1, amounts };
    this.#apply({ kind: "holds", uid, version: this.#next(), holds });
  };

  #next(): number {
    this.#version += 1;
    return this.#version;
  }
}

function sumKey(queue: string, pool: string): string {
  return `sum ${scopeKey({ kind: "queue", pool, queue })}`;
}

/** The pool of a running gang, or those of the heads and of the workers. */
function poolsOf({ flavors }: Pick<PlannedFrom, "flavors">): string {
  const [heads, workers] = [HEADS, ROLE].map((role) => ofRole(flavors, role)[RESOURCE] ?? "");
  return heads === workers ? `${workers}` : `${heads}+${workers}`;
}

function usesOf({ ask }: Pick<PlanGang, "ask">, { members, flavors }: PlannedFrom): ReadonlyMap<string, number> {
  return amountsOfMembers(memberGroups(ask, members), flavors);
}

function withoutNomination({ nomination: _, ...gang }: PlanGang): PlanGang {
  return gang;
}

function planGangOf({ uid, queue, size, heads = 0, min, priority, createTimeMs }: RestGang): PlanGang {
  const first = heads === 0 ? [] : [{ role: HEADS, replicas: heads, first: heads, podClass: 0 }];
  const ask = {
    roles: [...first, { role: ROLE, replicas: size, first: min ?? size, podClass: 0 }],
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
  /** True: some gangs have a second replica type. Omitted: none has. */
  readonly heads?: boolean;
  /** True: gangs of some queues age. Omitted: none does. */
  readonly ages?: boolean;
  /** The highest priority. Omitted: 1. */
  readonly priorityMax?: number;
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
      ...(of.ages && draw.chance(0.5) ? { ageing: { intervalMs: 1 + draw.upTo(5), step: 1, limit: 3 } } : {}),
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
      ...(of.heads && draw.chance(0.5) ? { heads: 1 + draw.upTo(1) } : {}),
      ...(isElastic ? { min: 1 + draw.upTo(size - 1) } : {}),
      priority: draw.upTo(of.priorityMax ?? 1),
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

/** Up to three clusters, each with some GPUs of some models. */
export function randomRooms(draw: Draw, { queues }: Pick<RestWorld, "queues">): Rooms {
  const models = (queues[0]?.quotas ?? []).map(({ flavor }) => flavor.slice("gpu/".length));
  const clusters = ["east", "north", "west"].slice(0, 1 + draw.upTo(2));
  const room = () => models.filter(() => draw.chance(0.8)).map((model) => [model, 1 + draw.upTo(7)]);
  return Object.fromEntries(clusters.map((name) => [name, Object.fromEntries(room())]));
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
