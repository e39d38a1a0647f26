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

/** Makes spans by hand with whatever provider is registered with OpenTelemetry. Where nothing is traced there is none of these at all. */
export type Tracing = {
  /** Runs something within a span, which ends with it; what it throws is recorded and thrown on. */
  readonly span: <T>(of: SpanFacts, run: (span: Span) => Promise<T>) => Promise<T>;
  /** The active span as a `traceparent`; undefined outside of any. */
  readonly traceParent: () => string | undefined;
  /** What a log line is joined to its trace by; empty outside of any. */
  readonly ids: () => Readonly<Record<string, string>>;
};

export type SpanFacts = {
  /** Of few different values: `worker step`, not one with a job's name. */
  readonly name: string;
  readonly kind?: "server" | "client";
  readonly attributes?: Attributes;
  /** Whose child it is: the job's stored `traceparent`, or what a caller's headers say; absent: the active span's. */
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
