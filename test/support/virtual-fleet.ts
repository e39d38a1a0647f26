/** A fleet on a virtual clock: one cluster whose nodes never lack room, so that quotas alone decide. */

import type { Change } from "../../src/core/plan/facts/changes.ts";
import { FleetState } from "../../src/core/plan/fleet-state.ts";
import type { PlanGang } from "../../src/core/plan/model/plan-gang.ts";
import type { PlannedAdmission } from "../../src/core/plan/model/plan-types.ts";
import type { BoundMember, PlanQueue } from "../../src/core/plan/model/snapshot.ts";
import type { Scope } from "../../src/core/quota/counters.ts";
import { scopeKey } from "../../src/core/quota/scopes.ts";
import { afterPreemption } from "../../src/core/reconcile/undo/admission-backoff.ts";

export const FLAVOR = "gpu/h100";
/** The resource that its quotas count. */
export const RESOURCE = "nvidia.com/gpu";
const CLUSTER = "cluster";
const ROLE = "Worker";
/** Whole units of the resource that a node has. Each node has as much room again as its share of all quotas. */
const NODE_UNITS = 200;

type FleetNode = { readonly name: string; free: number; members: readonly BoundMember[] };

/** A gang of one pod, or an elastic one. */
export type VirtualGang = {
  readonly uid: string;
  readonly queue: string;
  readonly priority: number;
  /** Whole units that its pod requests, or all pods of an elastic gang. */
  readonly units: number;
  /** It is elastic, has pods of one unit, and may start with so many. Omitted: it is not elastic. */
  readonly minimum?: number;
  readonly createTimeMs: number;
  /** How often it was preempted, and how often it may be at most. */
  readonly preemptions?: number;
  readonly maxPreemptions?: number;
};

type Held = {
  readonly gang: PlanGang;
  readonly units: number;
  /** Where it runs. Null: it waits. */
  readonly node: FleetNode | null;
};

/** Moves a planner's state by what a store would tell it. Admissions, evictions and ends happen at once. */
export class VirtualFleet {
  readonly state = new FleetState();
  readonly #nodes: readonly FleetNode[];
  readonly #gangs = new Map<string, Held>();
  readonly #sums = new Map<string, { readonly scope: Scope; used: number; version: number }>();
  #sequence = 1;
  #queueVersion = 0;
  #counter = 0;
  #nextNode = 0;

