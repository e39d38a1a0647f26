/** Writes one line to standard output, in the format that its environment and its output ask for. */
import { startProcessTelemetry } from "../../src/compose/telemetry.ts";
import { readConfig } from "../../src/config/config.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { OWN_KINDS } from "../support/kinds.ts";

await using parts = new AsyncDisposableStack();
const config = readConfig(process.cwd());
const { telemetry } = await startProcessTelemetry({
  config,
  kinds: OWN_KINDS,
  file: null,
  clock: systemClock(),
  parts,
});
telemetry.processStarted({ roles: ["api"], address: "\u001b[2J" });
