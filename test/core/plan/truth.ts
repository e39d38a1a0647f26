import { ofRole } from "../../../src/core/job/flavor-labels.ts";
import type { TenantName } from "../../../src/core/job/tenant-limits.ts";
import type { Change } from "../../../src/core/plan/facts/changes.ts";
import {
  type CapacityEntry,
  type EntryKey,
  entryKeyText,
  presentEntry,
} from "../../../src/core/plan/model/capacity-entry.ts";
import { tenantKey } from "../../../src/core/plan/model/limited-tenant.ts";
import { gangOf, type PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import type { PlannedAdmission, PlannedEviction } from "../../../src/core/plan/model/plan-types.ts";
import type { PlannedPreemption } from "../../../src/core/plan/model/preemption.ts";
import { BUDGET_WINDOW_MS, DEFAULT_POLICY } from "../../../src/core/plan/model/queue-policy.ts";
import type {
  BoundMember,
  ClusterFacts,
  NodeCapacity,
  PlanCluster,
  PlanQueue,
} from "../../../src/core/plan/model/snapshot.ts";
import type { Topology } from "../../../src/core/plan/model/topology.ts";
import type { PoolLimit, Scope } from "../../../src/core/quota/counters.ts";
import { scopeKey } from "../../../src/core/quota/scopes.ts";
import { AT, NOW } from "./plan-world.ts";
import {
  Draw,
  MODELS,
  randomCluster,
  randomJob,
  randomNode,
  randomPool,
  randomQueue,
  withTypes,
  withWishes,
} from "./random-world.ts";

const CLUSTERS = ["east", "west"];
const FREEZE = { by: "ann", atMs: 7, reason: "" };
/** Some histories have limits of tenants, with draws of their own. The others stay as they are. */
const OTHER_SEEDS = 1_000_000;
const TENANTS: readonly TenantName[] = [
  { kind: "namespace", name: "ml" },
  { kind: "namespace", name: "nlp" },
  { kind: "project", name: "vision" },
];
/** Some histories have levels, also with draws of their own. Nodes have these labels. */
const TOPOLOGIES: readonly Topology[] = [
  [],
  [{ name: "rack", label: "zone" }],
  [
    { name: "block", label: "gpu" },
    { name: "rack", label: "zone" },
  ],
];
const QUEUES = ["root", "left", "right", "below", "alone"];

type Capacity = { epoch: number; sequence: number; readonly entries: Map<string, CapacityEntry> };

/**
 * The facts as a store has them, and random changes of them. `load` reads all of them; each change is told once, as the
 * store's log and the observers do.
 */
export class Truth {
  readonly draw: Draw;
  readonly #ofTenants: Draw;
  readonly #ofEnds: Draw | null;
  readonly #ofLevels: Draw | null;
  /** Draws of gangs that are to leave their clusters, which may well take gangs. Null: none is. */
  readonly #ofMoves: Draw | null;
  /** How many gangs have left their clusters. */
  moved = 0;
  readonly #hasTenants: boolean;
  nowMs = NOW;
  /** How many members gave their tokens back. */
  returned = 0;
  readonly #alike: boolean;
  /** Draws of gangs with several replica types. Null: gangs have two at most. */
  readonly #ofTypes: Draw | null;
  readonly #gangs = new Map<string, PlanGang>();
  readonly #others = new Map<string, Change>();
  readonly #capacity = new Map<string, Capacity>();
  #made = 0;

  /**
   * `ends`: members of running gangs end and give their tokens back. Omitted: none does. `types`: some gangs have up to
   * four replica types with GPUs. Omitted: two at most.
   */
  constructor(seed: number, of: { readonly alike: boolean; readonly ends?: boolean; readonly types?: boolean }) {
    this.draw = new Draw(seed);
    this.#ofEnds = of.ends ? new Draw(seed + 2 * OTHER_SEEDS) : null;
    this.#ofTenants = new Draw(seed + OTHER_SEEDS);
    this.#ofLevels = seed % 4 === 1 ? new Draw(seed + 3 * OTHER_SEEDS) : null;
    this.#ofMoves = seed % 3 === 2 ? new Draw(seed + 5 * OTHER_SEEDS) : null;
    this.#ofTypes = of.types ? new Draw(seed + 4 * OTHER_SEEDS) : null;
    this.#hasTenants = seed % 5 === 0;
    this.#alike = of.alike;
    for (const name of QUEUES) this.#changeQueue(name);
    for (const model of MODELS) this.#changePool(model);
    for (const name of CLUSTERS) this.#startCluster(name);
    for (let at = 0; at < 8; at++) this.#addGang();
  }

  /** Everything that there is, as changes of an empty state. */
  load(): readonly Change[] {
    const gangs = [...this.#gangs.values()].map(gangChange);
    return [...this.#others.values(), ...CLUSTERS.map((name) => this.fullList(name)), ...gangs];
  }

  fullList(cluster: string): Change {
    const { epoch, sequence, entries } = this.#capacityOf(cluster);
    const changes = [...entries.values()].map(presentEntry);
    return { kind: "capacity", cluster, epoch, since: null, sequence, changes };
  }

  /** Makes one random change, and returns how it is told. */
  change(): readonly Change[] {
    const { draw } = this;
    if (this.#hasTenants && this.#ofTenants.chance(0.1)) return this.#changeTenant(this.#ofTenants.of(TENANTS));
    const moving = this.#ofMoves?.chance(0.15) ? this.#toggleMove(this.#ofMoves) : [];
    if (moving.length > 0) return moving;
    const ended = this.#ofEnds?.chance(0.15) ? this.#endMember(this.#ofEnds) : [];
    if (ended.length > 0) return ended;
    const of = draw.upTo(20);
    if (of < 4) return this.#addGang();
    if (of < 10) return this.#changeSomeGang();
    if (of < 15) return this.#changeNode(draw.of(CLUSTERS));
    if (of < 16) return this.#changeUnbound(draw.of(CLUSTERS));
    if (of < 18) return this.#changeSum();
    if (of < 19) return draw.chance(0.5) ? this.#changeQueue(draw.of(QUEUES)) : this.#changePool(draw.of(MODELS));
    if (draw.chance(0.5)) return this.#restartObserver(draw.of(CLUSTERS));
    return this.#changeCluster(draw.of(CLUSTERS));
  }

  /** Records the request to undo an admission, or that its worker has undone it. */
  evict({ jobUid, admission }: PlannedEviction): readonly Change[] {
    const gang = this.#gangs.get(jobUid);
    if (gang === undefined) return [];
    return this.draw.chance(0.5) ? this.#setGang({ ...gang, evicted: true }) : this.#undo(gang, admission);
  }

  /** Records an admission or a growth of a plan. */
  record(planned: PlannedAdmission): readonly Change[] {
    const gang = this.#gangs.get(planned.jobUid);
    if (gang === undefined || planned.cluster === null) return [];
    const { admission: number, cluster, members, flavors, flavorLabels } = planned;
    const ends = { state: "live", tokensReleasedMs: null, goneMs: null };
    const live = { number, admitTimeMs: this.nowMs, cluster, members, flavors, flavorLabels, ...ends };
    const others = gang.admissions.flatMap((old): PlanGang["admissions"] => {
      if (old.number === number) return [];
      return old.number === planned.movesFrom ? [{ ...old, state: "undone", tokensReleasedMs: this.nowMs }] : [old];
    });
    if (planned.movesFrom !== undefined) this.moved += 1;
    const admissions = [...others, live as PlanGang["admissions"][number]];
    const lastAdmission = Math.max(gang.lastAdmission, number);
    const sums = planned.allocations.flatMap(({ pool, amount, project, namespace, queue }) => [
      ...this.#addTo({ kind: "pool", pool }, amount),
      ...this.#addTo({ kind: "queue", pool, queue }, amount),
      ...this.#addTo({ kind: "project", pool, project }, amount),
      ...this.#addTo({ kind: "namespace", pool, project, namespace }, amount),
    ]);
    const record = this.#others.get(`cluster ${cluster}`);
    const counted = record?.kind === "cluster" && record.facts !== null ? this.#count(record.facts) : [];
    const { nomination: _, moves: __, ...rest } = gang;
    return [...this.#setGang({ ...rest, waits: false, admissions, lastAdmission }), ...sums, ...counted];
  }

  /** Records that others give way for a gang: the nominee waits for them, and they are to be undone. */
  preempt({ planned, victims, reservation }: PlannedPreemption): readonly Change[] {
    const gang = this.#gangs.get(planned.jobUid);
    if (gang === undefined || planned.cluster === null) return [];
    const { cluster, flavors, members } = planned;
    const named = victims.map(({ jobUid, admission }) => ({ jobUid, admission }));
    const generation = gang.generation + 1;
    const { sinceMs, keepsQuota = false, awaits = [] } = reservation ?? {};
    const reserved = { reservation: { sinceMs: sinceMs ?? this.nowMs, keepsQuota } };
    const all = { victims: [...named, ...awaits], sinceMs: this.nowMs };
    const nomination = {
      cluster,
      flavors,
      members,
      generation,
      ...all,
      ...(reservation === undefined ? {} : reserved),
    };
    return [
      ...this.#setGang({ ...gang, nomination }),
      ...victims.flatMap(({ jobUid }) => {
        const victim = this.#gangs.get(jobUid);
        return victim === undefined ? [] : this.#setGang({ ...victim, evicted: true });
      }),
    ];
  }

  withdraw(jobUid: string): readonly Change[] {
    const gang = this.#gangs.get(jobUid);
    if (gang === undefined) return [];
    const { nomination: _, ...rest } = gang;
    return this.#setGang(rest);
  }

  #count(facts: ClusterFacts): readonly Change[] {
    return this.#setCluster({ ...facts, admissionCounter: facts.admissionCounter + 1 });
  }

  /** Asks that a running gang runs elsewhere, or that it stays. Returns nothing if none runs. */
  #toggleMove(draw: Draw): readonly Change[] {
    const lives = [...this.#gangs.values()].filter(({ admissions }) =>
      admissions.some(({ state }) => state === "live"),
    );
    const gang = lives.length === 0 ? undefined : draw.of(lives);
    if (gang === undefined) return [];
    const { moves, ...rest } = gang;
    if (moves === true) return this.#setGang(rest);
    const cluster = gang.admissions.find(({ state }) => state === "live")?.cluster ?? "";
    const record = this.#others.get(`cluster ${cluster}`);
    const silent =
      record?.kind === "cluster" && record.facts !== null
        ? this.#setCluster({ ...record.facts, reachable: false })
        : [];
    return [...silent, ...this.#setGang({ ...rest, moves: true })];
  }

  /** A member of a running gang has ended and gives its tokens back. Returns nothing if there is none. */
  #endMember(draw: Draw): readonly Change[] {
    const lives = [...this.#gangs.values()].flatMap((gang) => {
      const live = gang.admissions.find(({ state }) => state === "live");
      const left = gang.ask.roles.flatMap(({ role, podClass }) => {
        const all = draw.list(live?.members[role] ?? 0, (index) => index);
        const still = all.filter((index) => !live?.returned?.[role]?.includes(index));
        const request = gang.ask.podClasses[podClass]?.requests["nvidia.com/gpu"] ?? 0;
        return still.map((index) => ({ role, index, amount: Math.ceil(request / 1000) }));
      });
      return live === undefined || left.length === 0 ? [] : [{ gang, live, left }];
    });
    if (lives.length === 0) return [];
    const { gang, live, left } = draw.of(lives);
    const { role, index, amount } = draw.of(left);
    const indexes = [...(live.returned?.[role] ?? []), index].sort((a, b) => a - b);
    const ended = { ...live, returned: { ...live.returned, [role]: indexes } };
    const admissions = gang.admissions.map((one) => (one === live ? ended : one));
    this.returned += 1;
    const pool = ofRole(live.flavors, role)["nvidia.com/gpu"];
    const sums = pool === undefined ? [] : this.#addTo({ kind: "queue", pool, queue: gang.queue }, -amount);
    return [...this.#setGang({ ...gang, admissions }), ...sums];
  }

  #addGang(): readonly Change[] {
    this.#made += 1;
    const of = { name: `g${this.#made}`, clusters: CLUSTERS, queues: QUEUES, alike: this.#alike };
    const drawn = randomJob(this.draw, of);
    const typed = this.#ofTypes === null ? drawn : withTypes(this.#ofTypes, drawn);
    const made = this.#ofLevels === null ? typed : withWishes(this.#ofLevels, typed);
    // Young enough to age, or much older.
    const job = this.draw.chance(0.7) ? { ...made, createTimeMs: this.nowMs - this.draw.upTo(3) } : made;
    const gang = gangOf(job, AT.kinds, { generation: 0, lastAdmission: 1 + this.draw.upTo(2) });
    const bounded = this.draw.chance(0.3) ? { maxRuntimeMs: 1 + this.draw.upTo(20) } : {};
    return this.#setGang({ ...gang, ...bounded, ...(this.draw.chance(0.2) ? { backfill: true } : {}) });
  }

  #changeSomeGang(): readonly Change[] {
    const { draw } = this;
    const gang = draw.of([...this.#gangs.values()]);
    if (gang === undefined) return [];
    const live = gang.admissions.find(({ state }) => state === "live");
    if (draw.chance(0.2)) return this.#removeGang(gang);
    if (live !== undefined) return draw.chance(0.5) ? this.#undo(gang, live.number) : this.#showMembers(gang);
    const of = draw.upTo(6);
    if (of === 0) return this.#setGang({ ...gang, suspended: !gang.suspended });
    if (of === 1) return this.#setGang({ ...gang, priority: draw.upTo(1) });
    if (of === 2) return this.#setGang({ ...gang, awaitsResult: gang.awaitsResult === null ? "looked for" : null });
    if (of === 3) return this.#setGang(gang);
    if (of === 4) return this.#nominate(gang);
    const admissions = gang.admissions.map((old) => ({
      ...old,
      tokensReleasedMs: 1,
      goneMs: draw.chance(0.5) ? 1 : null,
    }));
    return this.#setGang({ ...gang, admissions });
  }

  /** Nominates a gang, or gives its nomination up. */
  #nominate({ nomination, ...gang }: PlanGang): readonly Change[] {
    if (nomination !== undefined || !gang.waits) return this.#setGang(gang);
    const { uid: jobUid = "" } = this.draw.of([...this.#gangs.values()]) ?? {};
    const victims = [{ jobUid, admission: 1 }];
    const made = { cluster: this.draw.of(CLUSTERS), flavors: {}, members: {}, victims, sinceMs: this.nowMs };
    return this.#setGang({ ...gang, nomination: { ...made, generation: gang.generation + 1 } });
  }

  #removeGang(gang: PlanGang): readonly Change[] {
    this.#gangs.delete(gang.uid);
    return [{ kind: "gang", uid: gang.uid, version: gang.version + 1, gang: null }];
  }

  #undo(gang: PlanGang, number: number): readonly Change[] {
    const admissions = gang.admissions.map((old) =>
      old.number === number ? { ...old, state: "undone" as const } : old,
    );
    const backoff = { undone: 1, notBeforeMs: this.nowMs + this.draw.upTo(4), lastCluster: this.draw.of(CLUSTERS) };
    const { evicted: _, moves: __, ...rest } = gang;
    const waitsSinceMs = this.nowMs;
    return this.#setGang({
      ...rest,
      waits: true,
      waitsSinceMs,
      admissions,
      backoff: this.draw.chance(0.5) ? backoff : null,
    });
  }

  /** A node shows members of a gang. */
  #showMembers(gang: PlanGang): readonly Change[] {
    const live = gang.admissions.find(({ state }) => state === "live");
    const cluster = live?.cluster ?? "";
    const nodes = [...(this.#capacity.get(cluster)?.entries.values() ?? [])].filter((one) => one.kind === "node");
    const entry = this.draw.of(nodes.filter(({ node }) => node !== null));
    if (live === undefined || entry === undefined) return [];
    const members = Object.entries(live.members).flatMap(([role, count]) =>
      this.draw.list(count, (index): BoundMember => {
        return { jobUid: gang.uid, admission: live.number, role: role.toLowerCase(), index };
      }),
    );
    return this.#setNode(
      cluster,
      entry.name,
      entry.node,
      members.filter(() => this.draw.chance(0.6)),
    );
  }

  #changeNode(cluster: string): readonly Change[] {
    const { draw } = this;
    const name = `${cluster}-${draw.upTo(5)}`;
    const known = this.#capacity.get(cluster)?.entries.get(entryKeyText({ kind: "node", name }));
    const members = known?.kind === "node" ? known.members : [];
    if (draw.chance(0.15)) return this.#setNode(cluster, name, null, []);
    return this.#setNode(cluster, name, randomNode(draw, name), draw.chance(0.7) ? members : []);
  }

  #changeUnbound(cluster: string): readonly Change[] {
    const { capacity } = randomCluster(this.draw, cluster, 0);
    const name = `pod-${this.draw.upTo(3)}`;
    const [pod] = capacity?.unbound ?? [];
    return this.#tell(cluster, { kind: "unbound", name }, pod === undefined ? null : { kind: "unbound", name, pod });
  }

  #changeSum(): readonly Change[] {
    const pool = `gpu/${this.draw.of(MODELS)}`;
    const queue = this.draw.of(QUEUES);
    const known = this.#others.get(`sum ${scopeKey({ kind: "queue", pool, queue })}`);
    const used = known?.kind === "sum" ? known.used : 0;
    const amount = this.draw.upTo(8) - Math.min(used, 4);
    return [
      ...this.#addTo({ kind: "queue", pool, queue }, Math.max(-used, amount)),
      ...this.#addTo({ kind: "pool", pool }, 1),
    ];
  }

  #addTo(scope: Scope, amount: number): readonly Change[] {
    const key = `sum ${scopeKey(scope)}`;
    const known = this.#others.get(key);
    const [version, used] = known?.kind === "sum" ? [known.version, known.used] : [0, 0];
    const sum: Change = { kind: "sum", scope, version: version + 1, used: Math.max(0, used + amount) };
    this.#others.set(key, sum);
    return [sum];
  }

  #changeQueue(name: string): readonly Change[] {
    return this.#set({
      kind: "queue",
      name,
      version: this.#next(`queue ${name}`),
      queue: this.#maybeAgeing(this.#maybeLimited(randomQueue(this.draw, name))),
    });
  }

  #maybeAgeing(queue: PlanQueue): PlanQueue {
    const { draw } = this;
    if (draw.chance(0.6)) return queue;
    const ageing = { intervalMs: 1 + draw.upTo(4), step: 1, limit: 1 + draw.upTo(2) };
    const classValues = draw.of([[], [0, 2], [1, 2]]);
    const preemptionsPerHour = draw.maybe(2);
    const endsMs = this.nowMs + draw.upTo(6);
    const preempted = [{ atMs: endsMs - BUDGET_WINDOW_MS, victims: 1 }];
    const policy = { ...DEFAULT_POLICY, ...queue.policy, ageing, preemptionsPerHour };
    return { ...queue, policy, classValues, preempted };
  }

  #maybeLimited(queue: PlanQueue): PlanQueue {
    const { draw } = this;
    const limited = draw.chance(0.3) ? { ...queue, maxRunningJobs: 1 + draw.upTo(2) } : queue;
    const isStopped = draw.chance(0.4);
    const policies = ["HOLD", "HOLD_AND_DRAIN", "HOLD_AND_DRAIN"] as const;
    const stopped = isStopped ? { ...limited, stopPolicy: draw.of(policies) } : limited;
    const frozen = draw.chance(isStopped ? 0.3 : 0.1) ? { ...stopped, freeze: FREEZE } : stopped;
    // At once, in the middle of the history, or never.
    const reserveAfterMs = draw.of([1, NOW + draw.upTo(10), 0, 0]);
    return { ...frozen, policy: { ...(queue.policy ?? DEFAULT_POLICY), reserveAfterMs } };
  }

  #randomPool(name: string): PoolLimit {
    const pool = randomPool(this.draw, name);
    return this.draw.chance(0.15) ? { ...pool, freeze: FREEZE } : pool;
  }

  /** A tenant has a limit now, or none. */
  #changeTenant(tenant: TenantName): readonly Change[] {
    const name = tenantKey(tenant);
    const maxRunningJobs = this.#ofTenants.upTo(12);
    const limited = maxRunningJobs === 0 ? null : { ...tenant, maxRunningJobs };
    return this.#set({ kind: "tenant", name, version: this.#next(`tenant ${name}`), tenant: limited });
  }

  #changePool(model: string): readonly Change[] {
    const name = `gpu/${model}`;
    return this.#set({ kind: "pool", name, version: this.#next(`pool ${name}`), pool: this.#randomPool(name) });
  }

  #changeCluster(name: string): readonly Change[] {
    const { capacity: _, ...facts } = randomCluster(this.draw, name, 0);
    const known = this.#others.get(`cluster ${name}`);
    const admissionCounter = known?.kind === "cluster" ? (known.facts?.admissionCounter ?? 0) : 0;
    return this.#setCluster({ ...this.#maybeLevels(facts), admissionCounter });
  }

  #maybeLevels(facts: ClusterFacts): ClusterFacts {
    if (this.#ofLevels === null) return facts;
    const draw = this.#ofLevels;
    const flavors = facts.flavors.map((one) => (draw.chance(0.3) ? { ...one, topology: draw.of(TOPOLOGIES) } : one));
    return { ...facts, flavors, topology: draw.of(TOPOLOGIES) };
  }

  #setCluster(facts: ClusterFacts): readonly Change[] {
    return this.#set({ kind: "cluster", name: facts.name, version: this.#next(`cluster ${facts.name}`), facts });
  }

  #startCluster(name: string): void {
    const { capacity, ...facts }: PlanCluster = randomCluster(this.draw, name, 5);
    this.#setCluster(this.#maybeLevels(facts));
    const entries = (capacity?.nodes ?? []).map((node): [string, CapacityEntry] => {
      const entry = { kind: "node" as const, name: node.name, node, members: [] };
      return [entryKeyText(entry), entry];
    });
    this.#capacity.set(name, { epoch: 1, sequence: 1, entries: new Map(entries) });
  }

  #restartObserver(cluster: string): readonly Change[] {
    const capacity = this.#capacityOf(cluster);
    capacity.epoch += 1;
    return [this.fullList(cluster)];
  }

  #setNode(
    cluster: string,
    name: string,
    node: NodeCapacity | null,
    members: readonly BoundMember[],
  ): readonly Change[] {
    const isThere = node !== null || members.length > 0;
    return this.#tell(cluster, { kind: "node", name }, isThere ? { kind: "node", name, node, members } : null);
  }

  #tell(cluster: string, key: EntryKey, entry: CapacityEntry | null): readonly Change[] {
    const capacity = this.#capacityOf(cluster);
    const since = capacity.sequence;
    capacity.sequence += 1;
    if (entry === null) capacity.entries.delete(entryKeyText(key));
    else capacity.entries.set(entryKeyText(key), entry);
    const { epoch, sequence } = capacity;
    return [{ kind: "capacity", cluster, epoch, since, sequence, changes: [{ key, entry }] }];
  }

  #capacityOf(cluster: string): Capacity {
    const known = this.#capacity.get(cluster) ?? { epoch: 1, sequence: 1, entries: new Map() };
    this.#capacity.set(cluster, known);
    return known;
  }

  #setGang(gang: PlanGang): readonly Change[] {
    const after = { ...gang, version: gang.version + 1, generation: gang.generation + 1 };
    this.#gangs.set(gang.uid, after);
    return [gangChange(after)];
  }

  #set(change: Change & { readonly kind: "queue" | "pool" | "tenant" | "cluster" }): readonly Change[] {
    this.#others.set(`${change.kind} ${change.name}`, change);
    return [change];
  }

  #next(key: string): number {
    const known = this.#others.get(key);
    return known === undefined || !("version" in known) ? 1 : known.version + 1;
  }
}

function gangChange(gang: PlanGang): Change {
  return { kind: "gang", uid: gang.uid, version: gang.version, gang };
}
