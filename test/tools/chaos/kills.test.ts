import { test } from "node:test";
import { killAndCount } from "./kills.ts";

const KILLS = Number(process.env["GANGWAY_KILLS"] ?? 5);

test(`after ${KILLS} kills at random moments, every job ends once and nothing is left`, async (t) => {
  const seed = Number(process.env["GANGWAY_SEED"] ?? Date.now() % 100_000);
  t.diagnostic(`seed ${seed}: node test/tools/chaos/kills.ts --kills ${KILLS} --seed ${seed}`);
  await killAndCount({ kills: KILLS, seed, log: (line) => t.diagnostic(line) });
});
