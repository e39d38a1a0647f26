import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { checkState } from "../../../src/planner/check-state.ts";
import { FleetFollower } from "../../../src/planner/fleet-follower.ts";
import type { FleetStore } from "../../../src/planner/ports.ts";
import { Draw } from "../../core/plan/random-world.ts";
import { completeCapacity } from "../../support/complete-capacity.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { fleetPlanner } from "../../support/fleet-planner.ts";
import { FLAVOR, NOW } from "../jobs.ts";
import { freshPlanner, type TestPlanner } from "../planner-fixture.ts";

const RESEARCH = { kind: "queue", pool: FLAVOR, queue: "research" } as const;

onEachDatabase((openDb) => {
  let db: Db;
  let planner: TestPlanner;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());
  beforeEach(async () => {
    planner = await freshPlanner(db);
    await planner.submit();
    await planner.store.clusters.recordCapacity(completeCapacity("east", []));
  });

  const followed = async (store: FleetStore = planner.store.planner) => {
    const follower = new FleetFollower(store);
    await follower.catchUp();
    return follower;
  };

  test("a state that follows the store is right, also if the store changes all the time", async () => {
    const follower = await followed();
    assert.deepEqual(await checkState(planner.store.planner, follower), { wrong: [] });
    let reads = 0;
    const draw = new Draw(1);
    const busy: FleetStore = {
      ...planner.store.planner,
      readFleet: async (...given) => {
        const read = await planner.store.planner.readFleet(...given);
        reads += 1;
        await planner.submit({ queue: "research" });
        await planner.store.admin.setCordoned("west", draw.chance(0.5));
        return read;
      },
    };
    assert.deepEqual(await checkState(busy, follower), { wrong: [] });
    assert.ok(reads > 2, "both comparisons read the store");
  });

  test("a change that the state has missed is found, by name", async () => {
    const follower = await followed();
    follower.planner.apply({ kind: "sum", scope: RESEARCH, version: 1_000, used: 5 });
    const name = `sum ["queue","${FLAVOR}","research"]`;
    assert.deepEqual(await checkState(planner.store.planner, follower), { wrong: [name] });
  });

  test("a planner whose state is wrong loads it anew, and decides right", async () => {
    const { store, plannerEpoch } = planner;
    let isWrong = true;
    // Loses every gang until the state was checked.
    const lossy: FleetStore = {
      ...store.planner,
      readFleet: async (place, known) => {
        const read = await store.planner.readFleet(place, known);
        const isFollowing = known.versionOf("") === null && place !== null && isWrong;
        const changes = isFollowing ? read.changes.filter(({ kind }) => kind !== "gang") : read.changes;
        return { ...read, changes };
      },
    };
    const fleet = fleetPlanner(lossy);
    const decide = async () => (await fleet.decide({ nowMs: NOW, plannerEpoch })).depths.get("research");
    assert.equal(await decide(), 1);
    const missed = await planner.submit();
    await store.watch.sequence();
    assert.equal(await decide(), 1);
    isWrong = false;
    assert.deepEqual(await fleet.check(), { wrong: [`gang ${missed.uid}`] });
    assert.equal(await decide(), 2);
    assert.deepEqual(await fleet.check(), { wrong: [] });
  });
});
