import assert from "node:assert/strict";
import { createKubeClient, type KubeClient } from "../../../src/adapters/cluster/client.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { arrayAt, numberAt, objectAt } from "../../../src/runtime/json.ts";
import { Semaphore } from "../../../src/runtime/semaphore.ts";
import { waitUntil } from "../../support/bounded.ts";

export const GPU = "nvidia.com/gpu";
/** The bench uses only nodes of this run, and counts only its pods. */
export const RUN_LABEL = "bench.gangway.dev/run";
/** The most calls at a time: as many writes as the service sends at a time. */
const CALLS_MAX = 50;

/** The statuses of calls that took too long; 0: no answer came. */
const IS_LATE = [0, 429, 500, 504];
/** How long the deletion of all pods of a run may take. */
const REMOVE_MS_MAX = 900_000;

/** A pod that uses one GPU. It runs until it is deleted, or on a simulated cluster for a time such as `500ms`. */
export function podTemplate(runs = "forever"): JsonObject & { readonly spec: JsonObject } {
  const resources = { limits: { [GPU]: "1" } };
  return {
    metadata: { annotations: { "sim.gangway.dev/run": runs, "sim.gangway.dev/log-every": "never" } },
    spec: { containers: [{ name: "main", image: "example.com/train:1", resources }] },
  };
}

/** One cluster of the bench: adds its nodes, creates bare pods and counts pods. */
export class BenchCluster {
  readonly name: string;
  readonly kubeconfig: string;
  readonly run: string;
  readonly #client: KubeClient;
  readonly #calls = new Semaphore(CALLS_MAX);
  #nodes: readonly string[] = [];

  constructor(name: string, kubeconfig: string, run: string) {
    this.name = name;
    this.kubeconfig = kubeconfig;
    this.run = run;
    this.#client = createKubeClient({ kubeconfig, connectionsMax: CALLS_MAX, requestTimeoutMs: 30_000 });
  }

  /** Adds nodes that KWOK runs. A simulated cluster runs any node. */
  async addNodes({ count, gpus }: { readonly count: number; readonly gpus: number }): Promise<void> {
    this.#nodes = Array.from({ length: count }, (_, at) => `${this.run}-${at}`);
    const allocatable = { cpu: "512", memory: "4Ti", pods: "500", [GPU]: String(gpus) };
    const condition = { type: "Ready", status: "True", reason: "KubeletReady", message: "" };
    await Promise.all(
      this.#nodes.map((name) =>
        this.#send("POST", "/api/v1/nodes", {
          apiVersion: "v1",
          kind: "Node",
          metadata: {
            name,
            labels: { [RUN_LABEL]: this.run, "kubernetes.io/hostname": name, type: "kwok" },
            annotations: { "kwok.x-k8s.io/node": "fake" },
          },
          status: { allocatable, capacity: allocatable, conditions: [condition] },
        }),
      ),
    );
    await this.#send("POST", "/api/v1/namespaces", { metadata: { name: this.run } });
    const account = { method: "GET", path: `/api/v1/namespaces/${this.run}/serviceaccounts/default` } as const;
    const exists = async () => (await this.#client.request(account)).kind !== "failed";
    await waitUntil(`namespace ${this.run} has its service account`, exists, { pollMs: 20 });
  }

  /** Creates a config map for each job, as its anchor, and the pods. */
  async createBare({ jobs, pods }: { readonly jobs: number; readonly pods: number }): Promise<void> {
    const path = `/api/v1/namespaces/${this.run}/configmaps`;
    const manifest = (at: number) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: `bare-${at}`, labels: { [RUN_LABEL]: this.run } },
    });
    await Promise.all(Array.from({ length: jobs }, (_, at) => this.#send("POST", path, manifest(at))));
    await this.#createPods(pods);
  }

  async #createPods(count: number): Promise<void> {
    const { metadata, spec } = podTemplate();
    const manifest = (at: number) => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...objectAt({ metadata }, "metadata"), name: `bare-${at}` },
      spec: { ...spec, restartPolicy: "Never", nodeSelector: { [RUN_LABEL]: this.run } },
    });
    const path = `/api/v1/namespaces/${this.run}/pods`;
    await Promise.all(Array.from({ length: count }, (_, at) => this.#send("POST", path, manifest(at))));
  }

  async removePods(): Promise<void> {
    await this.#removeAll("pods", {});
  }

  async removeBare(): Promise<void> {
    await this.removePods();
    await this.#removeAll("configmaps", { labelSelector: `${RUN_LABEL}=${this.run}` });
  }

  /** An API server takes longer for thousands of objects than a call may take. Asked again, it goes on. */
  async #removeAll(resource: string, query: Readonly<Record<string, string>>): Promise<void> {
    const path = `/api/v1/namespaces/${this.run}/${resource}`;
    const body = { gracePeriodSeconds: 0 };
    const areGone = async () => {
      const sent = await this.#calls.run(() => this.#client.request({ method: "DELETE", path, body, query }));
      if (sent.kind === "ok") return true;
      if (!IS_LATE.includes(sent.status)) throw new Error(`DELETE ${path}: ${sent.reason}: ${sent.message}`);
      return false;
    };
    await waitUntil(`all ${resource} of ${this.run} are deleted`, areGone, { maxMs: REMOVE_MS_MAX });
  }

  async countPods(): Promise<number> {
    const path = `/api/v1/namespaces/${this.run}/pods`;
    const page = await this.#client.request({ method: "GET", path, query: { limit: "1" } });
    assert.equal(page.kind, "ok", "pods are listed");
    const { object } = page;
    return arrayAt(object, "items").length + (numberAt(objectAt(object, "metadata"), "remainingItemCount") ?? 0);
  }

  /** Removes everything that the run created. */
  async close(): Promise<void> {
    await this.removePods();
    await this.#send("DELETE", `/api/v1/namespaces/${this.run}`, {});
    await Promise.all(this.#nodes.map((name) => this.#send("DELETE", `/api/v1/nodes/${name}`, {})));
    await this.#client.close();
  }

  #send(
    method: "POST" | "DELETE",
    path: string,
    body: JsonObject,
    query: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    return this.#calls.run(async () => {
      const sent = await this.#client.request({ method, path, body, query });
      if (sent.kind === "failed") throw new Error(`${method} ${path}: ${sent.reason}: ${sent.message}`);
    });
  }
}
