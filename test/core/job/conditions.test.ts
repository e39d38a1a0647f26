import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type ConditionChange, setCondition } from "../../../src/core/job/conditions.ts";
import type { Condition, ConditionType } from "../../../src/core/job/status.ts";

const TERMINAL: readonly ConditionType[] = ["Succeeded", "Failed", "Cancelled"];
const change = fc.record({
  type: fc.constantFrom<ConditionType>(
    "Created",
    "Running",
    "Restarting",
    "Succeeded",
    "Failed",
    "Cancelled",
    "Admitted",
    "PodsReady",
  ),
  status: fc.constantFrom("True" as const, "False" as const),
  reason: fc.constantFrom("A", "B"),
  message: fc.constantFrom("m", "n"),
});
const empty: readonly Condition[] = [];

test("each type has one condition, at most one terminal condition is True, and Running excludes Restarting", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 20 }), (changes) => {
      const list = changes.reduce((conditions, one, at) => setCondition(conditions, one, at), empty);
      const types = list.map(({ type }) => type);
      assert.equal(new Set(types).size, types.length);
      assert.ok(list.filter(({ type, status }) => TERMINAL.includes(type) && status === "True").length <= 1);
      assert.ok(!(types.includes("Running") && types.includes("Restarting")));
    }),
  );
});

test("setting a condition again changes nothing, and its transition time moves only with its status", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 10 }), change, (changes, last) => {
      const before = changes.reduce((conditions, one, at) => setCondition(conditions, one, at), empty);
      const once = setCondition(before, last, 100);
      assert.equal(setCondition(once, { ...last, message: "other" }, 200), once);
      if (once === before) return;
      const was = before.find(({ type }) => type === last.type);
      const is = once.find(({ type }) => type === last.type);
      assert.equal(is?.lastTransitionMs, was?.status === last.status ? was.lastTransitionMs : 100);
    }),
  );
});

test("a job that has failed or was cancelled keeps its conditions, whatever is set after that", () => {
  fc.assert(
    fc.property(
      fc.array(change, { maxLength: 10 }),
      fc.constantFrom<ConditionType>("Failed", "Cancelled"),
      fc.array(change, { maxLength: 5 }),
      (before, type, after) => {
        const set = (list: readonly Condition[], one: ConditionChange, at: number) => setCondition(list, one, at);
        const end = { type, status: "True", reason: "End", message: "" } as const;
        const ended = set(before.reduce(set, empty), end, 100);
        assert.equal(after.reduce(set, ended), ended);
      },
    ),
  );
});

test("the end of a job sets every other condition but Created to False, and Running keeps its reason", () => {
  const steps = [
    { type: "Created", status: "True", reason: "JobCreated", message: "" },
    { type: "Admitted", status: "True", reason: "Admitted", message: "" },
    { type: "Running", status: "True", reason: "JobRunning", message: "" },
    { type: "Failed", status: "True", reason: "JobFailed", message: "" },
  ] as const;
  const list = steps.reduce((conditions, one) => setCondition(conditions, one, 1), empty);
  assert.deepEqual(
    list.map(({ type, status, reason }) => [type, status, reason]),
    [
      ["Created", "True", "JobCreated"],
      ["Admitted", "False", "Admitted"],
      ["Running", "False", "JobRunning"],
      ["Failed", "True", "JobFailed"],
    ],
  );
});
