import { keyedReason } from "../../../src/core/plan/explain/kept-reason.ts";
import { RefusalMessages } from "../../../src/core/plan/explain/refusal-messages.ts";
import { FleetState } from "../../../src/core/plan/fleet-state.ts";
import type { Ask } from "../../../src/core/plan/model/ask.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import type { PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";
import { nominationBy, type PlannedPreemption } from "../../../src/core/plan/model/preemption.ts";
import type { BoundMember, PlanQueue } from "../../../src/core/plan/model/snapshot.ts";
import { reasonOf } from "../../../src/core/plan/round/reasons.ts";
import type { FleetPlan } from "../../../src/core/plan/round/run-round.ts";
import { contentHash } from "../../../src/runtime/content-hash.ts";
import { amounts, cluster, job, node, planGang, pool } from "./plan-world.ts";

export const POOL = "gpu/h100";

export type SmallGang = {
  readonly name: string;
  readonly queue: string;
  readonly gpus: number;
  readonly priority?: number;
  readonly createTimeMs?: number;
  /** Omitted: one pod, with all GPUs. Otherwise each pod has so many. */
  readonly pods?: number;
  readonly maxRuntimeMs?: number;
  readonly backfill?: true;
};

/**
 * A planner's state with one cluster, and a store that records each plan at once: admitted gangs run, and victims leave
 * and wait again, their tokens and pods gone, when their nominee is nominated.
 */
export class SmallFleet {
  readonly state = new FleetState();
  readonly gangs = new Map<string, PlanGang>();
  nowMs = 1;
  reservationsPerPool = 1;
  readonly #used = new Map<string, number>();
  /** What waiting gangs hold, by uid. */
  readonly #holds = new Map<string, number>();
  readonly #nodes: SmallNode[];
  readonly #shows: boolean;
  #version = 1;
  #sequence = 1;

  /** Without `gpusOfNodes`, one node has room for everything. `shows`: nodes show pods as soon as they are admitted. */
  constructor(queues: readonly PlanQueue[], gpusOfNodes: readonly number[] = [1_000_000], shows = false) {
    this.#shows = shows;
    for (const queue of queues) this.state.apply({ kind: "queue", name: queue.name, version: 1, queue });
    this.state.apply({ kind: "pool", name: POOL, version: 1, pool: pool(POOL) });
    this.#nodes = gpusOfNodes.map((gpus, at) => ({ name: `n${at}`, gpus, members: new Map() }));
    const { capacity: _, ...facts } = cluster("east", { nodes: [node("n0", "h100")] });
    this.state.apply({ kind: "cluster", name: "east", version: 1, facts });
    this.#show(this.#nodes, null);
  }

  /** The GPUs that are free on each node. */
  freeGpus(): readonly number[] {
    return this.#nodes.map(freeOn);
  }

