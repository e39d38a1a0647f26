import assert from "node:assert/strict";
import { test } from "node:test";
import { checkTemplateSize } from "../../src/core/pods/template-size.ts";

const cases: Readonly<Record<string, [spec: Readonly<Record<string, number>>, errors: readonly string[]]>> = {
  "as many items as allowed": [{ containers: 128, initContainers: 128, volumes: 1000, tolerations: 1000 }, []],
  "one container more": [{ containers: 129 }, ["spec.containers must have at most 128 items, but has 129"]],
  "two lists that are too long": [
    { initContainers: 200, volumes: 1001 },
    [
      "spec.initContainers must have at most 128 items, but has 200",
      "spec.volumes must have at most 1000 items, but has 1001",
    ],
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
