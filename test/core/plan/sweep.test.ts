import assert from "node:assert/strict";
import { test } from "node:test";
import { Sweep } from "../../../src/runtime/sweep.ts";

test("every entry has its turn again and again while others come and go", () => {
  const all = new Map(Array.from({ length: 3000 }, (_, at) => [at, at]));
  const sweep = new Sweep(all);
  const seen = new Map<number, number>();
  let most = 0;
  for (let visit = 0; visit < 4096; visit++) {
    const next = sweep.next();
    most = Math.max(most, next.length);
    for (const [key] of next) {
      seen.set(key, (seen.get(key) ?? 0) + 1);
      if (key % 3 === 0) all.delete(key);
    }
    all.set(3000 + visit, visit);
  }
  for (let at = 0; at < 3000; at++) assert.ok((seen.get(at) ?? 0) >= (at % 3 === 0 ? 1 : 2), `entry ${at}`);
  assert.ok(most <= 7, `${most} entries in one visit`);
});

test("there is nothing to visit in an empty map", () => {
  assert.deepEqual(new Sweep(new Map()).next(), []);
});
