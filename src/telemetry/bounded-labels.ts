/** Keeps the number of series of a metric within a bound, whatever users name. */
import type { GaugeReading } from "./metrics.ts";

/** The label of what is beyond the bound. No name of Gangway has parentheses. */
export const OTHER = "(other)";

/** Names queues, clusters or reasons by themselves until there are so many, then as `OTHER`. */
export function boundedLabel(most: number): (name: string) => string {
  const known = new Set<string>();
  return (name) => {
    if (known.has(name)) return name;
    if (known.size >= most) return OTHER;
    known.add(name);
    return name;
  };
}

/** The first readings, and the others summed by the rest of their labels with `OTHER` in place of this one. */
export function boundedReadings(
  readings: readonly GaugeReading[],
  { label, most }: { readonly label: string; readonly most: number },
): readonly GaugeReading[] {
  const sums = new Map<string, GaugeReading>();
  for (const { value, labels } of readings.slice(most)) {
    const others = { ...labels, [label]: OTHER };
    const key = JSON.stringify(others);
    sums.set(key, { labels: others, value: value + (sums.get(key)?.value ?? 0) });
  }
  return [...readings.slice(0, most), ...sums.values()];
}
