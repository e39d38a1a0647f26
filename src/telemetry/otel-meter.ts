import { type Histogram, metrics } from "@opentelemetry/api";
import { type GaugeReading, HISTOGRAM_BOUNDS, METRICS, type Meter, type MetricLabels } from "./metrics.ts";

type OtelInstrument = {
  readonly record: (value: number, labels?: MetricLabels) => void;
  readonly read: (readings: () => readonly GaugeReading[]) => void;
};

/** The same metrics, for the provider that is registered with OpenTelemetry now. */
export function createOtelMeter(): Meter {
  const instruments = new Map<string, OtelInstrument>();
  for (const key of Object.keys(METRICS)) instruments.set(key, instrument(METRICS[key as keyof typeof METRICS]));
  return {
    record: (metric, value, labels) => instruments.get(metric)?.record(value, labels),
    read: (metric, readings) => instruments.get(metric)?.read(readings),
  };
}

const IGNORED = () => undefined;

function instrument({ kind, name, help }: (typeof METRICS)[keyof typeof METRICS]): OtelInstrument {
  const meter = metrics.getMeter("gangway");
  const unit = name.endsWith("_seconds") ? "s" : "1";
  const options = { description: help, unit };
  switch (kind) {
    case "counter": {
      const counter = meter.createCounter(name, options);
      return { record: (value, labels) => counter.add(value, labels), read: IGNORED };
    }
    case "histogram": {
      const advice = { explicitBucketBoundaries: [...HISTOGRAM_BOUNDS] };
      const histogram: Histogram = meter.createHistogram(name, { ...options, advice });
      return { record: (value, labels) => histogram.record(value, labels), read: IGNORED };
    }
    case "gauge":
      return gauge({ name, options });
  }
}

/** An instrument of OpenTelemetry is either recorded or asked; which of the two shows with the first use. */
function gauge({ name, options }: { readonly name: string; readonly options: object }): OtelInstrument {
  const meter = metrics.getMeter("gangway");
  let recorded: ReturnType<typeof meter.createGauge> | null = null;
  return {
    record: (value, labels) => {
      recorded ??= meter.createGauge(name, options);
      recorded.record(value, labels);
    },
    read: (readings) => {
      meter.createObservableGauge(name, options).addCallback((result) => {
        for (const { value, labels } of readings()) result.observe(value, labels);
      });
    },
  };
}
