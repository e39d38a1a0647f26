/** Runs the commands of one page in one shell, one after the other, as a reader would. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { VARIABLES } from "../../src/config/variables.ts";
import { waitUntil } from "../support/bounded.ts";
import type { Command } from "./commands.ts";
import { root } from "./pages.ts";

/** A command, and how the shell is to treat it. */
export type Step = Command & {
  /** Set: runs beside the others; the next command begins once its output has this text. */
  readonly background?: string;
  /** Set: what runs in the background is ended before. */
  readonly afterStop?: true;
};

export type Ran = {
  readonly command: Command;
  /** Null if the shell ended before. */
  readonly status: number | null;
  readonly output: string;
};

/** Halves the time that a command takes to start. */
export const compileCache = join(tmpdir(), `gangway-docs-compiled-${process.getuid?.() ?? 0}`);
const PAGE_MS_MAX = 300_000;
/** Programs get this time to end after SIGTERM. */
const GROUP_MS_MAX = 20_000;
/** Tenths of a second until a command in the background must have said what it is waited for. */
const BACKGROUND_TENTHS_MAX = 900;
/** A background command has no status until it ends; it counts as begun well. */
const BEGUN = 0;

/**
 * A folder that looks like a clone to the commands of a page, so that the files that they write stay out of the real
 * one. `grpcurl` in its `shims` folder is the test's own.
 */
export function openClone(): { readonly directory: string; readonly remove: () => void } {
  const directory = mkdtempSync(join(tmpdir(), "gangway-docs-"));
  for (const name of readdirSync(root)) {
    if (name !== ".git" && name !== ".gangway") symlinkSync(join(root, name), join(directory, name));
  }
  const shims = mkdtempSync(join(directory, "shims-"));
  const grpcurl = join(import.meta.dirname, "grpcurl.ts");
  writeFileSync(join(shims, "grpcurl"), `#!/bin/sh\nexec "${process.execPath}" "${grpcurl}" "$@"\n`, { mode: 0o755 });
  return { directory, remove: () => rmSync(directory, { recursive: true, force: true }) };
}

/** The environment of this process without variables that Gangway reads: a page sets those that it needs. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !(name in VARIABLES));
  return Object.fromEntries(own);
}

/** Runs the steps; `replace` maps what the page says to what the test has, such as addresses. */
export async function runSteps(
  steps: readonly Step[],
  of: {
    readonly directory: string;
    readonly environment: Readonly<Record<string, string>>;
    readonly replace: Readonly<Record<string, string>>;
  },
): Promise<readonly Ran[]> {
  const { directory, environment } = of;
  const statuses = join(directory, ".statuses");
  const script = join(directory, ".script");
  writeFileSync(statuses, "");
  writeFileSync(script, replaced(scriptOf(steps, statuses), of.replace));
  const shims = readdirSync(directory).find((name) => name.startsWith("shims-")) ?? "";
  const path = [join(directory, shims), dirname(process.execPath), process.env["PATH"]].join(delimiter);
  const shell = spawn("bash", [script], {
    cwd: directory,
    detached: true,
    env: { ...plainEnvironment(), ...environment, PATH: path, NO_COLOR: "1", NODE_COMPILE_CACHE: compileCache },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [shell.stdout, shell.stderr]) stream.on("data", (chunk: Buffer) => (output += chunk));
  const late = setTimeout(() => killGroup(shell.pid), PAGE_MS_MAX);
  await once(shell, "close");
  clearTimeout(late);
  await endGroup(shell.pid);
  return outcomes(steps, readFileSync(statuses, "utf8"), output);
}

const MARK = "@@gangway-docs";

/**
 * Each command is followed by a line in the file of statuses and by a mark in the output. What runs in the background
 * is ended with the shell.
 */
function scriptOf(steps: readonly Step[], statuses: string): string {
  const lines = ["exec 2>&1", "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT"];
  for (const [index, { text, background, afterStop }] of steps.entries()) {
    if (afterStop) lines.push("kill $(jobs -p); wait");
    if (background === undefined) lines.push(text);
    else {
      const log = `.background-${index}`;
      lines.push(`${text} > ${log} 2>&1 &`);
      lines.push(
        `for _ in $(seq ${BACKGROUND_TENTHS_MAX}); do grep -q '${background}' ${log} && break; sleep 0.1; done`,
        `cat ${log}`,
        `grep -q '${background}' ${log}`,
      );
    }
    lines.push(`status=$?; echo "${index} $status" >> '${statuses}'; echo '${MARK}'`);
  }
  return `${lines.join("\n")}\n`;
}

function replaced(text: string, replace: Readonly<Record<string, string>>): string {
  return Object.entries(replace).reduce((all, [from, to]) => all.replaceAll(from, to), text);
}

function outcomes(steps: readonly Step[], statuses: string, output: string): readonly Ran[] {
  const lines = statuses.split("\n").filter((line) => line !== "");
  const known = new Map(lines.map((line) => line.split(" ").map(Number) as [number, number]));
  const outputs = output.split(`${MARK}\n`);
  return steps.map((command, index) => ({
    command,
    status: command.background !== undefined && known.get(index) === 0 ? BEGUN : (known.get(index) ?? null),
    output: outputs[index] ?? "",
  }));
}

/**
 * Ends what the shell left behind: `npm run` in the background ends by a signal, and the program that it started does
 * not hear of it.
 */
async function endGroup(pid: number | undefined): Promise<void> {
  signalGroup(pid, "SIGTERM");
  await waitUntil("the programs of a page end", () => !signalGroup(pid, 0), { maxMs: GROUP_MS_MAX }).catch(() =>
    killGroup(pid),
  );
}

function killGroup(pid: number | undefined): void {
  signalGroup(pid, "SIGKILL");
}

/** Whether the group was there. */
function signalGroup(pid: number | undefined, signal: NodeJS.Signals | 0): boolean {
  try {
    return pid !== undefined && process.kill(-pid, signal);
  } catch {
    return false;
  }
}
