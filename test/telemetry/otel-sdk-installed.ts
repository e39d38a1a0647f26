/** True if OpenTelemetry's SDK for Node is installed. The service loads it only if OTEL_* variables need it. */
export function otelSdkIsInstalled(): boolean {
  try {
    import.meta.resolve("@opentelemetry/sdk-node");
    return true;
  } catch {
    return false;
  }
}
