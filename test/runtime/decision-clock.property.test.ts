/**
 * Processes on machines of their own decide by one time, while the database's clock steps, machines sleep, and
 * processes end and start.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { DecisionClock } from "../../src/runtime/decision-clock.ts";
import type { SharedTime } from "../../src/runtime/decision-time.ts";
import { SILENT, VirtualClocks, VirtualMachine } from "../support/virtual-clocks.ts";

const LEASE_MS = 10_000;
const HOUR_MS = 3_600_000;
/** What measures may be wrong by: half a round trip, whole milliseconds, and what is paid between two renewals. */
const ERROR_MS = 400;

type Process = { readonly machine: VirtualMachine; readonly clock: DecisionClock; sleepsUntilMs: number };

/** Processes that share a database. The first that is awake holds the lease of the clock. */
class Fleet {
  readonly clocks = new VirtualClocks();
  row: SharedTime = { databaseMs: 0, correctionMs: 0, notedMs: 0 };
  processes: Process[] = [];
  /** The process with the lease of the clock. Null: the first that is awake. */
  holder: Process | null = null;

  start(): Process {
    const machine = new VirtualMachine(this.clocks, 1e6 * this.processes.length);
    const process = { machine, clock: machine.start(this.row), sleepsUntilMs: 0 };
    this.processes.push(process);
    return process;
  }

  awake(): readonly Process[] {
    return this.processes.filter(({ sleepsUntilMs }) => sleepsUntilMs <= this.clocks.trueMs);
  }

  renew(process: Process, roundTripMs: number): void {
    const { clock, machine } = process;
    const sentMs = machine.monotonicMs();
    this.clocks.trueMs += roundTripMs / 2;
    const read = this.clocks.read(this.row);
    this.clocks.trueMs += roundTripMs / 2;
    const holds = process === (this.holder ?? this.awake()[0]);
    const note = clock.renewed({
      read,
      sentMs,
      answeredMs: machine.monotonicMs(),
      holds,
      leaseMs: LEASE_MS,
    });
    if (note !== null) this.row = { ...read, ...note };
  }

  /** Lets time pass. Each process that is awake renews once a second. `look` sees each moment. */
  pass(ms: number, roundTripMs: number, look: () => void): void {
    const endMs = this.clocks.trueMs + ms;
    while (this.clocks.trueMs < endMs) {
      this.clocks.trueMs += Math.min(1_000, endMs - this.clocks.trueMs);
      look();
      for (const process of this.awake()) {
        this.renew(process, roundTripMs);
        look();
      }
    }
  }

  /** A machine sleeps from now on: all that passes until then is missing from its monotonic clock. */
  sleep(process: Process, ms: number): void {
    process.sleepsUntilMs = this.clocks.trueMs + ms;
    process.machine.slept(ms);
  }
}

const stepMs = fc.oneof(fc.integer({ min: -5 * HOUR_MS, max: 5 * HOUR_MS }), fc.integer({ min: -3_000, max: 3_000 }));
const event = fc.oneof(
  fc.record({ kind: fc.constant("pass" as const), ms: fc.integer({ min: 1, max: 120_000 }) }),
  fc.record({ kind: fc.constant("databaseSteps" as const), ms: stepMs }),
  fc.record({ kind: fc.constant("wallSteps" as const), at: fc.nat(3), ms: stepMs }),
  fc.record({ kind: fc.constant("ends" as const), at: fc.nat(3) }),
  fc.record({ kind: fc.constant("starts" as const) }),
  fc.record({ kind: fc.constant("allStart" as const) }),
);

