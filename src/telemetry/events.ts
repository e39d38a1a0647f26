import pino, { type Logger } from "pino";

/** Everything that the service tells its operator, one function per event; each writes one structured line. */
export type Telemetry = {
  readonly serviceStarted: (facts: { readonly address: string; readonly directory: string }) => void;
  /** A process of a service that may have several; `address` where it serves the API. */
  readonly processStarted: (facts: { readonly roles: readonly string[]; readonly address: string | null }) => void;
  readonly serviceStopped: () => void;
  /** A stage's loop failed and goes on after a pause. */
  readonly loopFailed: (facts: { readonly loop: string; readonly error: unknown }) => void;
  /** A call was answered INTERNAL; `reference` is what its caller was told. */
  readonly callFailed: (facts: { readonly reference: string; readonly error: unknown }) => void;
  readonly clusterFailed: (facts: { readonly cluster: string; readonly what: string; readonly error: unknown }) => void;
};

/** Writes to a file, which is made if it is not there, or to standard output for null. Lines are written before the call returns, so that a kill loses none. */
export function createTelemetry(options: { readonly level: string; readonly file: string | null }): Telemetry {
  const log = pino(
    { level: options.level, base: null, serializers: { error: pino.stdSerializers.err } },
    pino.destination({ dest: options.file ?? 1, mkdir: true, sync: true }),
  );
  return telemetryOn(log);
}

function telemetryOn(log: Logger): Telemetry {
  return {
    serviceStarted: (facts) => log.info(facts, "service started"),
    processStarted: (facts) => log.info(facts, "process started"),
    serviceStopped: () => log.info("service stopped"),
    loopFailed: (facts) => log.error(facts, "loop failed, goes on"),
    callFailed: (facts) => log.error(facts, "call failed"),
    clusterFailed: (facts) => log.warn(facts, "cluster call failed"),
  };
}
