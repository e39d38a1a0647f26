/** Connects the limits of callers with the file that gives them, and with the Redis that counts their calls. */
import { createCallRates, type RunRateScript } from "../access/call-rates.ts";
import { limitCalls } from "../access/limited-calls.ts";
import type { Config } from "../config/config.ts";
import { CALL_LIMIT_SETTINGS, type LimitCalls } from "../core/access/call-limits.ts";
import { type Base, runLoops } from "./base.ts";
import { followSettings } from "./follow-settings.ts";
import { auditSettings } from "./settings-audit.ts";

export async function connectCallLimits(
  base: Pick<Base, "clock" | "store" | "telemetry" | "parts" | "installation">,
  config: Pick<Config, "limitsFile" | "redis">,
): Promise<LimitCalls> {
  const { clock, telemetry, parts } = base;
  const { limitsFile: file } = config;
  const followed = followSettings(file, CALL_LIMIT_SETTINGS, {
    clock,
    onRead: () => telemetry.limitsFileRead({ file: file?.path ?? "" }),
    onError: (error) => telemetry.loopFailed({ loop: "limits file", error }),
  });
  runLoops(parts, followed.run);
  await auditSettings(base, "GANGWAY_LIMITS_FILE", file, followed);
  const onAway = (error: unknown) => telemetry.loopFailed({ loop: "rates of calls", error });
  const rates = createCallRates({ clock, runScript: await connectRedis(base, config), onAway });
  return limitCalls({ clock, settings: followed.now, rates, onLimited: (limit) => telemetry.callLimited({ limit }) });
}

async function connectRedis(
  { installation, telemetry, parts }: Pick<Base, "telemetry" | "parts" | "installation">,
  { redis }: Pick<Config, "redis">,
): Promise<RunRateScript | null> {
  if (redis === null) return null;
  const { openRateScripts } = await import("../adapters/counters/redis/rate-scripts.ts");
  const onError = (error: unknown) => telemetry.loopFailed({ loop: "redis connection", error });
  const scripts = await openRateScripts({ ...redis, installation, onError, onWarning: () => {} });
  parts.defer(() => scripts.close());
  return scripts.run;
}