  /** The GPUs that gangs use on each node. */
  gpusOnNodes(): readonly ReadonlyMap<string, number>[] {
    return this.#nodes.map(({ members }) => {
      const byGang = new Map<string, number>();
      for (const [{ jobUid }, gpus] of members) byGang.set(jobUid, (byGang.get(jobUid) ?? 0) + gpus);
      return byGang;
    });
  }

  #show(nodes: readonly SmallNode[], since: number | null): void {
    const changes = nodes.map((one) => {
      const { name, gpus, members } = one;
      const free = amounts(freeOn(one), 1e6);
      const key = { kind: "node", name } as const;
      return {
        key,
        entry: {
          ...key,
          node: node(name, "h100", { allocatable: amounts(gpus, 1e6), free }),
          members: [...members.keys()],
        },
      };
    });
    if (since !== null) this.#sequence += 1;
    this.state.apply({ kind: "capacity", cluster: "east", epoch: 1, since, sequence: this.#sequence, changes });
  }

  /** Puts the pods of a round's admissions on nodes, each on the one that has least left if the others then fit too. */
  #bindAll(admissions: readonly PlannedAdmission[]): void {
    const pods = admissions.flatMap(({ jobUid, admission }) => {
      const { ask } = this.gangs.get(jobUid) as PlanGang;
      const { replicas = 0, role = "" } = ask.roles[0] ?? {};
      return Array.from({ length: replicas }, (_, index) => {
        return { gpus: gpusOf(ask) / replicas, member: { jobUid, admission, role: role.toLowerCase(), index } };
      });
    });
    if (!this.#bind(pods)) throw new Error("the nodes have no room for the round's admissions");
    this.#show(this.#nodes, this.#sequence);
  }

  #bind([pod, ...others]: readonly { readonly gpus: number; readonly member: BoundMember }[]): boolean {
    if (pod === undefined) return true;
    const { gpus, member } = pod;
    for (const node of this.#nodes.filter((one) => freeOn(one) >= gpus).sort((a, b) => freeOn(a) - freeOn(b))) {
      node.members.set(member, gpus);
      if (this.#bind(others)) return true;
      node.members.delete(member);
    }
    return false;
  }

  #unbind(uid: string): void {
    for (const { members } of this.#nodes) {
      for (const member of [...members.keys()]) if (member.jobUid === uid) members.delete(member);
    }
    this.#show(this.#nodes, this.#sequence);
  }

  submit({ name, gpus, pods = 1, maxRuntimeMs, backfill, ...of }: SmallGang): void {
    const made = planGang(job({ name, ...of, roles: { Worker: { replicas: pods, gpus } } }));
    const passes = { ...(maxRuntimeMs === undefined ? {} : { maxRuntimeMs }), ...(backfill && { backfill }) };
    this.#set({ ...made, ...passes });
  }

  /** Why a gang waits, as the last round has found. */
  causeOf(uid: string): string | null {
    const gang = this.state.parts.queues.gangs.get(uid);
    const cause = gang === undefined ? null : reasonOf(this.state.parts, gang, this.nowMs);
    if (cause?.kind === "behindHead") return `behind ${cause.head.uid}`;
    const reservedFor = cause?.kind === "lacks" ? cause.refusal.keptFor : undefined;
    return reservedFor === undefined ? (cause?.kind ?? null) : `kept for ${reservedFor.uid}`;
  }

  /** The same in full words, with the numbers of now. */
  wordsOf(uid: string): string {
    const { parts } = this.state;
    const gang = parts.queues.gangs.get(uid);
    const cause = gang === undefined ? null : reasonOf(parts, gang, this.nowMs);
    if (gang === undefined || cause === null) return "";
    return new RefusalMessages(parts, { callers: [], admissions: [] }).refusalOf(gang.facts, keyedReason(cause).cause)
      .message;
  }

  /** One round, recorded. */
  step(): FleetPlan {
    const { reservationsPerPool } = this;
    const plan = this.state.round(this.nowMs, { admissionsMax: Number.POSITIVE_INFINITY, reservationsPerPool });
    this.nowMs += 1;
    if (this.#shows) this.#bindAll(plan.admissions);
    for (const planned of plan.admissions) this.#admit(planned);
    for (const preemption of plan.preemptions) this.#preempt(preemption);
    for (const uid of plan.withdrawn) this.#set(withoutNomination(this.gangs.get(uid) as PlanGang));
    return plan;
  }

  end(uid: string): void {
    const gang = this.gangs.get(uid) as PlanGang;
    this.#use(gang, -this.usedBy(gang));
    this.gangs.delete(uid);
    this.#unbind(uid);
    this.state.apply({ kind: "gang", uid, version: this.#next(), gang: null });
  }

  /** Ends a gang that holds its tokens until `end`, because its pods are not gone yet. */
  drain(uid: string): void {
    const gang = this.gangs.get(uid) as PlanGang;
    const admissions = gang.admissions.map((admission) => ({ ...admission, state: "ended" as const }));
    this.#set({ ...gang, waits: false, admissions });
  }

  /** Lets a gang that waits hold so many GPUs: its queue uses them. */
  hold(uid: string, amount: number): void {
    const gang = this.gangs.get(uid) as PlanGang;
    this.#use(gang, amount - this.heldBy(uid));
    this.#holds.set(uid, amount);
    const holds = amount === 0 ? null : { admission: gang.lastAdmission + 1, amounts: { [POOL]: amount } };
    this.state.apply({ kind: "holds", uid, version: this.#next(), holds });
  }

  heldBy(uid: string): number {
    return this.#holds.get(uid) ?? 0;
  }

  /** The GPUs that a queue's gangs use. */
  used(queue: string): number {
    return this.#used.get(queue) ?? 0;
  }

  running(): readonly PlanGang[] {
    return [...this.gangs.values()].filter(({ admissions }) => admissions.some(({ state }) => state === "live"));
  }

  /** The gangs that have a reservation. */
  reserving(): readonly PlanGang[] {
    return [...this.gangs.values()].filter(({ nomination }) => nomination?.reservation !== undefined);
  }

  usedBy({ admissions, ask }: PlanGang): number {
    return admissions.some(({ tokensReleasedMs }) => tokensReleasedMs === null) ? gpusOf(ask) : 0;
  }

  #admit({ jobUid, admission: number, cluster: where, members, flavors, flavorLabels }: PlannedAdmission): void {
    this.hold(jobUid, 0);
    const gang = this.gangs.get(jobUid) as PlanGang;
    const ends = { state: "live" as const, tokensReleasedMs: null, goneMs: null };
    const live = { number, admitTimeMs: this.nowMs, cluster: where, members, flavors, flavorLabels, ...ends };
    this.#use(gang, gpusOf(gang.ask));
    this.#set({ ...withoutNomination(gang), waits: false, admissions: [live], lastAdmission: number });
  }

  #preempt(preemption: PlannedPreemption): void {
    const { planned, victims, takesOver = [] } = preemption;
    for (const { jobUid, victims } of takesOver) {
      const lacks = gpusOf((this.gangs.get(planned.jobUid) as PlanGang).ask) - this.heldBy(planned.jobUid);
      const taken = Math.min(lacks, this.heldBy(jobUid));
      this.hold(jobUid, this.heldBy(jobUid) - taken);
      this.hold(planned.jobUid, this.heldBy(planned.jobUid) + taken);
      if (victims === undefined) continue;
      this.hold(jobUid, 0);
      this.#set(withoutNomination(this.gangs.get(jobUid) as PlanGang));
    }
    for (const { jobUid } of victims) {
      const victim = this.gangs.get(jobUid) as PlanGang;
      this.#use(victim, -this.usedBy(victim));
      this.#unbind(jobUid);
      this.#set({ ...victim, waits: true, admissions: [], preemptions: (victim.preemptions ?? 0) + 1 });
    }
    const gang = this.gangs.get(planned.jobUid) as PlanGang;
    this.#set({ ...gang, nomination: nominationBy(preemption, this.nowMs) });
  }

  #set(gang: PlanGang): void {
    const made = { ...gang, version: this.#next(), generation: gang.generation + 1, askHash: contentHash(gang.ask) };
    this.gangs.set(made.uid, made);
    this.state.apply({ kind: "gang", uid: made.uid, version: made.version, gang: made });
  }

  #use({ queue }: PlanGang, more: number): void {
    const used = this.used(queue) + more;
    this.#used.set(queue, used);
    this.state.apply({ kind: "sum", scope: { kind: "queue", pool: POOL, queue }, version: this.#next(), used });
  }

  #next(): number {
    this.#version += 1;
    return this.#version;
  }
}

type SmallNode = { readonly name: string; readonly gpus: number; readonly members: Map<BoundMember, number> };

function freeOn({ gpus, members }: SmallNode): number {
  return gpus - [...members.values()].reduce((sum, one) => sum + one, 0);
}

function gpusOf({ roles, podClasses }: Ask): number {
  return roles.reduce((sum, { replicas, podClass }) => {
    return sum + replicas * ((podClasses[podClass]?.requests["nvidia.com/gpu"] ?? 0) / 1000);
  }, 0);
}

function withoutNomination({ nomination: _, ...gang }: PlanGang): PlanGang {
  return gang;
}