  constructor(queues: readonly PlanQueue[]) {
    const units = queues.flatMap(({ quotas }) => quotas).reduce((sum, { nominal }) => sum + nominal, 0);
    this.#nodes = Array.from({ length: Math.ceil((2 * units) / NODE_UNITS) + 1 }, (_, at) => {
      return { name: `node-${at}`, free: NODE_UNITS, members: [] };
    });
    for (const queue of queues) this.setQueue(queue);
    const pool = { pool: FLAVOR, quota: null, projectDefault: null, namespaceDefault: null };
    this.#apply({ kind: "pool", name: FLAVOR, version: 1, pool });
    this.#apply(this.#cluster());
    const changes = this.#nodes.map((node) => entryOf(node));
    this.#apply({ kind: "capacity", cluster: CLUSTER, epoch: 1, since: null, sequence: 1, changes });
  }

  setQueue(queue: PlanQueue): void {
    this.#queueVersion += 1;
    this.#apply({ kind: "queue", name: queue.name, version: this.#queueVersion, queue });
  }

  submit({ units, minimum, ...facts }: VirtualGang): void {
    const [replicas, podUnits] = minimum === undefined ? [1, units] : [units, 1];
    const gang: PlanGang = {
      ...facts,
      namespace: "default",
      name: facts.uid,
      project: "default",
      version: 1,
      generation: 1,
      askHash: `ask-${units}-${minimum}`,
      ask: {
        roles: [{ role: ROLE, replicas, first: minimum ?? replicas, podClass: 0 }],
        podClasses: [{ requests: { [RESOURCE]: podUnits * 1000, pods: 1000 }, scheduling: {} }],
        placement: { clusters: [], clusterSelector: {}, gpuModels: [] },
        elastic: minimum !== undefined,
        service: false,
      },
      suspended: false,
      awaitsResult: null,
      backoff: null,
      waitsSinceMs: facts.createTimeMs,
      waits: true,
      ends: false,
      admissions: [],
      lastAdmission: 0,
    };
    this.#put(facts.uid, { gang, units, node: null });
  }

  gangOf(uid: string): PlanGang {
    return this.#held(uid).gang;
  }

  admit({ jobUid, admission, cluster, flavors, flavorLabels, members }: PlannedAdmission, nowMs: number): void {
    const held = this.#held(jobUid);
    const { gang, units } = held;
    const live = {
      number: admission,
      admitTimeMs: nowMs,
      state: "live" as const,
      tokensReleasedMs: null,
      goneMs: null,
    };
    const admissions = [{ ...live, cluster, flavors, flavorLabels, members }];
    const node = this.#nodeFor(units);
    const added = Array.from({ length: members[ROLE] ?? 0 }, (_, index) => {
      return { jobUid, admission, role: ROLE.toLowerCase(), index };
    });
    node.members = [...node.members, ...added];
    node.free -= units;
    const { nomination: _, ...facts } = gang;
    const after = { ...facts, waits: false, admissions, lastAdmission: admission };
    this.#counter += 1;
    this.#put(jobUid, { ...held, gang: changed(after), node });
    this.#charge(gang.queue, units);
    this.#apply(this.#cluster());
    this.#see(node);
  }

  /** Ends a gang that runs. */
  end(uid: string): void {
    this.#leave(uid);
    const { gang } = this.#held(uid);
    this.#gangs.delete(uid);
    this.#apply({ kind: "gang", uid, version: gang.version + gang.generation + 1, gang: null });
  }

  /** A gang that was preempted waits again. Returns when it may be admitted at the earliest. */
  preempt(uid: string, nowMs: number): number {
    this.#leave(uid);
    const held = this.#held(uid);
    const { preemptions = 0 } = held.gang;
    const backoff = afterPreemption(held.gang.backoff, { preemptions, why: "", nowMs });
    const waits = { waits: true, admissions: [], waitsSinceMs: nowMs, backoff, preemptions: preemptions + 1 };
    this.#put(uid, { ...held, gang: changed({ ...held.gang, ...waits }), node: null });
    return backoff.notBeforeMs;
  }

  /** Records what a gang is nominated for; null: nothing any more. */
  nominate(uid: string, nomination: NonNullable<PlanGang["nomination"]> | null): void {
    const held = this.#held(uid);
    const { nomination: _, ...facts } = held.gang;
    const version = facts.version + 1;
    const gang = nomination === null ? { ...facts, version } : { ...facts, version, nomination };
    this.#put(uid, { ...held, gang });
  }

  #leave(uid: string): void {
    const { node, units, gang } = this.#held(uid);
    if (node === null) throw new Error(`${uid} does not run`);
    node.members = node.members.filter(({ jobUid }) => jobUid !== uid);
    node.free += units;
    this.#charge(gang.queue, -units);
    this.#see(node);
  }

  #held(uid: string): Held {
    const held = this.#gangs.get(uid);
    if (held === undefined) throw new Error(`there is no gang ${uid}`);
    return held;
  }

  #put(uid: string, held: Held): void {
    this.#gangs.set(uid, held);
    const { gang } = held;
    this.#apply({ kind: "gang", uid, version: gang.version + gang.generation, gang });
  }

  /** The next node with room, in turn. */
  #nodeFor(units: number): FleetNode {
    for (let tried = 0; tried < this.#nodes.length; tried++) {
      const node = this.#nodes[this.#nextNode % this.#nodes.length] as FleetNode;
      if (node.free >= units) return node;
      this.#nextNode += 1;
    }
    throw new Error(`no node has room for ${units} units`);
  }

  #charge(queue: string, amount: number): void {
    const scopes: readonly Scope[] = [
      { kind: "pool", pool: FLAVOR },
      { kind: "queue", pool: FLAVOR, queue },
    ];
    for (const scope of scopes) {
      const sum = this.#sums.get(scopeKey(scope)) ?? { scope, used: 0, version: 0 };
      sum.used += amount;
      sum.version += 1;
      this.#sums.set(scopeKey(scope), sum);
      this.#apply({ kind: "sum", ...sum });
    }
  }

  #cluster(): Change {
    const flavors = [{ name: FLAVOR, resource: RESOURCE, nodeLabels: {} }];
    const settings = { name: CLUSTER, labels: {}, flavors, cordoned: false, reachable: true };
    const facts = { ...settings, admissionCounter: this.#counter };
    return { kind: "cluster", name: CLUSTER, version: this.#counter + 1, facts };
  }

  #see(node: FleetNode): void {
    const since = this.#sequence;
    this.#sequence += 1;
    const changes = [entryOf(node)];
    this.#apply({ kind: "capacity", cluster: CLUSTER, epoch: 1, since, sequence: this.#sequence, changes });
  }

  #apply(change: Change): void {
    const outcome = this.state.apply(change);
    if (outcome !== "applied") throw new Error(`a change of kind ${change.kind} is ${outcome}`);
  }
}

function changed(gang: PlanGang): PlanGang {
  return { ...gang, version: gang.version + 1, generation: gang.generation + 1 };
}

function entryOf({ name, free, members }: FleetNode) {
  const amounts = (units: number) => ({ [RESOURCE]: units * 1000, pods: 100_000 });
  const facts = { name, labels: {}, taints: [], unschedulable: false };
  const node = { ...facts, allocatable: amounts(NODE_UNITS), free: amounts(free) };
  return { key: { kind: "node" as const, name }, entry: { kind: "node" as const, name, node, members } };
}
