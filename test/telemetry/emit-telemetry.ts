/**
 * A test starts this program with OTEL_* variables. It emits one trace with a log line and a few metrics, and ends. The
 * first argument is the log's file.
 */

import { readConfig } from "../../src/config/config.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { startTelemetry } from "../../src/telemetry/start.ts";
import { OWN_KINDS } from "../support/kinds.ts";

const config = readConfig(process.cwd());
const { telemetry, instrumentation, close } = await startTelemetry({
  level: "info",
  file: process.argv[2] ?? null,
  clock: systemClock(),
  kinds: OWN_KINDS,
  metrics: false,
  otel: config.otel,
});
const writes = () => ({ limit: 10, inFlight: 1, waiting: 0 });
instrumentation.clusters(() => [{ name: "east", lastHeardMs: () => 0, writes }]);
const headers = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" };
await instrumentation.apiPorts.observeCall?.({ method: "gangway.v1.JobService/CreateJob", headers }, async () => {
  telemetry.callFailed({ reference: "r", error: new Error("told") });
  return { code: 0 };
});
telemetry.bucketsHeld(1024);
telemetry.podPlaced({ cluster: "east", onPlan: false });
await close();
