import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Attributes,
  type Context,
  type ContextManager,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  type SpanOptions,
  type TextMapPropagator,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { parseTraceParent } from "../../src/telemetry/trace-parent.ts";

/** A started span, as an exporter sees it. */
export type SeenSpan = {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly attributes: Attributes;
  ended: boolean;
  failed: boolean;
};

/**
 * Registers an OpenTelemetry provider that keeps spans in memory, with the other parts of an SDK. `off` removes it.
 */
export function traceInMemory(): { readonly spans: readonly SeenSpan[]; readonly off: () => void } {
  const spans: SeenSpan[] = [];
  const tracer = memoryTracer(spans);
  trace.setGlobalTracerProvider({ getTracer: () => tracer });
  context.setGlobalContextManager(asyncContext());
  propagation.setGlobalPropagator(w3c);
  return {
    spans,
    off: () => {
      trace.disable();
      context.disable();
      propagation.disable();
    },
  };
}

function memoryTracer(spans: SeenSpan[]): Tracer {
  let count = 0;
  const startSpan = (name: string, options: SpanOptions = {}, parentContext: Context = context.active()): Span => {
    const parent = trace.getSpanContext(parentContext);
    const spanId = (++count).toString(16).padStart(16, "0");
    const traceId = parent?.traceId ?? spanId.padStart(32, "f");
    const seen: SeenSpan = {
      name,
      traceId,
      spanId,
      parentSpanId: parent?.spanId ?? null,
      attributes: { ...options.attributes },
      ended: false,
      failed: false,
    };
    spans.push(seen);
    return spanOf(seen, { traceId, spanId, traceFlags: 1 });
  };
  return {
    startSpan,
    startActiveSpan: ((name: string, options: SpanOptions, parent: Context, run: (span: Span) => unknown) => {
      const span = startSpan(name, options, parent);
      return context.with(trace.setSpan(parent, span), () => run(span));
    }) as Tracer["startActiveSpan"],
  };
}

function spanOf(seen: SeenSpan, spanContext: SpanContext): Span {
  const span: Span = {
    spanContext: () => spanContext,
    setAttribute: (key, value) => {
      seen.attributes[key] = value;
      return span;
    },
    setAttributes: () => span,
    addEvent: () => span,
    addLink: () => span,
    addLinks: () => span,
    setStatus: () => span,
    updateName: () => span,
    isRecording: () => true,
    recordException: () => {
      seen.failed = true;
    },
    end: () => {
      seen.ended = true;
    },
  };
  return span;
}

function asyncContext(): ContextManager {
  const storage = new AsyncLocalStorage<Context>();
  const manager: ContextManager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (active, run, self, ...args) => storage.run(active, () => run.apply(self as never, args)),
    bind: (_active, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  return manager;
}

const w3c: TextMapPropagator = {
  inject: () => {},
  extract: (active, carrier, getter) => {
    const header = getter.get(carrier, "traceparent");
    const parent = typeof header === "string" ? parseTraceParent(header) : null;
    return parent === null ? active : trace.setSpanContext(active, parent);
  },
  fields: () => ["traceparent"],
};
