/** Measures a call of the command line against the start of Node itself. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { startFixture } from "../../api/fixture.ts";

const root = join(import.meta.dirname, "../../..");
const BIN = join(root, "bin/gangway.js");

/** Loaded into each process: tells the CPU time that the process has used, on its descriptor 3. */
const TELL = `
process.on("exit", () => {
  const { user, system } = process.cpuUsage();
  require("node:fs").writeSync(3, String((user + system) / 1000));
});
`;

/** One call over HTTP/2 with an empty message, and nothing else. */
const ONE_CALL = `
const session = require("node:http2").connect("http://" + process.argv[1]);
const path = "/grpc.health.v1.Health/Check";
const call = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" });
call.end(Buffer.alloc(5));
call.resume().on("end", () => session.destroy());
`;

/**
 * Runs each command line this often, in turns, and prints its CPU time as a ratio to that of `node -e 0`. Two floors
 * stand beside it: Node with its HTTP/2 and TLS modules, and these with one call. `only` names some of the lines.
 * Omitted or null: all of them.
 */
export async function benchCli(
  { runs, only = null }: { readonly runs: number; readonly only?: readonly string[] | null },
  print: (line: string) => void,
): Promise<void> {
  const ends: (() => unknown)[] = [];
  const folder = mkdtempSync(join(tmpdir(), "gangway-bench-"));
  try {
    const { api } = await startFixture({
      after: (end: () => unknown) => void ends.push(end),
    } as unknown as TestContext);
    const tell = join(folder, "tell.cjs");
    writeFileSync(tell, TELL);
    const env = {
      ...process.env,
      NODE_OPTIONS: `--require=${tell}`,
      XDG_CACHE_HOME: folder,
      GANGWAY_CONFIG: "",
      GANGWAY_ADDRESS: api.address,
    };
    await cpuMsOf([BIN, "submit", join(root, "examples/kinds/plain.yaml")], env);
    const lines: Readonly<Record<string, readonly string[]>> = {
      "node -e 0": ["-e", "0"],
      "node with http2": ["-e", 'require("node:http2")'],
      "node with one call": ["-e", ONE_CALL, api.address],
      "gangway --version": [BIN, "--version"],
      "gangway submit --help": [BIN, "submit", "--help"],
      "gangway version": [BIN, "version"],
      "gangway list": [BIN, "list"],
      "gangway get": [BIN, "get", "kind-plain"],
    };
    const chosen = Object.entries(lines).filter(([name]) => only?.includes(name) ?? true);
    const times = new Map<string, number[]>(chosen.map(([name]) => [name, []]));
    // The first run of each keeps its compiled code for the next ones.
    for (let run = 0; run <= runs; run++) {
      for (const [name, args] of chosen) {
        const ms = await cpuMsOf(args, env);
        if (run > 0) times.get(name)?.push(ms);
      }
    }
    const floor = times.get("node -e 0") ?? [];
    const shown = (of: (all: readonly number[]) => number, all: readonly number[]) =>
      `${of(all).toFixed(0).padStart(5)} ms  ratio ${(of(all) / of(floor)).toFixed(1)}`;
    for (const [name, all] of times) {
      print(`${name.padEnd(22)} median ${shown(median, all)}   least ${shown((of) => Math.min(...of), all)}`);
    }
  } finally {
    for (const end of ends.reverse()) await end();
    rmSync(folder, { recursive: true });
  }
}

async function cpuMsOf(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "ignore", "pipe", "pipe"] });
  const [told, errors, [code]] = await Promise.all([
    text(child.stdio[3] as NodeJS.ReadableStream),
    text(child.stdio[2] as NodeJS.ReadableStream),
    once(child, "exit"),
  ]);
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${errors}`);
  return Number(told);
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
