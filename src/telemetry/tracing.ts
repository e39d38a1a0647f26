import {
  type Attributes,
  type Context,
  context,
  defaultTextMapGetter,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { formatTraceParent, parseTraceParent } from "./trace-parent.ts";

/** Makes spans with the provider that is registered with OpenTelemetry. A process that traces nothing has none. */
export type Tracing = {
  /** Runs a function within a span. An error of it is recorded in the span, and thrown again. */
  readonly span: <T>(of: SpanFacts, run: (span: Span) => Promise<T>) => Promise<T>;
  /** The active span as a `traceparent`. Undefined: no span is active. */
  readonly traceParent: () => string | undefined;
  /** The ids that join a log line to its trace. Empty: no span is active. */
  readonly ids: () => Readonly<Record<string, string>>;
};

export type SpanFacts = {
  /** One of few names, such as `worker step`; never one with a job's name. */
  readonly name: string;
  readonly kind?: "server" | "client";
  readonly attributes?: Attributes;
  /** The parent: the stored `traceparent` of a job, or a caller's headers. Omitted: the active span. */
  readonly parent?: { readonly traceParent?: string | undefined; readonly headers?: Readonly<Record<string, unknown>> };
};

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

export function createTracing(): Tracing {
  const tracer = trace.getTracer("gangway");
  return {
    span: ({ name, kind, attributes = {}, parent }, run) =>
      tracer.startActiveSpan(
        name,
        { kind: KINDS[kind ?? "internal"], attributes },
        parentContext(parent),
        async (span) => {
          try {
            return await run(span);
          } catch (error) {
            span.recordException(error instanceof Error ? error : String(error));
            span.setStatus({ code: SpanStatusCode.ERROR });
            throw error;
          } finally {
            span.end();
          }
        },
      ),
    traceParent: () => {
      const active = trace.getActiveSpan()?.spanContext();
      return active === undefined ? undefined : formatTraceParent(active);
    },
    ids: () => {
      const active = trace.getActiveSpan()?.spanContext();
      return active === undefined ? {} : { trace_id: active.traceId, span_id: active.spanId };
    },
  };
}

function parentContext(parent: SpanFacts["parent"]): Context {
  const active = context.active();
  if (parent?.headers !== undefined) return propagation.extract(active, parent.headers, defaultTextMapGetter);
  const spanContext = parseTraceParent(parent?.traceParent ?? "");
  return spanContext === null ? active : trace.setSpanContext(active, spanContext);
}
