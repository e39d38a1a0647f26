/** Whether OpenTelemetry's SDK for Node is there, which is loaded only where OTEL_* variables ask for it. */
export function otelSdkIsInstalled(): boolean {
  try {
    import.meta.resolve("@opentelemetry/sdk-node");
    return true;
  } catch {
    return false;
  }
}
