/** Serves `gangway up` and the tests: starts a simulated cluster, and keeps its state in a folder if one is given. */
import type { Clock } from "../../runtime/clock.ts";
import type { JsonObject } from "../../runtime/json.ts";
import { linkedController } from "../../runtime/linked-controller.ts";
import { ApiServer } from "./api/api-server.ts";
import { createObject } from "./api/verbs.ts";
import type { Faults } from "./faults.ts";
import { SimModel } from "./model.ts";
import { Journal } from "./objects/journal.ts";
import { RESOURCE_KINDS } from "./objects/resource-kinds.ts";

/** A node of a simulated cluster. */
export type SimNode = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
  /** Kubernetes quantities by resource: `cpu`, `memory`, `nvidia.com/gpu`, `pods` (omitted: 110). */
  readonly allocatable: Readonly<Record<string, string>>;
};

export type SimClusterOptions = {
  readonly name: string;
  /** The nodes of a new cluster. A saved cluster keeps the nodes of its state. */
  readonly nodes: readonly SimNode[];
  /** The directory of the saved state, for one process at a time. Null: the state is not saved. */
  readonly directory: string | null;
  readonly clock: Clock;
  /** The source of uids, generated names and faults. Omitted: `Math.random`. */
  readonly random?: () => number;
  /** The bearer token that clients must send. Omitted: no authentication. */
  readonly token?: string;
};

export type SimCluster = {
  readonly name: string;
  readonly url: string;
  /** The uid of the namespace `kube-system`. */
  readonly uid: string;
  /** Text for `KubeConfig.loadFromString`. */
  readonly kubeconfig: () => string;
  /** For changes that are no API calls, such as losing a node. Call `settle` after them. */
  readonly model: SimModel;
  /** Saves changes of the model and shows them to watches. */
  readonly settle: () => void;
  /** Replaces all faults. An empty object removes them. */
  readonly setFaults: (faults: Faults) => void;
  /** Closes open watches and connections at once. */
  readonly close: () => Promise<void>;
};

/** While an event is pending, the time is saved this often. A process that is killed repeats at most this much. */
const TICK_MS = 500;

/**
 * Starts a simulated cluster, with its API on a loopback port. `gangway up` and the tests use it where they need a
 * Kubernetes API but have no cluster. The cluster's time stops while no process runs it.
 */
export async function startSimCluster(options: SimClusterOptions): Promise<SimCluster> {
  const { name, clock, random = Math.random } = options;
  const runner = new ClusterRunner(options, random);
  let faults: Faults = {};
  const server = new ApiServer({
    model: runner.model,
    clock,
    random,
    faults: () => faults,
    catchUp: () => runner.catchUp(),
    commit: () => runner.commit(),
    token: options.token ?? null,
  });
  const url = await server.listen();
  const stopped = runner.run(() => server.pump());
  return {
    name,
    url,
    uid: runner.model.store.get("namespaces", "kube-system")?.object.metadata.uid ?? "",
    kubeconfig: () => kubeconfigText(name, url, options.token),
    model: runner.model,
    settle: () => runner.commit(),
    setFaults: (next) => {
      faults = next;
    },
    close: async () => {
      runner.stop();
      await server.close();
      await stopped;
      runner.close();
    },
  };
}

/** Advances a model by the clock, and saves it in its journal. */
class ClusterRunner {
  readonly model: SimModel;
  readonly #clock: Clock;
  readonly #journal: Journal | null;
  readonly #baseMs: number;
  readonly #stopped = new AbortController();
  #onCommit: () => void = () => {};
  #sleep = new AbortController();
  #sleepUntilMs = 0;
  #writtenMs: number;

  constructor({ nodes, directory, clock }: SimClusterOptions, random: () => number) {
    this.#clock = clock;
    this.#journal = directory === null ? null : new Journal(directory);
    const saved = this.#journal?.load() ?? null;
    this.model = new SimModel(saved ?? { nowMs: Math.round(clock.nowMs()), version: 0, entries: [] }, { random });
    if (saved === null) populate(this.model, nodes);
    this.model.takeChanges();
    this.#journal?.rewrite(this.model.snapshot());
    this.#baseMs = this.model.nowMs - clock.monotonicMs();
    this.#writtenMs = this.model.nowMs;
  }

  catchUp(): void {
    this.model.advance(Math.round(this.#baseMs + this.#clock.monotonicMs()));
  }

  commit(): void {
    const changes = this.model.takeChanges();
    const { nowMs } = this.model;
    const due = this.model.nextDueMs();
    const tick = due !== null && nowMs - this.#writtenMs >= TICK_MS;
    if (changes.length > 0 || tick) {
      this.#journal?.append(nowMs, changes, () => this.model.snapshot());
      this.#writtenMs = nowMs;
    }
    if (changes.length > 0) this.#onCommit();
    if (due !== null && due < this.#sleepUntilMs) this.#sleep.abort();
  }

  /** Advances the model whenever an event is due, until `stop`. */
  async run(onCommit: () => void): Promise<void> {
    this.#onCommit = onCommit;
    while (!this.#stopped.signal.aborted) {
      this.catchUp();
      this.commit();
      const { nowMs } = this.model;
      const delayMs = Math.min(TICK_MS, Math.max(1, (this.model.nextDueMs() ?? nowMs + TICK_MS) - nowMs));
      this.#sleepUntilMs = nowMs + delayMs;
      this.#sleep = new AbortController();
      using woken = linkedController(this.#sleep.signal, this.#stopped.signal);
      await this.#clock.sleep(delayMs, woken.signal);
    }
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** Saves the time that has passed, and closes the journal. */
  close(): void {
    this.catchUp();
    this.#journal?.append(this.model.nowMs, this.model.takeChanges(), () => this.model.snapshot());
    this.#journal?.close();
  }
}

/** Creates the namespaces and nodes of a new cluster. */
export function populate(model: SimModel, nodes: readonly SimNode[]): void {
  const make = (resource: string, body: JsonObject) => {
    const kind = RESOURCE_KINDS.get(resource);
    if (kind !== undefined) createObject(model, { kind, namespace: null }, body, false);
  };
  for (const name of ["default", "kube-system"]) make("namespaces", { metadata: { name } });
  for (const [index, node] of nodes.entries()) {
    const at = new Date(model.nowMs).toISOString().replace(/\.\d+Z$/, "Z");
    const address = `10.0.${(index + 1) >> 8}.${(index + 1) & 255}`;
    make("nodes", {
      metadata: { name: node.name, labels: { "kubernetes.io/hostname": node.name, ...node.labels } },
      spec: node.taints === undefined ? {} : { taints: node.taints },
      status: {
        allocatable: node.allocatable,
        addresses: [
          { type: "InternalIP", address },
          { type: "Hostname", address: node.name },
        ],
        conditions: [
          {
            type: "Ready",
            status: "True",
            reason: "KubeletReady",
            message: "kubelet is posting ready status",
            lastHeartbeatTime: at,
            lastTransitionTime: at,
          },
        ],
      },
    });
  }
}

function kubeconfigText(name: string, server: string, token: string | undefined): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "sim", user: token === undefined ? {} : { token } }],
    contexts: [{ name, context: { cluster: name, user: "sim" } }],
    "current-context": name,
  });
}
