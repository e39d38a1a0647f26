/** Kubeconfigs in Secrets of Kubernetes, which are read again while clusters are connected by them. */
import { createHash } from "node:crypto";
import { KUBECONFIG_BYTES_MAX, type SecretReference, secretText } from "../../core/admin/cluster.ts";
import type { Clock } from "../../runtime/clock.ts";
import { canonicalJson, objectAt, stringAt } from "../../runtime/json.ts";
import { linkedController } from "../../runtime/linked-controller.ts";
import type { KubeResult } from "./client.ts";
import { createKubeClient } from "./client.ts";
import { isKnownReason } from "./kube-failure.ts";
import { pickContext } from "./kubeconfig.ts";
import { withFiles } from "./kubeconfig-files.ts";
import type { RegisteredCluster } from "./registry.ts";
import { referenceOf, type StoredReference } from "./stored-credentials.ts";
import { inClusterKubeconfig } from "./token-review.ts";

const REQUEST_MS_MAX = 5_000;
/** How often a Secret is read. A credential that is replaced should be known before the old one ends. */
const READ_MS = 10_000;
/** The same, while a cluster waits for the first kubeconfig of its Secret. */
const RETRY_MS = 2_000;

type SecretPorts = {
  readonly clock: Pick<Clock, "sleep">;
  /** Reads an object of a connected cluster by its path. Null: the cluster is not connected. */
  readonly readObject: (cluster: string, path: string, signal: AbortSignal) => Promise<KubeResult> | null;
  /** Where a pod finds its API server and its service account. Omitted: where Kubernetes puts them. */
  readonly ownAccount?: { readonly server: string; readonly folder: string };
  readonly allowLocal: boolean;
  /** A hint that `connectable` gives something else now. */
  readonly onChanged: () => void;
  /** Called once with each error of a Secret that was read before. */
  readonly onError: (error: unknown) => void;
};

/** `text` null: it was never read. `problem`: why it could not be read the last time. */
type ReadSecret = { readonly text: string | null; readonly problem: string | null };

/**
 * Follows the Secrets that hold kubeconfigs. While a Secret cannot be read, or holds a kubeconfig that is refused, the
 * one before stays in force.
 */
export class KubeconfigSecrets {
  readonly #ports: SecretPorts;
  #wanted: ReadonlyMap<string, StoredReference> = new Map();
  readonly #read = new Map<string, ReadSecret>();
  #wake = new AbortController();

  constructor(ports: SecretPorts) {
    this.#ports = ports;
  }

