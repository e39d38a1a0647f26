import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Job } from "../../../../src/core/job/job.ts";
import { taskName } from "../../../../src/core/job/names.ts";
import { isTerminal } from "../../../../src/core/job/status.ts";
import type { PluginState } from "../../../../src/core/job/task-info.ts";
import { changeJob } from "../../../../src/core/kinds/change-job.ts";
import { phaseInfo } from "../../../../src/core/kinds/plugin.ts";
import type { Decision } from "../../../../src/core/reconcile/decision.ts";
import {
  afterCall,
  type CallOutcome,
  type DueCall,
  dueCall,
} from "../../../../src/core/reconcile/plugins/plugin-outcome.ts";
import { reconcile } from "../../../../src/core/reconcile/reconcile.ts";
import { kindsWith } from "../../../support/kinds.ts";
import { etlEntry } from "../../kinds/plugin-world.ts";
import { admit, jobOf, CONFIG as OWN_CONFIG, recorded, START_MS } from "../world.ts";

const KINDS = kindsWith(etlEntry);
const CONFIG = { ...OWN_CONFIG, kinds: KINDS };

type Command =
  | { readonly kind: "step"; readonly says: Says; readonly crash: boolean }
  | { readonly kind: "pass"; readonly ms: number }
  | { readonly kind: "cancel" | "delete" | "suspend" | "resume" };

type Says =
  | {
      readonly kind: "phase";
      readonly phase: keyof typeof phaseInfo;
      readonly version: number;
      readonly state: number | null;
    }
  | { readonly kind: "throws" }
  | { readonly kind: "rubbish"; readonly value: unknown };

const says: fc.Arbitrary<Says> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("phase" as const),
      phase: fc.constantFrom(...(Object.keys(phaseInfo) as (keyof typeof phaseInfo)[])),
      version: fc.nat(3),
      state: fc.option(fc.nat(100)),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: "throws" as const }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("rubbish" as const), value: fc.anything() }) },
);

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 10, arbitrary: fc.record({ kind: fc.constant("step" as const), says, crash: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: fc.nat(400_000) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("cancel", "delete", "suspend", "resume") }) },
);

const policies = fc.record({
  backoffLimit: fc.integer({ min: 0, max: 4 }),
  systemBackoffLimit: fc.integer({ min: 0, max: 4 }),
  activeDeadlineSeconds: fc.option(fc.integer({ min: 1, max: 1_000 }), { nil: undefined }),
});

/** A job without pods, its planner and its worker. Every plugin call is noted. */
class World {
  job: Job;
  nowMs = START_MS;
  forgotten = false;
  readonly calls: {
    readonly stage: string;
    readonly admission: number;
    readonly attempt: number;
    readonly answered: boolean;
  }[] = [];
  /** The members that the record must contain for the present attempt. */
  kept: PluginState = { version: 0, value: null };

  constructor(policy: {
    backoffLimit: number;
    systemBackoffLimit: number;
    activeDeadlineSeconds?: number | undefined;
  }) {
    const { activeDeadlineSeconds, ...runPolicy } = policy;
    const deadline = activeDeadlineSeconds === undefined ? {} : { activeDeadlineSeconds };
    this.job = jobOf({ kind: "EtlJob", replicaSpecs: {}, runPolicy: { ...runPolicy, ...deadline } }, {}, KINDS);
  }

  plan(): void {
    const draining = this.job.admissions.some(({ tokensReleasedMs }) => tokensReleasedMs === null);
    if (this.job.status.phase !== "WAITING" || this.job.cancel !== null || this.job.deleteTimeMs !== null || draining)
      return;
    const number =
      Math.max(0, ...this.job.admissions.map((one) => one.number), ...this.calls.map((one) => one.admission)) + 1;
    this.job = admit(this.job, { cluster: null, nowMs: this.nowMs, number });
    this.kept = { version: 0, value: null };
  }

  /** One step of a worker: the record that must come first, or else the call that is due, and its outcome. */
  step(what: Says, crash: boolean): void {
    if (this.forgotten) return;
    this.plan();
    const decision = this.decide();
    assert.deepEqual(decision.actions, []);
    if (decision.record !== null || decision.forget) {
      this.record(decision);
      return;
    }
    const call = dueCall(this.job, this.nowMs);
    if (call === null) return;
    this.call(call, what, crash);
  }

  decide(): Decision {
    const decision = reconcile(this.job, [], this.nowMs, CONFIG);
    assert.deepEqual(reconcile(this.job, [], this.nowMs, CONFIG), decision);
    return decision;
  }

  call(call: DueCall, what: Says, crash: boolean): void {
    const { admission, attempt, state } = call.plugin;
    if (call.stage === "handle") assert.deepEqual(state, this.kept, "the next round sees what the last one kept");
    this.calls.push({ stage: call.stage, admission, attempt, answered: !crash && what.kind !== "throws" });
    if (crash) return;
    const decision = afterCall(this.job, call, outcomeOf(what), { nowMs: this.nowMs, config: CONFIG });
    this.noteKept(call, what, decision);
    this.record(decision);
  }

  noteKept(call: DueCall, what: Says, decision: Decision): void {
    const plugin = decision.record?.status.plugin ?? this.job.status.plugin;
    if (plugin?.attempt !== call.plugin.attempt) this.kept = { version: 0, value: null };
    else if (call.stage === "handle" && what.kind === "phase" && what.state !== null) {
      this.kept = { version: what.state % 256, value: { at: what.state } };
    }
    assert.deepEqual(plugin?.state, this.kept, "state is kept by itself, whatever the phase does");
  }

