/** The API server under test, and the helpers that all subjects of the suite share. */

import assert from "node:assert/strict";
import { Actions } from "../../../src/adapters/cluster/actions.ts";
import type { KubeClient, KubeResult } from "../../../src/adapters/cluster/client.ts";
import { type Cluster, connectCluster } from "../../../src/adapters/cluster/cluster.ts";
import { WriteQueue } from "../../../src/adapters/cluster/write-queue.ts";
import { type JsonObject, objectAt, stringAt } from "../../../src/runtime/json.ts";
import { type BookedReport, CapacityBook } from "../../cluster/capacity-book.ts";
import { clientOf, clock, INSTALLATION, seededRandom, startProxy, until } from "../../cluster/harness.ts";
import type { Subject } from "../subject.ts";

export const signal = new AbortController().signal;
export const done = { kind: "done" } as const;
export const already = { kind: "already" } as const;

export const nameOf = (object: JsonObject | null) => stringAt(objectAt(object, "metadata"), "name") ?? "";
export const uidOf = (object: JsonObject | null) => stringAt(objectAt(object, "metadata"), "uid") ?? "";
export const versionOf = (object: JsonObject | null) => stringAt(objectAt(object, "metadata"), "resourceVersion") ?? "";

export function ok(result: KubeResult): JsonObject {
  assert.equal(result.kind, "ok", result.kind === "failed" ? result.message : "");
  return result.kind === "ok" ? result.object : {};
}

/** Asks again while the server asks us to wait, as a server does that is preparing the storage of a new kind. */
export async function patiently(ask: () => Promise<KubeResult>): Promise<KubeResult> {
  let answer = await ask();
  await until(async () => {
    if (answer.kind === "ok" || ![429, 503].includes(answer.status)) return true;
    answer = await ask();
    return false;
  }, "the server has time");
  return answer;
}

/** The API server under test, an administrator's client of it, and the adapter's client. */
export class Scene {
  readonly #start: () => Promise<Subject>;
  #subject: Subject | null = null;
  #admin: KubeClient | null = null;
  #adapter: KubeClient | null = null;

  constructor(start: () => Promise<Subject>) {
    this.#start = start;
  }

  async open(): Promise<void> {
    this.#subject = await this.#start();
    this.#admin = clientOf(this.subject.kubeconfig);
    this.#adapter = clientOf(this.subject.adapterKubeconfig);
  }

  async close(): Promise<void> {
    await this.#admin?.close();
    await this.#adapter?.close();
    await this.#subject?.stop();
  }

  get subject(): Subject {
    assert.ok(this.#subject);
    return this.#subject;
  }

  get admin(): KubeClient {
    assert.ok(this.#admin);
    return this.#admin;
  }

  get adapter(): KubeClient {
    assert.ok(this.#adapter);
    return this.#adapter;
  }

  /** Actions of a worker that has seen nothing yet. */
  actions(options: { createNamespaces?: boolean; client?: KubeClient } = {}): Actions {
    return new Actions({
      client: options.client ?? this.adapter,
      clock,
      installation: INSTALLATION,
      seen: () => undefined,
      writes: new WriteQueue({ clock, writesMax: 50 }),
      createNamespaces: options.createNamespaces ?? false,
    });
  }

  async get(resource: string, name: string, namespace = "default"): Promise<JsonObject | null> {
    const path = `/api/v1/namespaces/${namespace}/${resource}/${name}`;
    const got = await this.admin.request({ method: "GET", path });
    if (got.kind === "failed") assert.equal(got.status, 404, got.message);
    return got.kind === "ok" ? got.object : null;
  }

  /** A namespace with the objects that Kubernetes puts into it, so that pods can be created there. */
  async namespace(name: string): Promise<string> {
    ok(await this.admin.request({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name } } }));
    await until(async () => (await this.get("serviceaccounts", "default", name)) !== null, "its account is there");
    return name;
  }

  proxy(treat: Parameters<typeof startProxy>[1]) {
    return startProxy(this.subject.url, treat, this.subject);
  }

  /** A connected cluster, and everything that it reports. */
  connect(): { cluster: Cluster; changed: string[]; reports: readonly BookedReport[] } {
    const changed: string[] = [];
    const book = new CapacityBook();
    const cluster = connectCluster({
      name: "one",
      kubeconfig: this.subject.adapterKubeconfig,
      installation: INSTALLATION,
      clock,
      random: seededRandom(3),
      createNamespaces: false,
      onJobChanged: (jobUid) => changed.push(jobUid),
      onCapacity: (report) => book.take(report),
      onError: () => undefined,
    });
    return { cluster, changed, reports: book.reports };
  }
}
