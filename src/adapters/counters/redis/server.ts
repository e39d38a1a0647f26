/** The first version with all commands of the scripts. */
const VERSION_MIN = [6, 2] as const;

/** The properties that a server reports. Null: not reported. */
export type Server = {
  /** Names one run of the server process. */
  readonly runId: string | null;
  readonly version: string | null;
  readonly maxMemoryBytes: number | null;
  readonly maxMemoryPolicy: string | null;
  /** True: the server is a node of a Redis Cluster. */
  readonly clustered: boolean;
  /** True: the server follows another one and accepts no writes. */
  readonly isReplica: boolean;
};

/** Reads the reply of INFO. */
export function parseInfo(info: string): Server {
  const facts = new Map(
    info
      .split(/\r?\n/)
      .filter((line) => line.includes(":"))
      .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]),
  );
  const maxMemory = facts.get("maxmemory");
  return {
    runId: facts.get("run_id") ?? null,
    version: facts.get("redis_version") ?? null,
    maxMemoryBytes: maxMemory === undefined ? null : Number(maxMemory),
    maxMemoryPolicy: facts.get("maxmemory_policy") ?? null,
    clustered: facts.get("cluster_enabled") === "1",
    isReplica: facts.get("role") === "slave",
  };
}

/** Returns why the counters cannot use this server, and what to change. Null: they can use it. */
export function refusalOf(server: Server, expected: { readonly clustered: boolean }): string | null {
  const { version, maxMemoryBytes, maxMemoryPolicy } = server;
  if (version !== null && isOlder(version)) {
    return `it is version ${version}; the counters need ${VERSION_MIN.join(".")} or later`;
  }
  if (server.runId === null)
    return "INFO does not report a run_id, so a restart would go unnoticed; use a server that reports it";
  if (server.clustered && !expected.clustered) {
    return "it is a node of a Redis Cluster; name the cluster by redis+cluster://HOST:PORT,HOST:PORT";
  }
  if (!server.clustered && expected.clustered)
    return "it is not a node of a Redis Cluster; name it by redis://HOST:PORT";
  const mayEvict = maxMemoryPolicy !== null && maxMemoryPolicy !== "noeviction" && maxMemoryBytes !== 0;
  if (mayEvict) {
    const limit = maxMemoryBytes === null ? "unknown" : `${maxMemoryBytes} bytes`;
    return (
      `it evicts keys when its memory is full (maxmemory-policy ${maxMemoryPolicy}, maxmemory ${limit}); ` +
      "set maxmemory-policy noeviction, or maxmemory 0"
    );
  }
  return null;
}

/** Returns one sentence for each property that could not be checked. */
export function uncheckedOf(server: Server): readonly string[] {
  const unchecked: string[] = [];
  if (server.version === null) unchecked.push(`its version is unknown; it must be ${VERSION_MIN.join(".")} or later`);
  if (server.maxMemoryPolicy === null) {
    unchecked.push("its maxmemory-policy is unknown; set maxmemory-policy noeviction, or maxmemory 0");
  }
  return unchecked;
}

function isOlder(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major < VERSION_MIN[0] || (major === VERSION_MIN[0] && minor < VERSION_MIN[1]);
}
