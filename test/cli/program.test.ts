import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { mkdtempSync, rmSync, watch } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { TakenSignal } from "../../src/cli/deps.ts";
import { startProgram } from "../../src/cli/program.ts";
import { listenToSignals, type SignalledProcess } from "../../src/cli/signals.ts";

const PATH = { PATH: process.env["PATH"] };

test("a program's exit status is that of a shell", async () => {
  assert.equal(await startProgram(["sh", "-c", "exit 7"], PATH).ended, 7);
  assert.equal(
    await startProgram(["sh", "-c", 'test "$GANGWAY_FENCE" = 12'], { ...PATH, GANGWAY_FENCE: "12" }).ended,
    0,
  );
  assert.equal(await startProgram(["sh", "-c", "kill -TERM $$"], PATH).ended, 143);
  assert.equal(await startProgram(["there-is-no-such-program"], PATH).ended, 127);
  assert.equal(await startProgram([import.meta.dirname], PATH).ended, 126);
});

test("a program gets the signals that are passed on, and none once it has ended", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gangway-program-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const watcher = watch(folder);
  const ready = once(watcher, "change");
  const script = 'trap "exit 9" USR2; : >"$READY"; while :; do sleep 0.05; done';
  const program = startProgram(["sh", "-c", script], { ...PATH, READY: join(folder, "ready") });
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

test("the first signal interrupts; while signals are taken, they go to whoever takes them, and nothing is interrupted", () => {
  const fake = new FakeProcess();
  const { interrupted, takeSignals } = listenToSignals(fake as unknown as SignalledProcess);
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
