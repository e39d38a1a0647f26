/** What is counted of the work of a call, and what shows by it. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { OperationsCounter } from "./operations.ts";

const counter = new OperationsCounter(/operations\.test\.ts/);
after(() => counter.close());

const items = (size: number) => Array.from({ length: size }, (_, at) => `k${at}`);

function pairs(size: number): number {
  let found = 0;
  for (let one = 0; one < size; one += 1) {
    for (let other = 0; other < size; other += 1) if (one === other) found += 1;
  }
  return found;
}

const works: Readonly<Record<string, { readonly run: (size: number) => unknown; readonly grows: number }>> = {
  "a loop": { run: (size) => items(size).map((item) => item.length), grows: 2 },
  "a loop in a loop": { run: pairs, grows: 4 },
  "a search in a list for each item": {
    run: (size) => items(size).filter((_, at, all) => all.includes(`x${at}`)),
    grows: 4,
  },
  "a list that is copied for each item": {
    run: (size) => items(size).reduce<readonly string[]>((all, item) => all.concat(item), []),
    grows: 4,
  },
  "a long text that is joined for each item": {
    run: (size) => items(size).map((item) => [item, "a".repeat(size)].join("")),
    grows: 4,
  },
  "a text that is read again at each place": {
    run: (size) => {
      const text = "{".repeat(size);
      for (let at = 0; at < size; at += 1) text.indexOf("}", at);
    },
    grows: 4,
  },
  "a text that is split at a pattern which it lacks": { run: (size) => "a".repeat(size).split(/[\\/]/), grows: 2 },
  "a pattern that is tried at each item": {
    run: (size) => items(size).filter(() => /z/.test("a".repeat(size))),
    grows: 4,
  },
};

for (const [name, { run, grows }] of Object.entries(works)) {
  test(`twice the size counts ${grows} times: ${name}`, async () => {
    const count = (size: number) => counter.count(async () => run(size));
    const [half, whole] = [await count(2_000), await count(4_000)];
    assert.ok(Math.abs(whole / half - grows) < 0.7, `${half}, then ${whole}`);
    assert.equal(await count(2_000), half, "the same work counts the same");
  });
}
