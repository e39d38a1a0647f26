import { isSpanContextValid, type SpanContext } from "@opentelemetry/api";

/** W3C trace context, version 00: trace id, span id, flags. Written here because the API alone has no propagator. */
const PATTERN = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

export function formatTraceParent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}

/** The span that a `traceparent` names, as one of another process; null where the text names none. */
export function parseTraceParent(text: string): SpanContext | null {
  const [, traceId, spanId, flags] = PATTERN.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return isSpanContextValid(context) ? context : null;
}
