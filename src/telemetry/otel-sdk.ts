/** The used part of OpenTelemetry's SDK for Node, which reads all OTEL_* variables itself. */
type Sdk = { readonly start: () => void; readonly shutdown: () => Promise<void> };
type SdkModule = {
  readonly NodeSDK: new (options: { readonly instrumentations: readonly []; readonly serviceName?: string }) => Sdk;
};

const SDK = "@opentelemetry/sdk-node";

/**
 * Starts the SDK, whose providers, exporters, sampling and resource OTEL_* variables set. It instruments nothing: spans
 * and metrics are made by hand. Null `serviceName`: the environment names the service.
 * @throws Error if the package is not installed.
 */
export async function startOtelSdk({
  serviceName,
}: {
  readonly serviceName: string | null;
}): Promise<() => Promise<void>> {
  const { NodeSDK } = await loadSdk();
  const sdk = new NodeSDK({ instrumentations: [], ...(serviceName === null ? null : { serviceName }) });
  sdk.start();
  // An exporter that cannot reach its collector must not keep the service from stopping.
  return () => sdk.shutdown().catch(() => undefined);
}

async function loadSdk(): Promise<SdkModule> {
  try {
    return (await import(SDK)) as SdkModule;
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND";
    if (!missing) throw error;
    throw new Error(`OTEL_* variables ask for telemetry, which needs the package ${SDK}: install it, or unset them`, {
      cause: error,
    });
  }
}
