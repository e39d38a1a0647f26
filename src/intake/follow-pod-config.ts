/** Follows the file with the platform's settings for pods, so that an operator need not restart the service. */
import type { PodConfig } from "../core/pods/pod-config.ts";
import type { Clock } from "../runtime/clock.ts";
import { type FollowedFiles, followFiles } from "../runtime/follow-files.ts";
import type { Telemetry } from "../telemetry/events.ts";

type PodConfigPorts = {
  readonly clock: Clock;
  readonly readFile: (path: string) => Promise<string>;
  readonly telemetry: Pick<Telemetry, "podConfigRead" | "podConfigNoted" | "loopFailed">;
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

/** `now` returns the settings for jobs that are created now. A text that does not parse changes nothing. */
export function followPodConfig(
  { clock, readFile, telemetry }: PodConfigPorts,
  { podConfig, podConfigFile: file }: PodConfigSource,
): FollowedFiles<PodConfig> {
  const say = ({ notes }: PodConfig) => {
    for (const note of notes) telemetry.podConfigNoted({ file: file?.path ?? "", note });
  };
  const parse = (text: string): PodConfig => {
    if (file === null) return podConfig;
    const config = file.parse(text);
    say(config);
    return config;
  };
  say(podConfig);
  const ports = {
    clock,
    readFile,
    onRead: () => telemetry.podConfigRead({ file: file?.path ?? "" }),
    onError: (error: unknown) => telemetry.loopFailed({ loop: "pod config", error }),
  };
  return followFiles(ports, {
    paths: file === null ? [] : [file.path],
    texts: file === null ? [] : [file.text],
    value: podConfig,
    parse: ([text = ""]) => parse(text),
  });
}
