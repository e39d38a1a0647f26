import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { type BatchSpec, batchSpecOf } from "../../../../src/core/kinds/batch/batch-spec.ts";
import { type BatchState, judgeBatch, mayStartIn, retryDelayMs } from "../../../../src/core/kinds/batch/judge-batch.ts";
import { judgeFailure } from "../../../../src/core/kinds/batch/judge-failure.ts";
import type { FailedPod, RuleVerdict } from "../../../../src/core/kinds/kind-rules.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";

const ROLE = "Worker";

function batch(fields: JsonObject, members = 3, restartPolicy = "Never"): BatchSpec {
  return batchSpecOf(fields, { members, restartPolicy });
}

/** A gang by the state of each member: `s`ucceeded, `f`ailed for good, `r`uns, `p`ending, or `-` without a pod. */
function gang(states: string, failures = 0, restarts = 0): BatchState {
  const each = [...states].map((state, index) => ({ state, index }));
  return {
    members: each.map(({ state, index }) => {
      const active = state === "r" || state === "p";
      const running = state === "r";
      return { role: ROLE, index, active, running, ready: running, nodeLabels: null, restarts: active ? restarts : 0 };
    }),
    ends: each.flatMap(({ state, index }) => {
      if (state !== "s" && state !== "f") return [];
      return [{ role: ROLE, index, end: state === "s" ? ("SUCCEEDED" as const) : ("FAILED" as const) }];
    }),
    failures,
    groupFailures: [],
  };
}

function word(judgement: RuleVerdict): string | null {
  return judgement?.kind === "failed" ? judgement.code : (judgement?.kind ?? null);
}

const indexed = { completionMode: "Indexed" };
const perIndex = { ...indexed, backoffLimitPerIndex: 1 };

describe("a batch Job ends by the first rule that holds", () => {
  const cases: readonly [string, BatchSpec, ReturnType<typeof gang>, string | null][] = [
    ["nothing has happened", batch({ completions: 3 }), gang("---"), null],
    ["a pod is pending", batch({ completions: 3 }), gang("p--"), null],
    ["a pod runs", batch({ completions: 3 }), gang("rp-"), "running"],
    ["the default limit is not reached", batch({ completions: 3 }), gang("rrr", 6), "running"],
    ["the default limit is passed", batch({ completions: 3 }), gang("rrr", 7), "BackoffLimitExceeded"],
    ["limit 0, one failure", batch({ completions: 3, backoffLimit: 0 }), gang("-rr", 1), "BackoffLimitExceeded"],
    [
      "the limit comes before success",
      batch({ completions: 3, backoffLimit: 0 }),
      gang("sss", 1),
      "BackoffLimitExceeded",
    ],
    [
      "restarts below the limit",
      batch({ completions: 2, backoffLimit: 3 }, 2, "OnFailure"),
      gang("rr", 0, 1),
      "running",
    ],
    [
      "restarts reach it",
      batch({ completions: 2, backoffLimit: 2 }, 2, "OnFailure"),
      gang("rr", 0, 1),
      "BackoffLimitExceeded",
    ],
    ["limit 0 without restarts", batch({ completions: 2, backoffLimit: 0 }, 2, "OnFailure"), gang("rr"), "running"],
    ["restarts under Never", batch({ completions: 2, backoffLimit: 0 }, 2), gang("rr", 0, 5), "running"],
    ["no limit beside one of each index", batch(perIndex), gang("rrr", 1_000), "running"],
    ["an index has failed, others run", batch(perIndex), gang("frr"), "running"],
    ["an index has failed, the others have ended", batch(perIndex), gang("fss"), "FailedIndexes"],
    [
      "too many indexes have failed",
      batch({ ...perIndex, maxFailedIndexes: 1 }),
      gang("ffr"),
      "MaxFailedIndexesExceeded",
    ],
    ["as many as may", batch({ ...perIndex, maxFailedIndexes: 1 }), gang("frr"), "running"],
    ["all have succeeded", batch(indexed), gang("sss"), "succeeded"],
    ["as many as must", batch({ completions: 2 }, 2), gang("ss"), "succeeded"],
    ["a work queue with one success, others run", batch({}), gang("srr"), "running"],
    ["a work queue whose last pod ends", batch({}), gang("s--"), "succeeded"],
    ["a work queue without success", batch({}), gang("---"), null],
    [
      "a success policy by index",
      batch({ ...indexed, successPolicy: { rules: [{ succeededIndexes: "0" }] } }),
      gang("srr"),
      "succeeded",
    ],
    [
      "another index",
      batch({ ...indexed, successPolicy: { rules: [{ succeededIndexes: "0" }] } }),
      gang("rsr"),
      "running",
    ],
    ["by count", batch({ ...indexed, successPolicy: { rules: [{ succeededCount: 2 }] } }), gang("rss"), "succeeded"],
    [
      "by count of indexes",
      batch({ ...indexed, successPolicy: { rules: [{ succeededIndexes: "0-1", succeededCount: 1 }] } }),
      gang("rrs"),
      "running",
    ],
    [
      "by the second rule",
      batch({ ...indexed, successPolicy: { rules: [{ succeededIndexes: "0" }, { succeededIndexes: "2" }] } }),
      gang("rrs"),
      "succeeded",
    ],
  ];
  for (const [name, spec, state, expected] of cases) {
    test(name, () => assert.equal(word(judgeBatch(spec, state)), expected));
  }
});

