import { type GangsAlike, gangsKey, type LossPolicies, UNKNOWN_LOSS_POLICY } from "../../core/admin/loss-policies.ts";
import type { Loss } from "../../core/reconcile/observed.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { JsonObject } from "../../runtime/json.ts";
import { canonicalJson } from "../../runtime/json.ts";
import { linkedController } from "../../runtime/linked-controller.ts";
import type { Cluster } from "./cluster.ts";
import { type Clusters, createClusters } from "./clusters.ts";
import { contentOf } from "./stored-credentials.ts";

/** A registered cluster, as its table has it. */
export type RegisteredCluster = {
  readonly name: string;
  /** The stored credentials. If their content or the gang scheduler changes, a new connection is made. */
  readonly credentials: JsonObject;
  /** The cluster's gang scheduler. Omitted or `none`: it has none. */
  readonly gangScheduler?: string;
};

type RegistryPorts = {
  readonly clock: Clock;
  /** Reads the table. */
  readonly list: () => Promise<{
    readonly registered: readonly RegisteredCluster[];
    readonly forgotten: readonly string[];
    /** Those that count as lost. Omitted: none. */
    readonly lost?: Losses["lost"];
    /** Whether gangs in lost clusters wait for them. Omitted: all do. */
    readonly policies?: Losses["policies"];
    /** Those that answer again, and may have objects of gangs that have left them. Omitted: none. */
    readonly returning?: readonly string[];
    /** Those whose observer waits for an answer. Omitted: none. */
    readonly silent?: readonly string[];
    /** Those that nobody has adopted after the database was restored. Omitted: none. */
    readonly unadopted?: readonly string[];
  }>;
  /** Connects to a cluster without starting it. Rejects if its credentials cannot be decrypted. */
  readonly connect: (cluster: RegisteredCluster) => Promise<Cluster>;
  /** Whether this process watches the clusters, or only calls them now and then. */
  readonly listens: boolean;
  /** A hint that a cluster with objects of this job is no longer connected. */
  readonly onJobChanged: (jobUid: string) => void;
  /**
   * Called with clusters that count as lost since this read of the table, or no more, and with all lost ones once
   * something else counts for gangs there. Omitted: nobody asks.
   */
  readonly onLossChanged?: (names: readonly string[]) => Promise<void>;
  /** Called at each read of the table with a returning cluster that answers this process. Omitted: nobody asks. */
  readonly onReturning?: (cluster: Cluster) => Promise<void>;
  /**
   * Called with each cluster that answers this process, once it is connected and every ten minutes from then on.
   * Omitted: nobody asks.
   */
  readonly onSweep?: (cluster: Cluster) => Promise<void>;
  /**
   * Called at each read of the table with a silent cluster that answers this process, though not its observer. Omitted:
   * nobody asks.
   */
  readonly onAnswer?: (cluster: Cluster) => Promise<void>;
  /** Records why a cluster cannot be used. Called each time that it fails to connect. Omitted: nothing is recorded. */
  readonly onUnusable?: (name: string, problem: string) => Promise<void>;
  readonly onError: (error: unknown, what: string) => void;
};

/** How often the table is read without a hint, to find clusters that another process has registered. */
const POLL_MS = 2_000;
/** How often a cluster is looked through for what a late call has left there. Watches tell of nearly all of it. */
const SWEEP_MS = 600_000;

/** What the table says of lost clusters: the last fence of an admission before, and the silence that was counted. */
type Losses = {
  readonly lost: ReadonlyMap<string, Omit<Loss, "policy">>;
  readonly policies: LossPolicies;
};

const NO_LOSSES: Losses = { lost: new Map(), policies: new Map() };

type Connection = {
  readonly madeWith: string;
  readonly cluster: Cluster;
  /** On the monotonic clock. Null: it was not swept yet. */
  sweptMs: number | null;
};

function fingerprint({ credentials, gangScheduler = "none" }: RegisteredCluster): string {
  return canonicalJson({ content: contentOf(credentials), gangScheduler });
}

/** Keeps this process connected to the clusters of the table. */
export class ClusterRegistry {
  /** The connected clusters. */
  readonly clusters: Clusters;
  readonly #ports: RegistryPorts;
  readonly #connections = new Map<string, Connection>();
  /** Credentials that failed to connect, by cluster. Each is reported once and tried again. */
  readonly #failed = new Map<string, { readonly fingerprint: string; readonly problem: string }>();
  #forgotten: ReadonlySet<string> = new Set();
  #unadopted: ReadonlySet<string> = new Set();
  #losses = NO_LOSSES;
  #wake = new AbortController();
  #last: Promise<void> = Promise.resolve();

  constructor(ports: RegistryPorts) {
    this.#ports = ports;
    this.clusters = createClusters({
      connected: () => this.connected(),
      isForgotten: (name) => this.#forgotten.has(name),
      isUnadopted: (name) => this.#unadopted.has(name),
      lossOf: (name, gangs) => this.#lossOf(name, gangs),
    });
  }

