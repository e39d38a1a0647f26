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
  /** GANGWAY_LOG_LEVEL. */
  readonly logLevel: LogLevel;
  /** What credentials of registered clusters are encrypted with: GANGWAY_CREDENTIALS_KEY, 32 bytes in base64. Null: none can be stored. */
  readonly credentialsKey: Buffer | null;
  /** Kubeconfigs may be files of this machine, name some, and run programs: GANGWAY_LOCAL_KUBECONFIGS=allow. */
  readonly allowLocalKubeconfigs: boolean;
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
    logLevel,
    credentialsKey: credentialsKey(env["GANGWAY_CREDENTIALS_KEY"]),
    allowLocalKubeconfigs: env["GANGWAY_LOCAL_KUBECONFIGS"] === "allow",
    plain: Boolean(env["NO_COLOR"]),
  };
}

const KEY_BYTES = 32;

/** The value itself is a secret and is not repeated in the error. */
function credentialsKey(text: string | undefined): Buffer | null {
  if (text === undefined || text === "") return null;
  const key = Buffer.from(text, "base64");
  if (key.length === KEY_BYTES) return key;
  throw new Error(
    `GANGWAY_CREDENTIALS_KEY must be ${KEY_BYTES} bytes in base64, as \`openssl rand -base64 ${KEY_BYTES}\` prints them; it has ${key.length}`,
  );
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