describe("a failed pod does what the first rule that matches says", () => {
  const failed: FailedPod = {
    spec: {} as FailedPod["spec"],
    role: ROLE,
    index: 0,
    name: "j-0",
    failures: 0,
    lost: false,
    exits: [
      { container: "main", exitCode: 7 },
      { container: "log", exitCode: 0 },
    ],
    conditions: [{ type: "DisruptionTarget", status: "True" }],
  };
  const rule = (action: string, onExitCodes: JsonObject) => ({
    podFailurePolicy: { rules: [{ action, onExitCodes }] },
  });
  const on = (action: string, operator: string, values: readonly number[], containerName?: string) =>
    rule(action, { operator, values, ...(containerName === undefined ? {} : { containerName }) });
  const condition = (action: string, status?: string) => ({
    podFailurePolicy: {
      rules: [{ action, onPodConditions: [{ type: "DisruptionTarget", ...(status === undefined ? {} : { status }) }] }],
    },
  });
  const cases: readonly [string, JsonObject, Partial<FailedPod>, string][] = [
    ["no rule: it counts", {}, {}, "retry, counts"],
    ["no rule, and the platform ended it", {}, { lost: true }, "retry"],
    ["a code ends the job", on("FailJob", "In", [7]), {}, "endGroup"],
    ["another code", on("FailJob", "In", [8]), {}, "retry, counts"],
    ["all codes but these", on("Ignore", "NotIn", [8]), {}, "retry"],
    ["one of these", on("Ignore", "NotIn", [7]), {}, "retry, counts"],
    ["code 0 never matches", on("FailJob", "NotIn", [7]), {}, "retry, counts"],
    ["the container that is named", on("FailJob", "In", [7], "main"), {}, "endGroup"],
    ["another container", on("FailJob", "In", [7], "log"), {}, "retry, counts"],
    ["a condition", condition("Ignore"), { lost: true }, "retry"],
    ["a condition with another status", condition("FailJob", "False"), {}, "retry, counts"],
    ["a condition that counts what the platform ended", condition("Count"), { lost: true }, "retry, counts"],
    ["an index ends", { ...perIndex, ...on("FailIndex", "In", [7]) }, {}, "endPart"],
    ["the limit of an index is not reached", perIndex, {}, "retry, counts"],
    ["the limit of an index is passed", perIndex, { failures: 1 }, "endPart"],
  ];
  for (const [name, fields, pod, expected] of cases) {
    test(name, () => {
      const action = judgeFailure(batch(fields), { ...failed, ...pod });
      assert.equal(action.kind === "retry" && action.counts ? "retry, counts" : action.kind, expected);
    });
  }

  test("the words name container, pod, exit code and rule", () => {
    const action = judgeFailure(batch(on("FailJob", "In", [7])), failed);
    assert.deepEqual(action, {
      kind: "endGroup",
      code: "PodFailurePolicy",
      message: "Container main for pod j-0 failed with exit code 7 matching FailJob rule at index 0",
    });
  });
});

test("a Job is over exactly when no further pod could be of use, however its members are", () => {
  const states = fc.string({ unit: fc.constantFrom("s", "f", "r", "p", "-"), minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(states, fc.boolean(), fc.option(fc.nat({ max: 6 }), { nil: undefined }), (all, isQueue, most) => {
      const members = isQueue ? all.replaceAll("f", "-") : all;
      const fields = isQueue ? {} : { ...perIndex, ...(most === undefined ? {} : { maxFailedIndexes: most }) };
      const judged = word(judgeBatch(batch(fields, members.length), gang(members)));
      const count = (state: string) => [...members].filter((one) => one === state).length;
      const [succeeded, failed, active] = [count("s"), count("f"), count("r") + count("p")];
      const isOver = isQueue
        ? succeeded > 0 && active === 0
        : succeeded + failed === members.length || (most !== undefined && failed > most);
      assert.equal(judged !== null && judged !== "running", isOver);
      if (isOver) assert.equal(judged === "succeeded", isQueue || failed === 0);
      const start = mayStartIn(batch(fields, members.length), gang(members));
      for (const member of gang(members).members) assert.equal(start(member), !isQueue || succeeded === 0);
    }),
  );
});

test("waits double up to ten minutes: of failures in a row, or of one index", () => {
  const seconds = (fields: JsonObject, inRow: number, failed: number) =>
    retryDelayMs(batch(fields), { inRow, failed }) / 1000;
  assert.deepEqual(
    [1, 2, 3, 7, 8, 100].map((inRow) => seconds({}, inRow, 1)),
    [10, 20, 40, 600, 600, 600],
  );
  assert.deepEqual(
    [1, 2, 3].map((failed) => seconds(perIndex, 50, failed)),
    [10, 20, 40],
  );
});
