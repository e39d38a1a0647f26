import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { clusterLevels } from "../../../src/adapters/store/admin/cluster-levels.ts";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { onEachDatabase } from "../../support/databases.ts";
import { freshStore } from "../db.ts";

onEachDatabase((openDb) => {
  let db: Db;
  before(async () => {
    db = await openDb();
  });
  after(() => db.close());

  test("each cluster that takes gangs has its levels and those of its flavors, each once", async () => {
    await freshStore(db);
    const [block, rack, host] = ["block", "rack", "host"].map((name) => ({ name, label: `example.com/${name}` }));
    const flavors = [{ name: "gpu/a", topology: [rack, host] }, { name: "gpu/b", topology: [] }, { name: "gpu/c" }];
    const change = "update clusters set topology = $1::jsonb, flavors = $2::json where name = 'east'";
    await db.query(change, [JSON.stringify([block, rack]), JSON.stringify(flavors)]);
    const sorted = (await clusterLevels(db)).map(({ levels, ...cluster }) => {
      return { ...cluster, levels: levels.toSorted((one, other) => one.name.localeCompare(other.name)) };
    });
    assert.deepEqual(sorted, [
      { name: "east", labels: { region: "east" }, levels: [block, host, rack] },
      { name: "west", labels: { region: "west" }, levels: [] },
    ]);
    await db.query("update clusters set forgotten_ms = 1 where name = 'east'");
    await db.query("update clusters set simulation = 'retired' where name = 'west'");
    assert.deepEqual(await clusterLevels(db), []);
  });
});
