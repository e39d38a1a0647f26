import type { Clock } from "../../runtime/clock.ts";
import type { JsonObject } from "../../runtime/json.ts";
import { canonicalJson } from "../../runtime/json.ts";
import type { Cluster } from "./cluster.ts";
import { type Clusters, createClusters } from "./clusters.ts";

/** A cluster of the table that is to be connected, or that was forgotten. */
export type RegisteredCluster = {
  readonly name: string;
  /** As they are stored; another value, here or of the gang scheduler, makes a new connection. */
  readonly credentials: JsonObject;
  /** What places a gang's pods together there; absent or `none`: nothing but Kubernetes. */
  readonly gangScheduler?: string;
};

export type RegistryPorts = {
  readonly clock: Clock;
  /** What the table says now. */
  readonly list: () => Promise<{
    readonly registered: readonly RegisteredCluster[];
    readonly forgotten: readonly string[];
  }>;
  /** Connects to a cluster; not started yet. Rejects where its credentials do not open. */
  readonly connect: (cluster: RegisteredCluster) => Promise<Cluster>;
  /** Whether this process listens to the clusters, or only asks them something now and then. */
  readonly listens: boolean;
  /** Something of this job was seen in a cluster that is not connected any more. A hint. */
  readonly onJobChanged: (jobUid: string) => void;
  readonly onError: (error: unknown, what: string) => void;
};

/** How often the table is read without a hint: what another process has registered is connected by then. */
const POLL_MS = 2_000;

type Connection = { readonly madeWith: string; readonly cluster: Cluster };

function fingerprint({ credentials, gangScheduler = "none" }: RegisteredCluster): string {
  return canonicalJson({ credentials, gangScheduler });
}

/** Keeps this process connected to the clusters that the table names, while they are there. */
export class ClusterRegistry {
  /** All that are connected at the moment, and those that were given at the start. */
  readonly clusters: Clusters;
  readonly #ports: RegistryPorts;
  readonly #given: readonly Cluster[];
  readonly #connections = new Map<string, Connection>();
  /** Credentials with which no connection could be made, by cluster: told of once, tried again and again. */
  readonly #failed = new Map<string, string>();
  #forgotten: ReadonlySet<string> = new Set();
  #wake = new AbortController();
  #last: Promise<void> = Promise.resolve();

  /** `given` are connected already and stay so until the end. */
  constructor(ports: RegistryPorts, given: readonly Cluster[] = []) {
    this.#ports = ports;
    this.#given = given;
    this.clusters = createClusters({
      connected: () => this.connected(),
      isForgotten: (name) => this.#forgotten.has(name),
    });
  }

  connected(): readonly Cluster[] {
    return [...this.#given, ...[...this.#connections.values()].map(({ cluster }) => cluster)];
  }

  /** Reads the table soon. A hint. */
  wake(): void {
    this.#wake.abort();
  }

  /** Follows the table until the signal is aborted, then closes every connection. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#wake = new AbortController();
      await this.refresh().catch((error: unknown) => this.#ports.onError(error, "registered clusters"));
      await this.#ports.clock.sleep(POLL_MS, AbortSignal.any([signal, this.#wake.signal]));
    }
    await this.#last.catch(() => undefined);
    await Promise.all([...this.#connections.keys()].map((name) => this.#disconnect(name)));
  }

  /** Makes the connections agree with the table, once. */
  refresh(): Promise<void> {
    const mine = this.#last.catch(() => undefined).then(() => this.#follow());
    this.#last = mine;
    return mine;
  }

  async #follow(): Promise<void> {
    const { registered, forgotten } = await this.#ports.list();
    this.#forgotten = new Set(forgotten);
    const wanted = new Map(registered.map((cluster) => [cluster.name, fingerprint(cluster)]));
    for (const [name, { madeWith }] of [...this.#connections]) {
      if (wanted.get(name) !== madeWith) await this.#disconnect(name);
    }
    for (const cluster of registered) {
      if (this.#connections.has(cluster.name)) continue;
      await this.#connect(cluster).catch((error: unknown) => this.#tellOnce(cluster, error));
    }
  }

  #tellOnce(registered: RegisteredCluster, error: unknown): void {
    const { name } = registered;
    const failed = fingerprint(registered);
    if (this.#failed.get(name) === failed) return;
    this.#failed.set(name, failed);
    this.#ports.onError(error, `cluster ${name}`);
  }

  async #connect(registered: RegisteredCluster): Promise<void> {
    const cluster = await this.#ports.connect(registered);
    this.#failed.delete(registered.name);
    this.#connections.set(registered.name, { madeWith: fingerprint(registered), cluster });
    if (this.#ports.listens) cluster.start();
  }

  async #disconnect(name: string): Promise<void> {
    const connection = this.#connections.get(name);
    this.#connections.delete(name);
    if (connection === undefined) return;
    for (const jobUid of new Set(connection.cluster.jobUids())) this.#ports.onJobChanged(jobUid);
    await connection.cluster.close();
  }
}
