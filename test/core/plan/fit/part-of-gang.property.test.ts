import assert from "node:assert/strict";
import { test } from "node:test";
import { memberCount } from "../../../../src/core/job/roles.ts";
import { largestPart, partWith } from "../../../../src/core/plan/fit/part-of-gang.ts";
import type { Ask } from "../../../../src/core/plan/model/ask.ts";
import { DEFAULT_POLICY } from "../../../../src/core/plan/model/queue-policy.ts";
import type { PlanSnapshot } from "../../../../src/core/plan/model/snapshot.ts";
import { shapeOf, sizedAsk } from "../../../../src/core/plan/queues/ask-shape.ts";
import { stateOf } from "../../../support/load-snapshot.ts";
import { AT, admission, amounts, cluster, job, node, planGang, queue, snapshot } from "../plan-world.ts";
import { Draw, randomSnapshot } from "../random-world.ts";

const WORLDS = 1_500;
const UNBOUNDED = { admissionsMax: Number.POSITIVE_INFINITY };

/** The members with which the only gang of a world starts, and whether others are preempted for it. */
function startsWith(from: PlanSnapshot) {
  const plan = stateOf(from).round(AT.nowMs, UNBOUNDED);
  const preemptions = plan.preemptions.filter(({ reservation }) => reservation === undefined);
  const { admissions } = plan;
  const [planned] = [...admissions, ...preemptions.map((one) => one.planned)];
  return planned === undefined ? null : { members: planned.members, preempts: preemptions.length > 0 };
}

/** The world of a gang that starts with exactly so many of its members. */
function withExactly(from: PlanSnapshot, count: number): PlanSnapshot {
  const waiting = from.waiting.map((gang) => {
    const roles = gang.ask.roles.map((role) => ({ ...role, replicas: count, first: count }));
    return { ...gang, askHash: `${gang.askHash} ${count}`, ask: { ...gang.ask, roles } };
  });
  return { ...from, waiting };
}

test("a gang of one role starts with the most members for which there are quota and room", () => {
  let partial = 0;
  for (let seed = 1; seed <= WORLDS; seed++) {
    const all = randomSnapshot(seed, { jobs: 1, nodes: 5, alike: true });
    const [gang] = all.waiting;
    if (gang === undefined || gang.ask.service || gang.ask.roles.length !== 1) continue;
    const draw = new Draw(seed);
    const [role] = gang.ask.roles as [Ask["roles"][number]];
    const replicas = 2 + draw.upTo(7);
    const roles = [{ ...role, replicas, first: 1 + draw.upTo(replicas - 2) }];
    const from = { ...all, waiting: [{ ...gang, askHash: "part", ask: { ...gang.ask, roles } }], admitted: [] };
    const counts = Array.from({ length: replicas - roles[0]!.first + 1 }, (_, at) => replicas - at);
    const most = counts.find((count) => startsWith(withExactly(from, count)) !== null) ?? 0;
    const found = startsWith(from);
    assert.equal(found === null ? 0 : memberCount(found.members), most, `seed ${seed}`);
    if (most > roles[0]!.first && most < replicas) partial += 1;
  }
  assert.ok(partial > 10, `${partial} gangs started with some members`);
});

test("a gang that cannot have all its members preempts for as many as it can have", () => {
  const policy = { ...DEFAULT_POLICY, withinQueue: "LOWER_PRIORITY" as const };
  const live = { cluster: "east", members: { Worker: 1 }, flavors: { "nvidia.com/gpu": "gpu/h100" } };
  const worker = { replicas: 1, gpus: 10 };
  const running = job({ name: "b", roles: { Worker: worker }, admissions: [admission({ ...live })] });
  const waiting = { name: "a", priority: 1, roles: { Worker: { replicas: 30, gpus: 1 } }, minAvailable: 10 };
  const room = { nodes: [node("big", "h100", { allocatable: amounts(64), free: amounts(54) })] };
  const from = snapshot({
    waiting: [planGang(job(waiting))],
    admitted: [planGang(running)],
    queues: [queue("q", { h100: 20 }, { policy, used: { "gpu/h100": 10 } })],
    clusters: [cluster("east", room)],
  });
  assert.deepEqual(startsWith(from), { members: { Worker: 20 }, preempts: true });
});

const shape = shapeOf("ask", {
  roles: [
    { role: "Chief", replicas: 1, first: 1, podClass: 0 },
    { role: "PS", replicas: 6, first: 2, podClass: 0 },
    { role: "Worker", replicas: 12, first: 4, podClass: 0 },
  ],
  podClasses: [{ requests: {}, scheduling: {} }],
  placement: { clusters: [], clusterSelector: {}, gpuModels: [] },
  elastic: false,
  service: false,
});
const fewest = { Chief: 1, PS: 2, Worker: 4 };

const parts: Record<string, { readonly room: number; readonly members: Record<string, number> }> = {
  "room for the fewest": { room: 7, members: fewest },
  "room for half of the others": { room: 13, members: { Chief: 1, PS: 4, Worker: 8 } },
  "room for all but one": { room: 18, members: { Chief: 1, PS: 6, Worker: 12 - 1 } },
};
for (const [name, { room, members }] of Object.entries(parts)) {
  test(`each replica type leaves out the same portion: ${name}`, () => {
    const found = largestPart(shape, shape.fewest!, (part) => (part.podCount <= room ? part : null));
    assert.deepEqual(found.members, members);
  });
}

const named: Record<string, { readonly members: Record<string, number>; readonly starts: boolean }> = {
  all: { members: { Chief: 1, PS: 6, Worker: 12 }, starts: true },
  fewest: { members: fewest, starts: true },
  "some between": { members: { Chief: 1, PS: 3, Worker: 9 }, starts: true },
  "fewer of one": { members: { Chief: 1, PS: 1, Worker: 12 }, starts: false },
  "more of one": { members: { Chief: 1, PS: 7, Worker: 12 }, starts: false },
  "another replica type": { members: { ...fewest, Evaluator: 1 }, starts: false },
};
for (const [name, { members, starts }] of Object.entries(named)) {
  test(`a nomination names members that a gang ${starts ? "may" : "may not"} start with: ${name}`, () => {
    assert.deepEqual(partWith(shape, members)?.members ?? null, starts ? members : null);
    if (starts) assert.equal(partWith(shape, members)?.podCount, sizedAsk(shape.ask, members).podCount);
  });
}
