import type { Counter, Gauge, Histogram } from "prom-client";
import {
  type GaugeReading,
  HISTOGRAM_BOUNDS,
  METRICS,
  type Meter,
  type MetricKey,
  type MetricLabels,
} from "./metrics.ts";

export type Prometheus = Meter & {
  /** All metrics in Prometheus' format. */
  readonly scrape: () => Promise<{ readonly contentType: string; readonly body: string }>;
};

type RecordValue = (value: number, labels: MetricLabels) => void;

/** Keeps every metric, and metrics of the process, for scrapes. Only this function loads prom-client. */
export async function createPrometheus(): Promise<Prometheus> {
  const prom = await import("prom-client");
  const registry = new prom.Registry();
  prom.collectDefaultMetrics({ register: registry });
  const readers = new Map<string, () => readonly GaugeReading[]>();
  const instruments = new Map<string, RecordValue>();
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

function onCounter(counter: Counter): RecordValue {
  return (value, labels) => counter.inc(labels, value);
}

function onHistogram(histogram: Histogram): RecordValue {
  return (value, labels) => histogram.observe(labels, value);
}

function onGauge(gauge: Gauge): RecordValue {
  return (value, labels) => gauge.set(labels, value);
}

/** Replaces all values of a gauge by those that are read now. */
function collect(gauge: Gauge, readings: (() => readonly GaugeReading[]) | undefined): void {
  if (readings === undefined) return;
  gauge.reset();
  for (const { value, labels } of readings()) gauge.set(labels, value);
}