  /**
   * The clusters as a registry connects them: the credentials change with the content of their Secret. Leaves out
   * clusters whose Secrets were not asked for yet, which follows soon.
   */
  connectable(registered: readonly RegisteredCluster[]): readonly RegisteredCluster[] {
    const references = registered.map(({ credentials }) => referenceOf(credentials));
    const wanted = references.flatMap((one) => (one === null ? [] : ([[canonicalJson(one), one]] as const)));
    this.#wanted = new Map(wanted);
    for (const key of this.#read.keys()) if (!this.#wanted.has(key)) this.#read.delete(key);
    if (wanted.some(([key]) => !this.#read.has(key))) this.#wake.abort();
    return registered.flatMap((cluster, index) => {
      const reference = references[index] ?? null;
      if (reference === null) return [cluster];
      const read = this.#read.get(canonicalJson(reference));
      if (read === undefined) return [];
      return [{ ...cluster, credentials: { ...reference, digest: digestOf(read.text ?? "") } }];
    });
  }

  /** The kubeconfig that is in force. Throws an error that says why there is none. */
  textInForce(reference: StoredReference): string {
    const { text = null, problem = null } = this.#read.get(canonicalJson(reference)) ?? {};
    if (text === null) throw new Error(problem ?? `${secretText(reference)} was not read yet`);
    return text;
  }

  /** Reads a value of a Secret now. Throws an error that says why it cannot be read, without any content. */
  async read(reference: SecretReference, signal?: AbortSignal): Promise<string> {
    const { cluster, namespace, name, key } = reference;
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets/${encodeURIComponent(name)}`;
    using limited = linkedController(AbortSignal.timeout(REQUEST_MS_MAX), ...(signal === undefined ? [] : [signal]));
    const asked =
      cluster === "" ? this.#readOwn(path, limited.signal) : this.#ports.readObject(cluster, path, limited.signal);
    const answer = await asked;
    if (answer === null) throw new Error(`${secretText(reference)} cannot be read: that cluster is not connected`);
    if (answer.kind === "failed") throw new Error(`${secretText(reference)} ${failureText(answer)}`);
    const data = objectAt(answer.object, "data");
    const value = Object.hasOwn(data, key) ? stringAt(data, key) : undefined;
    if (value === undefined) throw new Error(`${secretText(reference)} has no key ${key}`);
    const bytes = Buffer.from(value, "base64");
    if (bytes.length > KUBECONFIG_BYTES_MAX) {
      throw new Error(`${secretText(reference)} has more than ${KUBECONFIG_BYTES_MAX} bytes in its key ${key}`);
    }
    return bytes.toString("utf8");
  }

  /** Reads the Secrets again and again until the signal is aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#wake = new AbortController();
      await this.refresh(signal);
      using woken = linkedController(signal, this.#wake.signal);
      const isWaiting = [...this.#read.values()].some(({ text }) => text === null);
      await this.#ports.clock.sleep(isWaiting ? RETRY_MS : READ_MS, woken.signal);
    }
  }

  /** Reads every Secret once. */
  async refresh(signal: AbortSignal): Promise<void> {
    const changed = await Promise.all([...this.#wanted].map(([key, one]) => this.#follow(key, one, signal)));
    if (changed.includes(true) && !signal.aborted) this.#ports.onChanged();
  }

  /** True if what is connectable has changed. */
  async #follow(key: string, reference: StoredReference, signal: AbortSignal): Promise<boolean> {
    const before = this.#read.get(key);
    const now = await this.#readChecked(reference, signal);
    if (signal.aborted || !this.#wanted.has(key)) return false;
    const text = now.text ?? before?.text ?? null;
    this.#read.set(key, { text, problem: now.problem });
    if (text !== null && now.problem !== null && now.problem !== before?.problem) {
      this.#ports.onError(new Error(`${now.problem}; the kubeconfig that was read before stays in force`));
    }
    return before === undefined || before.text !== text;
  }

  async #readChecked(reference: StoredReference, signal: AbortSignal): Promise<ReadSecret> {
    try {
      const text = await this.read(reference, signal);
      const picked = pickContext(text, { context: reference.context, allowLocal: this.#ports.allowLocal });
      if (picked.kind === "ok") return { text, problem: null };
      return { text: null, problem: `${secretText(reference)}: ${picked.problems.join("; ")}` };
    } catch (error) {
      return { text: null, problem: error instanceof Error ? error.message : String(error) };
    }
  }

  /** Reads with a client of its own, so that the account's token and authority are those of now. */
  async #readOwn(path: string, signal: AbortSignal): Promise<KubeResult | null> {
    const kubeconfig = await withFiles(inClusterKubeconfig(this.#ports.ownAccount)).catch(() => {
      throw new Error("this process does not run in a Kubernetes cluster: name a registered cluster of the Secret");
    });
    const client = createKubeClient({ kubeconfig, connectionsMax: 1, requestTimeoutMs: REQUEST_MS_MAX });
    try {
      return await client.request({ method: "GET", path }, signal);
    } finally {
      await client.close();
    }
  }
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}

/** Says why a Secret cannot be read, and what to do. Repeats no text of a server. */
function failureText({ status, reason }: Extract<KubeResult, { kind: "failed" }>): string {
  if (status === 404) return "does not exist";
  if (status === 403) return "may not be read: Gangway's account there needs the verb get for it";
  if (status === 401) return "cannot be read: that cluster does not accept Gangway's credentials";
  if (status === 0) return "cannot be read: that cluster does not answer";
  return `cannot be read: that cluster answers ${status}${isKnownReason(reason) ? ` ${reason}` : ""}`;
}
