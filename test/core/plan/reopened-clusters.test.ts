import assert from "node:assert/strict";
import { test } from "node:test";
import { stateOf } from "../../support/load-snapshot.ts";
import { amounts, cluster, job, NOW, node, queue, snapshot } from "./plan-world.ts";

const BOUNDS = { admissionsMax: Number.POSITIVE_INFINITY };

for (const freed of [["east", "west"], ["west", "east"], ["west"]]) {
  test(`of equal clusters with room again, ${freed.join(" before ")}, a gang gets the first by name`, () => {
    // The state has met the clusters in the order in which they get their room.
    const clusters = freed.map((name) => cluster(name, { nodes: [node(name, "h100", { free: amounts(0) })] }));
    const waiting = [job({ name: "waits", roles: { Worker: { replicas: 1, gpus: 8 } } })];
    const state = stateOf(snapshot({ waiting, clusters, queues: [queue("q", { h100: 1000 })] }));
    assert.deepEqual(state.round(NOW, BOUNDS).admissions, []);
    for (const name of freed) {
      const key = { kind: "node", name } as const;
      const changes = [{ key, entry: { ...key, node: node(name, "h100"), members: [] } }];
      state.apply({ kind: "capacity", cluster: name, epoch: 1, since: 1, sequence: 2, changes });
    }
    const [first] = [...freed].sort();
    assert.deepEqual(
      state.round(NOW, BOUNDS).admissions.map((planned) => planned.cluster),
      [first],
    );
  });
}
