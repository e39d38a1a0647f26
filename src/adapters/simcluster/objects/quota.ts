import { parseMilli } from "../../../core/pods/quantity.ts";
import { podRequests } from "../../../core/pods/resources.ts";
import { getOrCreate } from "../../../runtime/get-or-create.ts";
import type { JsonObject } from "../../../runtime/json.ts";
import { arrayAt, canonicalJson, objectAt, stringAt } from "../../../runtime/json.ts";
import type { KubeObject } from "./kube-object.ts";
import { isTerminalPod, keyOf } from "./kube-object.ts";
import type { ObjectStore } from "./object-store.ts";
import { forbidden } from "./status-error.ts";

/** Amounts in thousandths, by the names that a ResourceQuota uses. */
type QuotaUsage = Readonly<Record<string, number>>;

/**
 * The ResourceQuota controller and admission plugin. Counts the use of each namespace, refuses objects that exceed a
 * quota, and writes the use into the quotas' status.
 */
export class Quotas {
  readonly #store: ObjectStore;
  readonly #used = new Map<string, Record<string, number>>();
  readonly #quotas = new Map<string, Set<string>>();
  readonly #dirty = new Set<string>();

  constructor(store: ObjectStore) {
    this.#store = store;
    store.observe((resource, before, after) => {
      const namespace = (after ?? before)?.metadata.namespace;
      if (namespace === undefined) return;
      if (resource === "resourcequotas") this.#onQuotaChange(namespace, before, after);
      this.#charge(namespace, before === null ? {} : usageOf(resource, before), -1);
      this.#charge(namespace, after === null ? {} : usageOf(resource, after), 1);
    });
  }

  get busy(): boolean {
    return this.#dirty.size > 0;
  }

  /** Throws a 403 if a new object does not fit into every quota of its namespace. */
  admit(resource: string, object: KubeObject): void {
    const namespace = object.metadata.namespace ?? "";
    const requested = usageOf(resource, object);
    const used = this.#used.get(namespace) ?? {};
    for (const key of this.#quotas.get(namespace) ?? []) {
      const quota = this.#store.get("resourcequotas", key)?.object;
      if (quota === undefined) continue;
      const hard = objectAt(quota.spec, "hard");
      if (resource === "pods") mustSpecify(object, quota.metadata.name, hard);
      const over = Object.keys(hard)
        .filter((name) => (requested[name] ?? 0) > 0 && (used[name] ?? 0) + (requested[name] ?? 0) > milli(hard[name]))
        .sort();
      if (over.length === 0) continue;
      const line = (amount: (name: string) => string) => over.map((name) => `${name}=${amount(name)}`).join(",");
      const why = [
        `exceeded quota: ${quota.metadata.name}`,
        `requested: ${line((name) => shown(name, requested[name] ?? 0))}`,
        `used: ${line((name) => shown(name, used[name] ?? 0))}`,
        `limited: ${line((name) => String(hard[name]))}`,
      ].join(", ");
      throw forbidden(resource, object.metadata.name, why);
    }
  }

  /** Updates the status of the quotas of namespaces whose use has changed. */
  run(): void {
    for (const namespace of this.#dirty) {
      const used = this.#used.get(namespace) ?? {};
      for (const key of this.#quotas.get(namespace) ?? []) {
        const quota = this.#store.get("resourcequotas", key)?.object;
        if (quota === undefined) continue;
        const hard = objectAt(quota.spec, "hard");
        const shownUse = Object.fromEntries(Object.keys(hard).map((name) => [name, shown(name, used[name] ?? 0)]));
        const status = { hard, used: shownUse };
        if (canonicalJson(status) === canonicalJson(quota.status)) continue;
        this.#store.put("resourcequotas", { ...quota, status }, null);
      }
    }
    this.#dirty.clear();
  }

  #onQuotaChange(namespace: string, before: KubeObject | null, after: KubeObject | null): void {
    const of = getOrCreate(this.#quotas, namespace, () => new Set());
    if (after !== null) of.add(keyOf(after.metadata));
    else if (before !== null) of.delete(keyOf(before.metadata));
    this.#dirty.add(namespace);
  }

  #charge(namespace: string, usage: QuotaUsage, sign: 1 | -1): void {
    const used = getOrCreate(this.#used, namespace, (): Record<string, number> => ({}));
    for (const [name, amount] of Object.entries(usage)) used[name] = (used[name] ?? 0) + sign * amount;
    if ((this.#quotas.get(namespace)?.size ?? 0) > 0) this.#dirty.add(namespace);
  }
}

const COUNTED = ["pods", "services", "configmaps", "secrets", "persistentvolumeclaims", "resourcequotas"];

/** Returns the use of an object. A pod that has ended uses only `count/pods`. */
function usageOf(resource: string, object: KubeObject): QuotaUsage {
  const usage: Record<string, number> = { [`count/${resource}`]: 1000 };
  if (resource !== "pods" && COUNTED.includes(resource)) usage[resource] = 1000;
  return resource === "pods" && !isTerminalPod(object) ? { ...usage, ...podUsage(object.spec ?? {}) } : usage;
}

function podUsage(spec: JsonObject): QuotaUsage {
  const usage: Record<string, number> = {};
  for (const [name, amount] of Object.entries(podRequests(spec))) {
    usage[name === "pods" ? name : `requests.${name}`] = amount;
    if (name === "cpu" || name === "memory") usage[name] = amount;
  }
  for (const container of arrayAt(spec, "containers")) {
    for (const [name, limit] of Object.entries(objectAt(objectAt(container, "resources"), "limits"))) {
      usage[`limits.${name}`] = (usage[`limits.${name}`] ?? 0) + milli(limit);
    }
  }
  return usage;
}

/** With a quota on CPU or memory, every container must have a request or limit for it. */
function mustSpecify(pod: KubeObject, quota: string, hard: JsonObject): void {
  const missing = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"].filter((name) => {
    const [list, resource] = name.includes(".") ? name.split(".") : ["requests", name];
    return hard[name] !== undefined && !specified(pod, list ?? "", resource ?? "");
  });
  if (missing.length === 0) return;
  const names = arrayAt(pod.spec, "containers").map((container) => stringAt(container, "name"));
  const list = missing.map((name) => `${name} for: ${names.join(",")}`).join("; ");
  throw forbidden("pods", pod.metadata.name, `failed quota: ${quota}: must specify ${list}`);
}

function specified(pod: KubeObject, list: string, resource: string): boolean {
  return arrayAt(pod.spec, "containers").every(
    (container) => objectAt(objectAt(container, "resources"), list)[resource] !== undefined,
  );
}

function milli(quantity: unknown): number {
  return Number(parseMilli(String(quantity)) ?? 0n);
}

function shown(name: string, amount: number): string {
  if (amount % 1000 !== 0) return `${amount}m`;
  const whole = amount / 1000;
  const mebi = 1024 * 1024;
  return name.endsWith("memory") && whole !== 0 && whole % mebi === 0 ? `${whole / mebi}Mi` : String(whole);
}
