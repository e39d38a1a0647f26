/** Runs programs of the client in Python. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pythonOfClient } from "../docs/needs.ts";
import { root } from "../docs/pages.ts";

/** Null: there is no Python with what the client needs. */
export const PYTHON = pythonOfClient();

export const CLIENT_FOLDER = join(root, "clients/python");

/** The environment in which programs find the client as if it were installed. */
export function pythonEnvironment(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const path = [CLIENT_FOLDER, join(CLIENT_FOLDER, "tests")].join(":");
  return { ...process.env, GANGWAY_CONFIG: "/nonexistent", PYTHONPATH: path, PYTHONDONTWRITEBYTECODE: "1", ...more };
}

type RunOptions = {
  readonly input?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
};

/** What a program writes to stdout. Throws with its errors if it does not end with status 0. */
export function runPython(args: readonly string[], { input, environment, cwd = root }: RunOptions = {}): string {
  const ran = spawnSync(PYTHON ?? "", args, {
    cwd,
    env: pythonEnvironment(environment),
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    ...(input === undefined ? {} : { input }),
  });
  if (ran.status !== 0) throw new Error(`${args.join(" ")} ended with ${ran.status}: ${ran.stdout}${ran.stderr}`);
  return ran.stdout;
}

/** Does what a program asks for. */
type Actions = Readonly<Record<string, () => Promise<void> | void>>;

/**
 * Runs tests of the client in a process of its own, and does what they ask for, such as `cut`. Throws with their output
 * if one fails.
 */
export async function runLive(
  module: string,
  environment: Readonly<Record<string, string>>,
  actions: Actions = {},
): Promise<void> {
  const child = spawn(PYTHON ?? "", ["-m", "unittest", "-v", module], {
    cwd: root,
    env: pythonEnvironment(environment),
    stdio: ["pipe", "pipe", "pipe"],
  });
  const ended = once(child, "close");
  let output = "";
  child.stderr.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const action = /^ask (\w+)$/.exec(line)?.[1] ?? "";
    const act = actions[action];
    if (act === undefined) {
      output += `${line}\n`;
      continue;
    }
    await act();
    child.stdin.write("done\n");
  }
  const [status] = await ended;
  if (status !== 0) throw new Error(`${module} ended with ${status}: ${output}`);
}
