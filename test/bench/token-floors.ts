/** What a call of the floor does. */
export type Floor = "echo" | "script" | "script and transaction";

/** The gRPC method of each floor. */
export const FLOORS: Readonly<Record<Floor, string>> = {
  echo: "/bench.Floor/Echo",
  script: "/bench.Floor/Script",
  "script and transaction": "/bench.Floor/ScriptAndTransaction",
};

/** Raises one number. */
export const BARE_SCRIPT = "return redis.call('INCR', KEYS[1])";
