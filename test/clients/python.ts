/** Runs programs of the client in Python. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
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
