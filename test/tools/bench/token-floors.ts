/** What a call of the floor does. */
export type Floor = "echo" | "script" | "script and transaction" | "scripts" | "scripts and rows";

/** The gRPC method of each floor. */
export const FLOORS: Readonly<Record<Floor, string>> = {
  echo: "/bench.Floor/Echo",
  script: "/bench.Floor/Script",
  "script and transaction": "/bench.Floor/ScriptAndTransaction",
  scripts: "/bench.Floor/Scripts",
  "scripts and rows": "/bench.Floor/ScriptsAndRows",
};

/** What each floor does, as the bench prints it. */
export const FLOORS_DO: Readonly<Record<Floor, string>> = {
  echo: "answers with the bytes of the request",
  script: "runs one bare script in Redis, then answers",
  "script and transaction": "runs one bare script in Redis, then inserts one row and commits it, then answers",
  scripts: "runs one bare script for each token in one round trip, then answers",
  "scripts and rows": "does that, then inserts one row for each token in one statement and commits it, then answers",
};

/** The tokens of one call that takes or gives back many. */
export const LINES = 100;

/** Raises one number. */
export const BARE_SCRIPT = "return redis.call('INCR', KEYS[1])";
