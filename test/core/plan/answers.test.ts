import { test } from "node:test";
import { contentHash } from "../../../src/runtime/content-hash.ts";
import { plan } from "../../support/plan.ts";
import { assertRecorded } from "../../support/recorded-text.ts";
import { settled, withoutNumbers, withoutTies } from "./answers.ts";
import { AT } from "./plan-world.ts";
import { randomSnapshot } from "./random-world.ts";

const WORLDS = 300;

/** The decisions for one random world in a line, and the refusals once it has settled. */
function answerTo(seed: number, alike: boolean): string {
  const from = randomSnapshot(seed, { jobs: 12, nodes: 5, alike });
  const first = plan(from, AT);
  const last = plan(
    settled(from, (world) => plan(world, AT).admissions),
    AT,
  );
  const { admissions, refusals } = first;
  const counts = `${admissions.length} admitted, ${refusals.length} refused, ${last.refusals.length} at last`;
  const hashes = [withoutNumbers(first), withoutTies(last)].map((answer) => contentHash(answer).slice(0, 12));
  return `${seed}: ${counts}, ${hashes.join(" ")}`;
}

for (const [pods, alike] of [
  ["one pod class", true],
  ["several pod classes", false],
] as const) {
  test(`plans of random worlds stay as they were recorded, for gangs of ${pods}`, () => {
    const lines = Array.from({ length: WORLDS }, (_, at) => answerTo(at + 1, alike));
    const file = new URL(`answers-for-${pods.replaceAll(" ", "-")}.txt`, import.meta.url);
    assertRecorded(file, `${lines.join("\n")}\n`);
  });
}