  record(decision: Decision): void {
    if (decision.forget) {
      this.forgotten = true;
      return;
    }
    const before = this.job;
    this.job = recorded(this.job, decision);
    const { status } = this.job;
    if (isTerminal(before.status)) assert.equal(status.phase, before.status.phase, "a job ends once");
    const ends = status.conditions.filter(
      ({ type, status: is }) => is === "True" && ["Succeeded", "Failed", "Cancelled"].includes(type),
    );
    assert.equal(ends.length, isTerminal(status) ? 1 : 0);
    for (const admission of decision.record?.admissions ?? []) this.checkReleased(admission);
  }

  /** Tokens are released only after `finalize`, and no call is made for the admission afterwards. */
  checkReleased(admission: Job["admissions"][number]): void {
    if (admission.tokensReleasedMs === null) return;
    const own = this.calls.filter((one) => one.admission === admission.number);
    const last = own.at(-1);
    if (last !== undefined) assert.deepEqual([last.stage, last.answered], ["finalize", true]);
  }

  run(one: Command): void {
    const kind = KINDS.kindOf("EtlJob")!;
    if (one.kind === "step") this.step(one.says, one.crash);
    else if (one.kind === "pass") this.nowMs += one.ms;
    else if (this.forgotten || isTerminal(this.job.status)) return;
    else if (one.kind === "cancel") this.job = { ...this.job, cancel: { reason: "", atMs: this.nowMs } };
    else if (one.kind === "delete") this.job = { ...this.job, deleteTimeMs: this.nowMs };
    else {
      const decided = changeJob(this.job, kind, { version: null, suspend: one.kind === "suspend" }, this.nowMs);
      if (decided.kind === "changed") this.job = decided.job;
    }
  }
}

function outcomeOf(what: Says): CallOutcome {
  if (what.kind === "throws") return { kind: "failed", message: "it threw" };
  if (what.kind === "rubbish") return { kind: "returned", value: what.value };
  const info = phaseInfo[what.phase]({ code: "Broken", reason: "so", version: what.version });
  const state = what.state === null ? {} : { state: { version: what.state % 256, value: { at: what.state } } };
  return { kind: "returned", value: { info, ...state } };
}

test("for any plugin and any death of a worker, no state is lost, tokens follow finalize, and a job ends once", () => {
  fc.assert(
    fc.property(policies, fc.array(command, { maxLength: 60 }), (policy, commands) => {
      const world = new World(policy);
      for (const one of commands) world.run(one);
    }),
    { numRuns: 500 },
  );
});

test("the record of a deleted job is removed once its plugin has ended and finalized it", () => {
  const good: Says = { kind: "phase", phase: "running", version: 0, state: null };
  fc.assert(
    fc.property(policies, fc.array(command, { maxLength: 40 }), (policy, commands) => {
      const world = new World(policy);
      for (const one of commands) world.run(one);
      if (!world.forgotten && world.job.deleteTimeMs === null) world.job = { ...world.job, deleteTimeMs: world.nowMs };
      for (let round = 0; round < 12; round++) {
        world.nowMs += 400_000;
        world.step(good, false);
      }
      assert.ok(world.forgotten);
      for (const number of new Set(world.calls.map(({ admission }) => admission))) {
        assert.equal(world.calls.findLast(({ admission }) => admission === number)?.stage, "finalize");
      }
    }),
    { numRuns: 300 },
  );
});

test("a plugin that only fails ends its job by the system budget, and is aborted and finalized", () => {
  const rubbish = fc.oneof(
    fc.constant<Says>({ kind: "throws" }),
    fc
      .anything()
      .filter((value) => afterCallFails(value))
      .map((value): Says => ({ kind: "rubbish", value })),
  );
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 5 }), fc.array(rubbish, { minLength: 8, maxLength: 8 }), (limit, wrong) => {
      const world = new World({ backoffLimit: 1, systemBackoffLimit: limit });
      for (const one of wrong) {
        world.step(one, false);
        world.nowMs += 60_000;
      }
      assert.equal(world.job.status.failure?.code, "PluginFailed");
      assert.equal(world.job.status.failure?.kind, "SYSTEM");
      assert.equal(world.calls.filter(({ stage }) => stage === "handle").length, Math.max(limit, 1));
    }),
    { numRuns: 100 },
  );
});

function afterCallFails(value: unknown): boolean {
  const world = new World({ backoffLimit: 1, systemBackoffLimit: 1 });
  world.step({ kind: "throws" }, true);
  const call = dueCall(world.job, world.nowMs)!;
  const { record } = afterCall(world.job, call, { kind: "returned", value }, { nowMs: world.nowMs, config: CONFIG });
  return record?.status.failure?.code === "PluginFailed";
}

test("no two attempts of any jobs share a task name, even if names must be short", () => {
  const who = fc.record({
    jobUid: fc.uuid(),
    admission: fc.integer({ min: 1, max: 20 }),
    attempt: fc.integer({ min: 1, max: 200 }),
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(who, { selector: (one) => JSON.stringify(one) }),
      fc.integer({ min: 32, max: 80 }),
      fc.integer({ min: 0, max: 32 }),
      (all, lengthMax, below) => {
        const min = lengthMax - below;
        const names = all.map((one) => taskName(one, { min, max: lengthMax }));
        assert.equal(new Set(names).size, all.length);
        for (const name of names) assert.match(name, /^[a-z0-9-]+$/);
        for (const name of names) {
          // A hash has a length of its own.
          const isHash = !name.startsWith("gw-");
          assert.ok(name.length <= lengthMax && (isHash || name.length >= min), name);
        }
      },
    ),
  );
});
