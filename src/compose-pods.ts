/** What a platform gives to pods, while the service runs. Belongs to the composition root. */
import { readFile } from "node:fs/promises";
import type { Config } from "./config.ts";
import type { PodConfig } from "./core/pods/pod-config.ts";
import type { Clock } from "./runtime/clock.ts";
import type { Telemetry } from "./telemetry/events.ts";

/** So often the file is looked at: a mounted config map changes behind a link, of which nobody is told. */
export const LOOK_MS = 5_000;

export type FollowedPodConfig = {
  /** As it is in force. */
  readonly now: () => PodConfig;
  readonly run: (signal: AbortSignal) => Promise<void>;
};

/** Reads the file again whenever its text changes. What is wrong is told, and what was in force before stays in force. */
export function followPodConfig(
  { clock, telemetry }: { readonly clock: Clock; readonly telemetry: Pick<Telemetry, "podConfigRead" | "loopFailed"> },
  { podConfig, podConfigFile: file }: Pick<Config, "podConfig" | "podConfigFile">,
): FollowedPodConfig {
  let current = podConfig;
  let seen = file?.text ?? "";
  let complaint = "";
  const look = async ({ path, parse }: NonNullable<typeof file>) => {
    try {
      const text = await readFile(path, "utf8");
      if (text === seen) return;
      seen = text;
      current = parse(text);
      complaint = "";
      telemetry.podConfigRead({ file: path });
    } catch (error) {
      const said = String(error);
      if (said !== complaint) telemetry.loopFailed({ loop: "pod config", error });
      complaint = said;
    }
  };
  const run = async (signal: AbortSignal) => {
    while (file !== null && !signal.aborted) {
      await clock.sleep(LOOK_MS, signal);
      if (!signal.aborted) await look(file);
    }
  };
  return { now: () => current, run };
}
