import type { Counter, Gauge, Histogram } from "prom-client";
import { HISTOGRAM_BOUNDS, type Labels, METRICS, type Meter, type MetricKey, type Reading } from "./metrics.ts";

export type Prometheus = Meter & {
  /** Everything as Prometheus reads it. */
  readonly scrape: () => Promise<{ readonly contentType: string; readonly body: string }>;
};

type Instrument = (value: number, labels: Labels) => void;

/** Keeps every metric, and those of the process itself, for a scrape. Loads prom-client, which nothing else does. */
export async function createPrometheus(): Promise<Prometheus> {
  const prom = await import("prom-client");
  const registry = new prom.Registry();
  prom.collectDefaultMetrics({ register: registry });
  const readers = new Map<string, () => readonly Reading[]>();
  const instruments = new Map<string, Instrument>();
  for (const [key, { kind, name, help, labels }] of Object.entries(METRICS)) {
    const options = { name, help, labelNames: [...labels], registers: [registry] };
    if (kind === "counter") instruments.set(key, onCounter(new prom.Counter(options)));
    if (kind === "histogram") {
      instruments.set(key, onHistogram(new prom.Histogram({ ...options, buckets: [...HISTOGRAM_BOUNDS] })));
    }
    if (kind === "gauge") {
      const gauge: Gauge = new prom.Gauge({ ...options, collect: () => collect(gauge, readers.get(key)) });
      instruments.set(key, onGauge(gauge));
    }
  }
  return {
    record: (metric, value, labels = {}) => instruments.get(metric)?.(value, labels),
    read: (metric: MetricKey, readings) => void readers.set(metric, readings),
    scrape: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
  };
}

function onCounter(counter: Counter): Instrument {
  return (value, labels) => counter.inc(labels, value);
}

function onHistogram(histogram: Histogram): Instrument {
  return (value, labels) => histogram.observe(labels, value);
}

function onGauge(gauge: Gauge): Instrument {
  return (value, labels) => gauge.set(labels, value);
}

/** A gauge that is asked for shows what is said now and nothing of what was said before. */
function collect(gauge: Gauge, readings: (() => readonly Reading[]) | undefined): void {
  if (readings === undefined) return;
  gauge.reset();
  for (const { value, labels } of readings()) gauge.set(labels, value);
}
