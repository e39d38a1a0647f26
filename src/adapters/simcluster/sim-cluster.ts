import type { Clock } from "../../runtime/clock.ts";
import type { JsonObject } from "../../runtime/json.ts";
import type { Faults } from "./faults.ts";
import { HttpFace } from "./http-face.ts";
import { Journal } from "./journal.ts";
import { SimModel } from "./model.ts";
import { RESOURCE_KINDS } from "./resource-kinds.ts";
import { createObject } from "./verbs.ts";

export type SimNode = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
  /** Kubernetes quantities by resource: `cpu`, `memory`, `nvidia.com/gpu`, `pods` (110 if absent). */
  readonly allocatable: Readonly<Record<string, string>>;
};

export type SimClusterOptions = {
  readonly name: string;
  /** Made at the first start; later starts take the nodes that the state holds. */
  readonly nodes: readonly SimNode[];
  /** Where the state is kept; null keeps none. One process at a time. */
  readonly directory: string | null;
  readonly clock: Clock;
  /** Decides uids, generated names and faults. */
  readonly random?: () => number;
  /** If set, clients must present it. */
  readonly token?: string;
};

export type SimCluster = {
  readonly name: string;
  readonly url: string;
  /** Text for `KubeConfig.loadFromString`. */
  readonly kubeconfig: () => string;
  /** For operations that are no API calls: losing nodes, forgetting history. They take effect with the next `settle`. */
  readonly model: SimModel;
  /** Makes what was done to the model durable and visible, and lets time go on from there. */
  readonly settle: () => void;
  /** Replaces all faults; an empty object ends them. */
  readonly setFaults: (faults: Faults) => void;
  /** Ends open watches and connections at once. */
  readonly close: () => Promise<void>;
};

/** While something is pending the time is written so often: what a killed process may repeat. */
const TICK_MS = 500;

/** Starts a simulated cluster with its API on a loopback port. Its time stands still while no process runs it. */
export async function startSimCluster(options: SimClusterOptions): Promise<SimCluster> {
  const { name, clock, random = Math.random } = options;
  const shell = new Shell(options, random);
  let faults: Faults = {};
  const face = new HttpFace({
    model: shell.model,
    clock,
    random,
    faults: () => faults,
    catchUp: () => shell.catchUp(),
    commit: () => shell.commit(),
    token: options.token ?? null,
  });
  const url = await face.listen();
  const stopped = shell.run(() => face.pump());
  return {
    name,
    url,
    kubeconfig: () => kubeconfigText(name, url, options.token),
    model: shell.model,
    settle: () => shell.commit(),
    setFaults: (next) => {
      faults = next;
    },
    close: async () => {
      shell.stop();
      await face.close();
      await stopped;
      shell.close();
    },
  };
}

/** Drives a model by the clock and keeps it in its journal. */
class Shell {
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

  /** Moves the model on whenever something is due, until `stop`. */
  async run(onCommit: () => void): Promise<void> {
    this.#onCommit = onCommit;
    while (!this.#stopped.signal.aborted) {
      this.catchUp();
      this.commit();
      const { nowMs } = this.model;
      const delayMs = Math.min(TICK_MS, Math.max(1, (this.model.nextDueMs() ?? nowMs + TICK_MS) - nowMs));
      this.#sleepUntilMs = nowMs + delayMs;
      this.#sleep = new AbortController();
      await this.#clock.sleep(delayMs, AbortSignal.any([this.#sleep.signal, this.#stopped.signal]));
    }
  }

  stop(): void {
    this.#stopped.abort();
  }

  /** Writes the time that has passed, and ends. */
  close(): void {
    this.catchUp();
    this.#journal?.append(this.model.nowMs, this.model.takeChanges(), () => this.model.snapshot());
    this.#journal?.close();
  }
}

/** Gives a new cluster its namespaces and nodes. */
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
