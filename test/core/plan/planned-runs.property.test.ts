/** Every member that comes has one planned node, which takes all that are planned on it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PlannedRun } from "../../../src/core/job/placement/placement.ts";
import { withRuns } from "../../../src/core/job/placement/placement.ts";
import { membersUnder } from "../../../src/core/plan/capacity/cluster-state.ts";
import type { PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";
import type { PlanSnapshot } from "../../../src/core/plan/model/snapshot.ts";
import { stateOf } from "../../support/load-snapshot.ts";
import { plan } from "../../support/plan.ts";
import { AT } from "./plan-world.ts";
import { randomSnapshot } from "./random-world.ts";

const WORLDS = 200;
const BOUNDS = { admissionsMax: Number.POSITIVE_INFINITY };

const worlds = Array.from({ length: WORLDS }, (_, at) => {
  const from = randomSnapshot(at + 1, { jobs: 12, nodes: 5, alike: at % 2 === 0 });
  const admissions = plan(from, AT).admissions.filter(({ cluster }) => cluster !== null);
  return { from, admissions };
});

function gangIn({ waiting, admitted }: PlanSnapshot, uid: string) {
  return [...waiting, ...admitted].find((gang) => gang.uid === uid) ?? assert.fail();
}

/** The members that a run names, as `Worker/3`. */
function membersOf(runs: readonly PlannedRun[]): readonly string[] {
  return runs.flatMap(({ role, first, count }) => Array.from({ length: count }, (_, at) => `${role}/${first + at}`));
}

/** The members that come with an admission or a growth. */
function coming(from: PlanSnapshot, planned: PlannedAdmission): readonly string[] {
  const live = gangIn(from, planned.jobUid).admissions.find(({ number }) => number === planned.admission);
  return Object.entries(planned.members).flatMap(([role, count]) => {
    const had = live?.members[role] ?? 0;
    return Array.from({ length: count - had }, (_, at) => `${role}/${had + at}`);
  });
}

test("the runs of an admission or a growth name each member that comes once", () => {
  const kinds = new Set<string>();
  for (const { from, admissions } of worlds) {
    for (const planned of admissions) {
      kinds.add(planned.kind);
      assert.deepEqual([...membersOf(planned.runs ?? [])].sort(), [...coming(from, planned)].sort());
    }
  }
  assert.deepEqual([...kinds].sort(), ["admit", "grow"]);
});

test("the nodes of a plan take all pods that are planned on them", () => {
  for (const { from, admissions } of worlds) {
    for (const cluster of from.clusters) {
      const used = new Map<string, number>();
      for (const planned of admissions) {
        if (planned.cluster !== cluster.name) continue;
        const { ask } = gangIn(from, planned.jobUid);
        for (const { role, node, count } of planned.runs ?? []) {
          const at = ask.roles.find((one) => one.role === role)?.podClass ?? assert.fail();
          for (const [resource, amount] of Object.entries(ask.podClasses[at]?.requests ?? {})) {
            const key = `${node} ${resource}`;
            used.set(key, (used.get(key) ?? 0) + amount * count);
          }
        }
      }
      for (const [key, amount] of used) {
        const [name, resource = ""] = key.split(" ");
        const node = cluster.capacity?.nodes.find((one) => one.name === name) ?? assert.fail(`no node ${name}`);
        assert.ok(amount <= (node.free[resource] ?? 0), `${key} in ${cluster.name}`);
      }
    }
  }
});

test("other nodes of a run are others, at most seven", () => {
  const runs = worlds.flatMap(({ admissions }) => admissions.flatMap((planned) => planned.runs ?? []));
  assert.ok(runs.some(({ others }) => others.length > 0));
  for (const { node, others } of runs) {
    assert.ok(others.length <= 7 && !others.includes(node));
    assert.equal(new Set(others).size, others.length);
  }
});

test("members that no node shows yet count on their planned nodes", () => {
  for (const { from, admissions } of worlds) {
    const admitted = admissions.filter(({ kind }) => kind === "admit");
    const byUid = new Map(admitted.map((planned) => [planned.jobUid, planned]));
    const gangs = [...from.waiting, ...from.admitted].map((gang) => {
      const planned = byUid.get(gang.uid);
      if (planned === undefined) return gang;
      const { admission: number, cluster, members, flavors, flavorLabels, runs = [] } = planned;
      const ends = { admitTimeMs: 0, state: "live" as const, tokensReleasedMs: null, goneMs: null };
      const live = { number, cluster, members, flavors, flavorLabels, placement: withRuns(null, runs), ...ends };
      return { ...gang, waits: false, admissions: [...gang.admissions, live], lastAdmission: number };
    });
    const [waiting, running] = [gangs.filter(({ waits }) => waits), gangs.filter(({ waits }) => !waits)];
    stateOf({ ...from, waiting, admitted: running }).round(AT.nowMs, BOUNDS, (_plan, { fleet }) => {
      for (const planned of admitted) {
        const gang = running.find(({ uid }) => uid === planned.jobUid) ?? assert.fail();
        const live = gang.admissions.at(-1) ?? assert.fail();
        const pods = fleet.clusters.get(planned.cluster ?? "")?.podsOf(membersUnder(gang, live)) ?? [];
        const expected = (planned.runs ?? []).flatMap(({ node, count }) => Array.from({ length: count }, () => node));
        assert.deepEqual(pods.map(({ node }) => node).sort(), expected.sort());
      }
    });
  }
});
