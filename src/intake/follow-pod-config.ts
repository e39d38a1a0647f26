/** Follows the file with the platform's settings for pods, so that an operator need not restart the service. */
import type { PodConfig } from "../core/pods/pod-config.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Telemetry } from "../telemetry/events.ts";

/** How often the file is read: a mounted config map changes behind a link, without a notification. */
const LOOK_MS = 5_000;

type FollowedPodConfig = {
  /** The settings for jobs that are created now. */
  readonly now: () => PodConfig;
  readonly run: (signal: AbortSignal) => Promise<void>;
};

type PodConfigPorts = {
  readonly clock: Clock;
  readonly readFile: (path: string) => Promise<string>;
  readonly telemetry: Pick<Telemetry, "podConfigRead" | "loopFailed">;
};

/** The settings that were read at the start, and the file with its text at that time; null without a file. */
type PodConfigSource = {
  readonly podConfig: PodConfig;
  readonly podConfigFile: {
    readonly path: string;
    readonly text: string;
    readonly parse: (text: string) => PodConfig;
  } | null;
};

/**
 * Parses the file again whenever its text has changed. A text that does not parse is reported once, and the settings
 * before it stay in force.
 */
export function followPodConfig(
  { clock, readFile, telemetry }: PodConfigPorts,
  { podConfig, podConfigFile: file }: PodConfigSource,
): FollowedPodConfig {
  let current = podConfig;
  let seen = file?.text ?? "";
  let reported = "";
  const look = async ({ path, parse }: NonNullable<typeof file>) => {
    try {
      const text = await readFile(path);
      if (text === seen) return;
      seen = text;
      current = parse(text);
      reported = "";
      telemetry.podConfigRead({ file: path });
    } catch (error) {
      const message = String(error);
      if (message !== reported) telemetry.loopFailed({ loop: "pod config", error });
      reported = message;
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
