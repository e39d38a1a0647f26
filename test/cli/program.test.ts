import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { mkdtempSync, rmSync, watch, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { test } from "node:test";
import type { TakenSignal } from "../../src/cli/shell/deps.ts";
import { type ProcessStreams, processIo } from "../../src/cli/shell/process-io.ts";
import { type SignalledProcess, signalsOf } from "../../src/cli/shell/signals.ts";
import { startProgram } from "../../src/cli/tokens/child-program.ts";
import { startFixture } from "../api/fixture.ts";
import { run } from "./harness.ts";

const PATH = { PATH: process.env["PATH"] };

const starts = (why: string) => assert.fail(why);

test("a program's exit status is the one of a shell, and a failed start has a reason", async () => {
  assert.equal(await startProgram(["sh", "-c", "exit 7"], PATH, starts).ended, 7);
  const fenced = startProgram(["sh", "-c", 'test "$GANGWAY_FENCE" = 12'], { ...PATH, GANGWAY_FENCE: "12" }, starts);
  assert.equal(await fenced.ended, 0);
  assert.equal(await startProgram(["sh", "-c", "kill -TERM $$"], PATH, starts).ended, 143);
  const said: string[] = [];
  const say = (why: string) => void said.push(why);
  assert.equal(await startProgram(["there-is-no-such-program"], PATH, say).ended, 127);
  assert.equal(await startProgram([import.meta.dirname], PATH, say).ended, 126);
  assert.match(said.join("\n"), /^there-is-no-such-program: not found\n.*cli cannot be started: .*EACCES$/);
});

test("a program gets passed signals, and none after its end", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gangway-program-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const watcher = watch(folder);
  const ready = once(watcher, "change");
  const script = 'trap "exit 9" USR2; : >"$READY"; while :; do sleep 0.05; done';
  const program = startProgram(["sh", "-c", script], { ...PATH, READY: join(folder, "ready") }, starts);
  await ready;
  watcher.close();
  program.signal("SIGUSR2");
  assert.equal(await program.ended, 9);
  program.signal("SIGTERM");
});

class FakeProcess extends EventEmitter {
  readonly exits: number[] = [];
  readonly stdin = { isTTY: true };

  exit(code?: number | string | null): never {
    this.exits.push(Number(code));
    return undefined as never;
  }
}

test("until a command listens, no signal waits for code that is still loading", async (t) => {
  const fake = new FakeProcess();
  const { interrupted, listen } = signalsOf(fake as unknown as SignalledProcess);
  assert.deepEqual(fake.eventNames(), []);
  listen();
  assert.deepEqual(fake.eventNames(), ["SIGINT", "SIGTERM"]);
  assert.equal(interrupted.aborted, false);
  const { api } = await startFixture(t);
  for (const [args, listens] of [
    [["list", "--address", api.address], 1],
    [["up"], 0],
    [["serve", "--roles", "api"], 0],
  ] as const) {
    let listened = 0;
    await run(args, { listen: () => void listened++ });
    assert.equal(listened, listens, args.join(" "));
  }
});

test("the first signal interrupts; signals that a listener takes interrupt nothing", () => {
  const fake = new FakeProcess();
  const { interrupted, listen, takeSignals } = signalsOf(fake as unknown as SignalledProcess);
  listen();
  const taken: TakenSignal[] = [];
  const giveBack = takeSignals((signal) => taken.push(signal));
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) fake.emit(name, name);
  assert.deepEqual(taken, [
    { name: "SIGINT", fromTerminal: true },
    { name: "SIGTERM", fromTerminal: false },
    { name: "SIGHUP", fromTerminal: false },
  ]);
  assert.equal(interrupted.aborted, false);
  giveBack();
  assert.equal(fake.listenerCount("SIGHUP"), 0);
  fake.emit("SIGINT", "SIGINT");
  assert.deepEqual([interrupted.aborted, taken.length, fake.exits], [true, 3, []]);
});

test("input must be UTF-8", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gangway-text-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const written = { good: "größer\n", bad: Buffer.from([0x61, 0xff, 0xfe]) };
  for (const [name, bytes] of Object.entries(written)) writeFileSync(join(folder, name), bytes);
  const output = () => new PassThrough() as unknown as NodeJS.WriteStream;
  const stdin = Readable.from([Buffer.from([0xc3]), Buffer.from([0xb6])]) as unknown as ProcessStreams["stdin"];
  const io = processIo(
    {
      stdin,
      stdout: output() as ProcessStreams["stdout"],
      stderr: output() as ProcessStreams["stderr"],
    },
    () => {},
  );
  const limit = { bytesMax: 100 };
  assert.equal(await io.readFile(join(folder, "good"), limit), "größer\n");
  assert.equal(await io.readStdin(limit), "ö");
  await assert.rejects(io.readFile(join(folder, "bad"), limit), /not UTF-8/);
});