  #lossOf(name: string, gangs: GangsAlike | undefined): Loss | null {
    const { lost, policies } = this.#losses;
    const loss = lost.get(name);
    if (loss === undefined) return null;
    const said = gangs === undefined ? undefined : policies.get(gangsKey(gangs));
    return { ...loss, policy: said ?? UNKNOWN_LOSS_POLICY };
  }

  connected(): readonly Cluster[] {
    return [...this.#connections.values()].map(({ cluster }) => cluster);
  }

  /** Why this process cannot use a cluster. Null: it can, or it knows no such cluster. */
  problemOf(name: string): string | null {
    const health = this.connected()
      .find((cluster) => cluster.name === name)
      ?.health();
    return this.#failed.get(name)?.problem ?? (health?.kind === "unusable" ? health.why : null);
  }

  /** A hint to read the table soon. */
  wake(): void {
    this.#wake.abort();
  }

  /** Follows the table until the signal is aborted, then closes every connection. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#wake = new AbortController();
      await this.refresh().catch((error: unknown) => this.#ports.onError(error, "registered clusters"));
      using woken = linkedController(signal, this.#wake.signal);
      await this.#ports.clock.sleep(POLL_MS, woken.signal);
    }
    await this.#last.catch(() => undefined);
    await Promise.all([...this.#connections.keys()].map((name) => this.#disconnect(name)));
  }

  /** Makes the connections match the table, once. */
  refresh(): Promise<void> {
    const mine = this.#last.catch(() => undefined).then(() => this.#follow());
    this.#last = mine;
    return mine;
  }

  async #follow(): Promise<void> {
    const { registered, forgotten, returning = [], silent = [], unadopted = [], ...told } = await this.#ports.list();
    this.#forgotten = new Set(forgotten);
    const adopted = this.#noteUnadopted(unadopted);
    const losses = { ...NO_LOSSES, ...told };
    const changed = changedLosses(this.#losses, losses);
    this.#losses = losses;
    const wanted = new Map(registered.map((cluster) => [cluster.name, fingerprint(cluster)]));
    for (const [name, { madeWith }] of [...this.#connections]) {
      if (wanted.get(name) !== madeWith) await this.#disconnect(name);
    }
    for (const name of this.#failed.keys()) if (!wanted.has(name)) this.#failed.delete(name);
    for (const cluster of registered) {
      if (this.#connections.has(cluster.name)) continue;
      await this.#connect(cluster).catch((error: unknown) => this.#leaveOut(cluster, error));
    }
    this.#tellJobs(adopted);
    if (changed.length > 0) await this.#ports.onLossChanged?.(changed);
    for (const cluster of this.#answering(returning)) await this.#ports.onReturning?.(cluster);
    for (const cluster of this.#answering(silent)) await this.#ports.onAnswer?.(cluster);
    await this.#sweep(new Set([...returning, ...unadopted, ...losses.lost.keys()]));
  }

  /** `others`: clusters that are not swept now. One that returns is looked through at each read. */
  async #sweep(others: ReadonlySet<string>): Promise<void> {
    const { clock, onSweep } = this.#ports;
    for (const { name } of this.#answering([...this.#connections.keys()])) {
      const connection = this.#connections.get(name);
      const nowMs = clock.monotonicMs();
      if (connection === undefined || others.has(name)) continue;
      if (connection.sweptMs !== null && nowMs - connection.sweptMs < SWEEP_MS) continue;
      await onSweep?.(connection.cluster);
      connection.sweptMs = nowMs;
    }
  }

  /** Those of the clusters that answer this process. */
  #answering(names: readonly string[]): readonly Cluster[] {
    const known = names.flatMap((name) => this.#connections.get(name)?.cluster ?? []);
    return known.filter((cluster) => cluster.synced() && cluster.health().kind === "active");
  }

  /** Goes on without a cluster. Reports it once, and records each time that it cannot be used. */
  async #leaveOut(registered: RegisteredCluster, error: unknown): Promise<void> {
    const { name } = registered;
    const before = this.#failed.get(name);
    const problem = error instanceof Error ? error.message : String(error);
    const isKnown = before?.fingerprint === fingerprint(registered) && before.problem === problem;
    this.#failed.set(name, { fingerprint: fingerprint(registered), problem });
    if (!isKnown) this.#ports.onError(error, `cluster ${name}`);
    await this.#ports
      .onUnusable?.(name, problem)
      .catch((failure: unknown) => this.#ports.onError(failure, `cluster ${name}`));
  }

  async #connect(registered: RegisteredCluster): Promise<void> {
    const cluster = await this.#ports.connect(registered);
    this.#failed.delete(registered.name);
    this.#connections.set(registered.name, { madeWith: fingerprint(registered), cluster, sweptMs: null });
    if (this.#ports.listens) cluster.start();
  }

  async #disconnect(name: string): Promise<void> {
    const connection = this.#connections.get(name);
    this.#connections.delete(name);
    if (connection === undefined) return;
    this.#tellJobs([connection.cluster]);
    await connection.cluster.close();
  }

  /** Returns the clusters that are adopted since the last read of the table. */
  #noteUnadopted(names: readonly string[]): readonly Cluster[] {
    const adopted = this.connected().filter(({ name }) => this.#unadopted.has(name) && !names.includes(name));
    this.#unadopted = new Set(names);
    return adopted;
  }

  /** Tells all jobs with an object in one of these clusters. */
  #tellJobs(clusters: readonly Cluster[]): void {
    const jobs = new Set(clusters.flatMap((cluster) => [...cluster.jobUids()]));
    for (const jobUid of jobs) this.#ports.onJobChanged(jobUid);
  }
}

/** The clusters of which a read of the table says something new to the gangs there. */
function changedLosses(before: Losses, after: Losses): readonly string[] {
  const all = new Set([...before.lost.keys(), ...after.lost.keys()]);
  // Gangs of other namespaces and queues may come and go.
  const isNew = [...after.policies].some(([gangs, policy]) => (before.policies.get(gangs) ?? policy) !== policy);
  return [...all].filter((name) => isNew || before.lost.has(name) !== after.lost.has(name));
}