test("decision time never goes back or jumps, and all processes agree, whatever clocks do", () => {
  const events = fc.array(event, { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(events, fc.integer({ min: 0, max: 60 }), (happens, roundTripMs) => {
      const fleet = new Fleet();
      const { clocks } = fleet;
      for (let count = 0; count < 3; count += 1) fleet.start();
      let seen = new Map<Process, { readonly atMs: number; readonly nowMs: number }>();
      const look = () => {
        const all = fleet.awake().map((process) => ({ process, nowMs: process.clock.nowMs() }));
        for (const { process, nowMs } of all) {
          const before = seen.get(process);
          if (before === undefined) continue;
          const passedMs = clocks.trueMs - before.atMs;
          const movedMs = nowMs - before.nowMs;
          // Each time is cut to whole milliseconds.
          assert.ok(movedMs >= 0.9 * passedMs - 1, `${movedMs} ms in ${passedMs} ms`);
          assert.ok(movedMs <= 1.1 * passedMs + 1, `${movedMs} ms in ${passedMs} ms`);
        }
        const times = all.map(({ nowMs }) => nowMs);
        assert.ok(Math.max(...times) - Math.min(...times) <= ERROR_MS, `they do not agree: ${times.join(", ")}`);
        seen = new Map(all.map(({ process, nowMs }) => [process, { atMs: clocks.trueMs, nowMs }]));
      };
      fleet.pass(3_000, roundTripMs, look);
      for (const happened of happens) {
        const one = "at" in happened ? fleet.processes[happened.at % fleet.processes.length] : undefined;
        switch (happened.kind) {
          case "pass":
            fleet.pass(happened.ms, roundTripMs, look);
            break;
          case "databaseSteps":
            clocks.databaseAheadMs += happened.ms;
            break;
          case "wallSteps":
            if (one !== undefined) one.machine.wallAheadMs += happened.ms;
            break;
          case "ends":
            if (fleet.processes.length > 1) fleet.processes = fleet.processes.filter((other) => other !== one);
            break;
          case "starts":
            // Its correction is current: the others have renewed since the last step.
            fleet.pass(3_000, roundTripMs, look);
            fleet.start();
            break;
          case "allStart": {
            fleet.pass(3_000, roundTripMs, look);
            const lastMs = Math.max(...fleet.processes.map(({ clock }) => clock.nowMs()));
            fleet.processes = [];
            const first = fleet.start();
            assert.ok(first.clock.nowMs() >= lastMs - 1_200, "decision time goes on where it was noted last");
            seen = new Map();
            break;
          }
        }
      }
      // Half an hour of steps is paid within five.
      clocks.databaseAheadMs = Math.min(Math.max(clocks.databaseAheadMs, -HOUR_MS / 2), HOUR_MS / 2);
      const owedMs = Math.max(...fleet.processes.map(({ clock }) => Math.abs(clock.nowMs() - clocks.databaseMs())));
      fleet.pass(owedMs * 10 + 5_000, roundTripMs, look);
      for (const { clock } of fleet.processes) {
        const aheadMs = clock.nowMs() - clocks.databaseMs();
        assert.ok(Math.abs(aheadMs) <= ERROR_MS, `it comes to the database's time: ${aheadMs} ms`);
      }
    }),
    { numRuns: 60 },
  );
});

const LAW = { numRuns: 200 };

test("the time that one machine slept has passed for it, and nothing moves for the others", () => {
  const slept = fc.integer({ min: 11_000, max: 20 * HOUR_MS });
  fc.assert(
    fc.property(slept, fc.boolean(), fc.boolean(), (sleptMs, holds, tells) => {
      const fleet = new Fleet();
      const [first, second] = [fleet.start(), fleet.start()];
      fleet.pass(5_000, 2, () => {});
      const sleeper = holds ? first : second;
      const other = holds ? second : first;
      sleeper.machine.tellsSleep = tells;
      const startMs = fleet.clocks.trueMs;
      const beforeMs = other.clock.nowMs();
      fleet.sleep(sleeper, sleptMs);
      // Others declare a silent member dead. The other one renews all the time: a few looks stand for them all.
      fleet.holder = other;
      fleet.pass(2_000, 2, () => {});
      fleet.clocks.trueMs = sleeper.sleepsUntilMs - 3;
      fleet.renew(other, 2);
      fleet.clocks.trueMs = sleeper.sleepsUntilMs;
      fleet.pass(2_500, 2, () => {});
      const passedMs = fleet.clocks.trueMs - startMs;
      assert.ok(Math.abs(other.clock.nowMs() - beforeMs - passedMs) <= ERROR_MS);
      assert.ok(Math.abs(sleeper.clock.nowMs() - other.clock.nowMs()) <= ERROR_MS, "it has jumped over its sleep");
    }),
    LAW,
  );
});

test("a service on one machine that sleeps goes on at the time after its sleep, with all its processes", () => {
  fc.assert(
    fc.property(fc.integer({ min: 5_000, max: 20 * HOUR_MS }), fc.integer({ min: 1, max: 3 }), (sleptMs, count) => {
      const fleet = new Fleet();
      for (let started = 0; started < count; started += 1) fleet.start();
      fleet.pass(5_000, 2, () => {});
      for (const process of fleet.processes) fleet.sleep(process, sleptMs);
      fleet.clocks.trueMs += sleptMs;
      fleet.pass(2_500, 2, () => {});
      for (const { clock } of fleet.processes) {
        assert.ok(Math.abs(clock.nowMs() - fleet.clocks.trueMs) <= ERROR_MS);
      }
      assert.equal(fleet.row.correctionMs, 0, "nothing has stepped");
    }),
    LAW,
  );
});

test("a step of the database's clock in a sleep is no sleep", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 5_000, max: HOUR_MS }),
      fc.integer({ min: 2_000, max: 9 * HOUR_MS }),
      (sleptMs, ms) => {
        const fleet = new Fleet();
        const process = fleet.start();
        fleet.pass(5_000, 2, () => {});
        fleet.sleep(process, sleptMs);
        fleet.clocks.trueMs += sleptMs;
        fleet.clocks.databaseAheadMs += ms;
        fleet.pass(2_500, 2, () => {});
        const aheadMs = process.clock.nowMs() - fleet.clocks.trueMs;
        assert.ok(Math.abs(aheadMs) <= ERROR_MS, `it jumped over the sleep alone: ${aheadMs}`);
      },
    ),
    LAW,
  );
});

test("a step is reported once, with its size, and a process that stood still is not said to step", () => {
  const fleet = new Fleet();
  const machine = new VirtualMachine(fleet.clocks);
  const said: unknown[] = [];
  const clock = machine.start(fleet.row, {
    ...SILENT,
    clockStepped: (facts) => said.push(facts),
    clockJumped: (facts) => said.push(facts),
  });
  fleet.processes.push({ machine, clock, sleepsUntilMs: 0 });
  const passes = () => fleet.pass(3_000, 0, () => {});
  passes();
  fleet.clocks.databaseAheadMs += 999;
  passes();
  assert.deepEqual(said.splice(0), []);
  fleet.clocks.databaseAheadMs += HOUR_MS;
  passes();
  assert.deepEqual(said.splice(0), [{ clock: "database", stepMs: HOUR_MS }]);
  machine.wallAheadMs -= HOUR_MS;
  passes();
  assert.deepEqual(said.splice(0), [{ clock: "machine", stepMs: -HOUR_MS }]);
  machine.slept(HOUR_MS);
  fleet.clocks.trueMs += HOUR_MS;
  passes();
  assert.deepEqual(said.splice(0), [{ jumpedMs: HOUR_MS }]);
});
