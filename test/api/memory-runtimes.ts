import type { TrainingRuntimes } from "../../src/api/ports.ts";
import { RUNTIMES_MAX } from "../../src/core/admin/training-runtime.ts";
import { SHIPPED_RUNTIMES, shippedRuntime } from "../../src/core/kinds/trainjob/shipped-runtimes.ts";
import { type RuntimeName, runtimeText, type TrainingRuntime } from "../../src/core/kinds/trainjob/training-runtime.ts";
import { compareText } from "../../src/runtime/compare-text.ts";

/** Training runtimes in memory. `hasNamespace`: whether there is a namespace. */
export function memoryRuntimes(hasNamespace: (name: string) => boolean): TrainingRuntimes {
  const kept = new Map<string, TrainingRuntime>();
  const of = (namespace: string) => [...kept.values()].filter((one) => one.namespace === namespace);
  const keyOf = ({ namespace, name }: RuntimeName) => `${namespace}/${name}`;
  const keep = (record: TrainingRuntime, isTried: boolean) => {
    if (!isTried) kept.set(keyOf(record), record);
    return { kind: "done", record } as const;
  };
  return {
    create: async (settings, { isTried = false } = {}) => {
      if (shippedRuntime(settings) !== null) return { kind: "shipped" };
      if (settings.namespace !== "" && !hasNamespace(settings.namespace)) return { kind: "unknownNamespace" };
      if (kept.has(keyOf(settings))) return { kind: "exists" };
      if (of(settings.namespace).length >= RUNTIMES_MAX) return { kind: "full", max: RUNTIMES_MAX };
      return keep({ ...settings, version: 1, createTimeMs: 1000 }, isTried);
    },
    update: async ({ version, ...settings }, { isTried = false } = {}) => {
      if (shippedRuntime(settings) !== null) return { kind: "shipped" };
      const before = kept.get(keyOf(settings));
      if (before === undefined) return { kind: "notFound" };
      if (version !== 0 && version !== before.version) return { kind: "stale" };
      return keep({ ...before, ...settings, version: before.version + 1 }, isTried);
    },
    remove: async (name) => {
      if (shippedRuntime(name) !== null) return { kind: "shipped" };
      const record = kept.get(keyOf(name));
      if (record === undefined) return { kind: "notFound" };
      kept.delete(keyOf(name));
      return { kind: "done", record };
    },
    find: async (name) => shippedRuntime(name) ?? kept.get(keyOf(name)) ?? null,
    list: async ({ namespaces, after, pageSize }) => {
      const seen = [...SHIPPED_RUNTIMES, ...kept.values()].filter(
        ({ namespace }) => namespaces === null || namespaces.includes(namespace),
      );
      const sorted = seen.sort((a, b) => compareText(a.namespace, b.namespace) || compareText(a.name, b.name));
      const from = after === null ? 0 : sorted.findIndex((one) => runtimeText(one) === after) + 1;
      if (after !== null && from === 0) return "badCursor";
      const page = sorted.slice(from, from + pageSize);
      const last = page.at(-1);
      const hasMore = sorted.length > from + page.length && last !== undefined;
      return { runtimes: page.map(({ spec: _spec, ...one }) => one), next: hasMore ? runtimeText(last) : null };
    },
  };
}
