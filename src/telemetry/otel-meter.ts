import { type Histogram, metrics } from "@opentelemetry/api";
import { HISTOGRAM_BOUNDS, type Labels, METRICS, type Meter, type Reading } from "./metrics.ts";

type Instrument = {
  readonly record: (value: number, labels?: Labels) => void;
  readonly read: (readings: () => readonly Reading[]) => void;
};

/** The same metrics for whatever provider is registered with OpenTelemetry now. */
export function createOtelMeter(): Meter {
  const instruments = new Map<string, Instrument>();
  for (const key of Object.keys(METRICS)) instruments.set(key, instrument(METRICS[key as keyof typeof METRICS]));
  return {
    record: (metric, value, labels) => instruments.get(metric)?.record(value, labels),
    read: (metric, readings) => instruments.get(metric)?.read(readings),
  };
}

const NOT_ASKED_FOR = () => undefined;

function instrument({ kind, name, help }: (typeof METRICS)[keyof typeof METRICS]): Instrument {
  const meter = metrics.getMeter("gangway");
  const unit = name.endsWith("_seconds") ? "s" : "1";
  const options = { description: help, unit };
  switch (kind) {
    case "counter": {
      const counter = meter.createCounter(name, options);
      return { record: (value, labels) => counter.add(value, labels), read: NOT_ASKED_FOR };
    }
    case "histogram": {
      const advice = { explicitBucketBoundaries: [...HISTOGRAM_BOUNDS] };
      const histogram: Histogram = meter.createHistogram(name, { ...options, advice });
      return { record: (value, labels) => histogram.record(value, labels), read: NOT_ASKED_FOR };
    }
    case "gauge":
      return gauge({ name, options });
  }
}

/** An instrument of OpenTelemetry is either told or asked; which of the two shows with the first use. */
function gauge({ name, options }: { readonly name: string; readonly options: object }): Instrument {
  const meter = metrics.getMeter("gangway");
  let told: ReturnType<typeof meter.createGauge> | null = null;
  return {
    record: (value, labels) => {
      told ??= meter.createGauge(name, options);
      told.record(value, labels);
    },
    read: (readings) => {
      meter.createObservableGauge(name, options).addCallback((result) => {
        for (const { value, labels } of readings()) result.observe(value, labels);
      });
    },
  };
}
