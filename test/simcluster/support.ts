import { createObject, removeObject } from "../../src/adapters/simcluster/api/verbs.ts";
import { SimModel } from "../../src/adapters/simcluster/model.ts";
import type { ClusterSnapshot } from "../../src/adapters/simcluster/objects/object-store.ts";
import { RESOURCE_KINDS } from "../../src/adapters/simcluster/objects/resource-kinds.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import type { JsonObject } from "../../src/runtime/json.ts";

export const START_MS = Date.parse("2026-01-01T00:00:00Z");

/** Numbers from 0 to 1 that depend on the seed alone (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** A clock that runs `speed` times as fast as the machine's. */
export function fastClock(speed: number): Clock {
  const startedMs = performance.now();
  const elapsed = () => (performance.now() - startedMs) * speed;
  return {
    nowMs: () => START_MS + elapsed(),
    monotonicMs: elapsed,
    sleep: (delayMs, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const done = () => {
          clearTimeout(timer);
          signal?.removeEventListener("abort", done);
          resolve();
        };
        const timer = setTimeout(done, delayMs / speed);
        signal?.addEventListener("abort", done, { once: true });
      }),
  };
}

export function kindOf(resource: string) {
  const kind = RESOURCE_KINDS.get(resource);
  if (kind === undefined) throw new Error(`no such resource: ${resource}`);
  return kind;
}

export function create(model: SimModel, resource: string, namespace: string | null, body: JsonObject) {
  return createObject(model, { kind: kindOf(resource), namespace }, body, false);
}

export function destroy(model: SimModel, resource: string, namespace: string | null, name: string, wishes = {}) {
  const target = { kind: kindOf(resource), namespace, name };
  return removeObject(model, target, { preconditions: {}, dryRun: false, ...wishes });
}

export function pod(model: SimModel, name: string, namespace = "default") {
  return model.store.get("pods", `${namespace}/${name}`)?.object;
}

const EMPTY: ClusterSnapshot = { nowMs: START_MS, version: 0, entries: [] };

/** A cluster with the namespace `default` and some nodes of eight GPUs. */
export function newModel(nodes: number, options: { seed?: number; historyMax?: number } = {}): SimModel {
  const { seed = 1, ...rest } = options;
  const model = new SimModel(EMPTY, { random: seeded(seed), ...rest });
  create(model, "namespaces", null, { metadata: { name: "default" } });
  for (let index = 0; index < nodes; index += 1) {
    const allocatable = { cpu: "64", memory: "512Gi", "nvidia.com/gpu": "8" };
    create(model, "nodes", null, {
      metadata: { name: `n${index}`, labels: { "gpu-model": index % 2 === 0 ? "h100" : "a100" } },
      status: { allocatable },
    });
  }
  return model;
}

/** A pod's manifest; the annotations are those of the prefix `sim.gangway.dev/`. */
export function podManifest(
  name: string,
  {
    gpus = 0,
    sim = {},
    metadata = {},
    spec = {},
  }: { gpus?: number; sim?: JsonObject; metadata?: JsonObject; spec?: JsonObject } = {},
): JsonObject {
  const annotations = Object.fromEntries(Object.entries(sim).map(([key, value]) => [`sim.gangway.dev/${key}`, value]));
  const resources = gpus === 0 ? {} : { limits: { "nvidia.com/gpu": String(gpus) } };
  return {
    metadata: { name, annotations, ...metadata },
    spec: { restartPolicy: "Never", containers: [{ name: "main", image: "train:1", resources }], ...spec },
  };
}
