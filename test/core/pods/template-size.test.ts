import assert from "node:assert/strict";
import { test } from "node:test";
import { checkTemplateSize } from "../../../src/core/pods/template-size.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";

const cases: Readonly<Record<string, [spec: Readonly<Record<string, number>>, errors: readonly string[]]>> = {
  "as many items as allowed": [{ containers: 128, initContainers: 128, volumes: 1000, tolerations: 1000 }, []],
  "one container more": [{ containers: 129 }, ["spec.containers must have at most 128 items, but has 129"]],
  "two lists that are too long: the first is named": [
    { initContainers: 200, volumes: 1001 },
    ["spec.initContainers must have at most 128 items, but has 200"],
  ],
  "another list that is too long": [
    { unheardOf: 50_001 },
    ["spec.unheardOf must have at most 50000 items, but has 50001"],
  ],
  "a list of a name that has a bound": [
    { imagePullSecrets: 1_001 },
    ["spec.imagePullSecrets must have at most 1000 items, but has 1001"],
  ],
};
for (const [name, [counts, expected]] of Object.entries(cases)) {
  test(`the size of a template with ${name}`, () => {
    const lists = Object.entries(counts).map(([list, count]) => [list, new Array(count).fill({ name: "n" })]);
    const errors = checkTemplateSize({ spec: Object.fromEntries(lists) });
    assert.deepEqual(
      errors.map(({ path, message }) => `${path} ${message}`),
      expected,
    );
  });
}

test("the bytes of a template are those of its JSON", () => {
  const ofBytes = (bytes: number) => checkTemplateSize({ a: "ü".repeat((bytes - '{"a":""}'.length) / 2) });
  assert.deepEqual(ofBytes(1024 * 1024), []);
  assert.deepEqual(ofBytes(1024 * 1024 + 2), [
    { path: "", message: "must be at most 1048576 bytes of JSON, but has 1048578" },
  ]);
});

test("required node terms, which the labels of flavors join, are counted", () => {
  const withTerms = (count: number) => ({
    spec: {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: new Array(count).fill({}) },
        },
      },
    },
  });
  assert.deepEqual(checkTemplateSize(withTerms(1_000)), []);
  assert.match(checkTemplateSize(withTerms(1_001))[0]?.message ?? "", /^must have at most 1000 items, but has 1001$/);
});
const deep = (depth: number): JsonObject => (depth === 1 ? {} : { a: deep(depth - 1) });
const record = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, 1]));
const bounds: Readonly<Record<string, { within: JsonObject; beyond: JsonObject; error: string }>> = {
  depth: {
    within: deep(32),
    beyond: deep(33),
    error: `${Array(32).fill("a").join(".")} must not have more than 32 lists and objects within each other`,
  },
  members: {
    within: { unheardOf: record(50_000) },
    beyond: { unheardOf: record(50_001) },
    error: "unheardOf must have at most 50000 members",
  },
  "members of a name that has a bound": {
    within: { spec: { containers: [{ resources: { limits: record(1_000) } }] } },
    beyond: { spec: { containers: [{ resources: { limits: record(1_001) } }] } },
    error: "spec.containers[0].resources.limits must have at most 1000 members",
  },
  "names of members": {
    within: { metadata: { labels: { ["x".repeat(1_024)]: "" } } },
    beyond: { metadata: { labels: { ["x".repeat(1_025)]: "" } } },
    error: "metadata.labels must not have a member whose name has more than 1024 bytes",
  },
  values: {
    within: { a: lists(99_990) },
    beyond: { a: lists(101_000) },
    error: " must have at most 100000 values in all",
  },
};
for (const [name, { within, beyond, error }] of Object.entries(bounds)) {
  test(`a template has a bound of its ${name}, and the first one that is passed is the only error`, () => {
    assert.deepEqual(checkTemplateSize(within), []);
    const [first, ...others] = checkTemplateSize({ ...beyond, z: deep(40) });
    assert.deepEqual([`${first?.path} ${first?.message}`, others], [error, []]);
  });
}

/** Lists within a list, with so many values or a few less, each within its own bound. */
function lists(values: number): number[][] {
  return Array.from({ length: Math.floor(values / 1_000) }, () => new Array<number>(998).fill(1)).concat([
    new Array<number>(values % 1_000).fill(1),
  ]);
}
