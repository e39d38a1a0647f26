import { join } from "node:path";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "silent";

/** What the environment says; command line options come on top. */
export type Config = {
  /** Where the command line finds the service: GANGWAY_ADDRESS. */
  readonly address: string;
  /** Where the service listens: GANGWAY_LISTEN. */
  readonly listen: string;
  /** Where the embedded service keeps everything: GANGWAY_DATA. */
  readonly dataDirectory: string;
  /** After so long without a word from a process, others take over what it did: GANGWAY_LEASE_SECONDS. */
  readonly leaseMs: number;
  /** GANGWAY_LOG_LEVEL. */
  readonly logLevel: LogLevel;
  /** Colours are not wanted: NO_COLOR. */
  readonly plain: boolean;
};

export const DEFAULT_ADDRESS = "127.0.0.1:7443";
const LEVELS: readonly LogLevel[] = ["trace", "debug", "info", "warn", "error", "silent"];

/**
 * Reads the environment once; `workingDirectory` is where relative defaults begin.
 * @throws Error naming the variable, what it is and what is allowed.
 */
export function readConfig(workingDirectory: string, env: NodeJS.ProcessEnv = process.env): Config {
  const level = env["GANGWAY_LOG_LEVEL"] || "info";
  const logLevel = LEVELS.find((known) => known === level);
  if (logLevel === undefined) throw new Error(`GANGWAY_LOG_LEVEL is "${level}"; allowed are ${LEVELS.join(", ")}`);
  return {
    address: env["GANGWAY_ADDRESS"] || DEFAULT_ADDRESS,
    listen: env["GANGWAY_LISTEN"] || DEFAULT_ADDRESS,
    dataDirectory: env["GANGWAY_DATA"] || join(workingDirectory, ".gangway"),
    leaseMs: seconds(env, "GANGWAY_LEASE_SECONDS", { standard: 10, min: 1, max: 300 }) * 1000,
    logLevel,
    plain: Boolean(env["NO_COLOR"]),
  };
}

function seconds(
  env: NodeJS.ProcessEnv,
  name: string,
  { standard, min, max }: { readonly standard: number; readonly min: number; readonly max: number },
): number {
  const text = env[name];
  if (text === undefined || text === "") return standard;
  const value = Number(text);
  if (Number.isFinite(value) && value >= min && value <= max) return value;
  throw new Error(`${name} is "${text}"; allowed are ${min} to ${max} seconds`);
}

const GPU = "nvidia.com/gpu";

/** The queues that the embedded service starts with; what an admin changes of them stays changed. */
export const EMBEDDED_QUEUES = [
  {
    name: "default",
    strategy: "BEST_EFFORT_FIFO",
    quotas: [
      { flavor: "gpu/h100", resource: GPU, nominal: 8 },
      { flavor: "gpu/a100", resource: GPU, nominal: 8 },
    ],
  },
  {
    name: "research",
    strategy: "BEST_EFFORT_FIFO",
    quotas: [
      { flavor: "gpu/h100", resource: GPU, nominal: 16 },
      { flavor: "gpu/a100", resource: GPU, nominal: 12 },
    ],
  },
] as const;
