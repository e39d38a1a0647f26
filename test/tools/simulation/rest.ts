import assert from "node:assert/strict";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import type { World } from "./world.ts";

/** With the clock still, the planner is done after so many rounds at most. */
const ROUNDS_MAX = 25;
/** So many further rounds must change nothing. */
const STILL_ROUNDS = 5;

/**
 * With the clock still and nothing arriving, rounds come to an end, further ones change nothing, and every job that
 * waits is told why. `onRound` is called after each round.
 */
export async function requireStill(db: Db, world: World, onRound: () => Promise<void>): Promise<void> {
  // Until the end of a grant of quota is recorded, the planner plans what the ledger refuses.
  await world.reap(0);
  let before = await versionsOf(db);
  let last: readonly unknown[] = [];
  for (let rounds = 0, still = 0; still < STILL_ROUNDS; rounds += 1) {
    assert.ok(
      rounds < ROUNDS_MAX,
      `the planner is still busy after ${rounds} rounds: ${JSON.stringify(last)}\n${before.join("\n")}`,
    );
    const done = [];
    for (const { planner } of world.planners) done.push(await planner.runOnce());
    last = done;
    await onRound();
    const after = await versionsOf(db);
    const changed = after.filter((one) => !before.includes(one));
    const isBusy = changed.length > 0 || done.some((round) => round !== null && (round.more || round.missed > 0));
    assert.ok(still === 0 || !isBusy, `a round after one that changed nothing changes:\n${changed.join("\n")}`);
    still = isBusy || done.every((round) => round === null) ? 0 : still + 1;
    before = after;
  }
  await requireTold(world);
}

/** Every job that waits is told why. However many workers were killed, no job is blamed for that. */
async function requireTold(world: World): Promise<void> {
  for (const { name, status, cancel, deleteTimeMs } of await world.jobs()) {
    assert.equal(status.setAside, undefined, `${name} is set aside, although workers were only killed`);
    if (status.phase !== "WAITING" || cancel !== null || deleteTimeMs !== null) continue;
    const { reason = "nothing" } = status.waiting ?? {};
    assert.ok(reason !== "nothing" && reason !== "NotEvaluated", `${name} waits, and is told ${reason}`);
  }
}

/** Each job with its version. */
async function versionsOf(db: Db): Promise<readonly string[]> {
  const rows = await db.query<{ job: string }>(VERSIONS);
  return rows.map(({ job }) => job);
}

const VERSIONS = `
select concat_ws(' ', name, 'version', version, phase, status -> 'waiting' ->> 'reason') as job from jobs`;
