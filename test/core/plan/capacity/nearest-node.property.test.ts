import assert from "node:assert/strict";
import { test } from "node:test";
import { FitClasses } from "../../../../src/core/plan/capacity/fit-classes.ts";
import { FreeCapacity } from "../../../../src/core/plan/capacity/free-capacity.ts";
import { nearestNode } from "../../../../src/core/plan/capacity/nearest-node.ts";
import { podClassOf } from "../../../../src/core/plan/model/ask.ts";
import type { PodObstacle } from "../../../../src/core/plan/model/blocked-pod.ts";
import type { NodeCapacity } from "../../../../src/core/plan/model/snapshot.ts";
import { nodeAllows, nodeObstacles, readyNode } from "../../../../src/core/pods/node-match.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";
import { Draw, MODELS, randomNode } from "../random-world.ts";

const WORLDS = 500;
const RULES: readonly JsonObject[] = [
  {},
  { nodeSelector: { zone: "b" } },
  { nodeSelector: { zone: "a", gpu: "h100" } },
];

function sizeOf(obstacles: readonly PodObstacle[]): number {
  return obstacles.reduce((sum, one) => sum + (one.kind === "resource" ? (one.need - one.available) / one.need : 1), 0);
}

test("the nearest node has the fewest obstacles of all that count, and so many nodes have the same ones", () => {
  let found = 0;
  for (let seed = 1; seed <= WORLDS; seed++) {
    const draw = new Draw(seed);
    const nodes = draw.list(1 + draw.upTo(6), (at) => randomNode(draw, `n${draw.upTo(9)}-${at}`));
    const demands = draw.chance(0.5) ? { gpu: draw.of(MODELS) } : {};
    const requests = { "nvidia.com/gpu": draw.upTo(10), cpu: draw.upTo(20) };
    const labels = requests["nvidia.com/gpu"] > 0 ? demands : {};
    const podClass = podClassOf({ ...draw.of(RULES), containers: [{ resources: { requests } }] });
    const freeNow = new FreeCapacity(new FitClasses());
    for (const node of nodes) freeNow.setNode(node.name, node);
    freeNow.reset();
    const fit = freeNow.fits.of(podClass, { "nvidia.com/gpu": demands });
    const mayTake = draw.chance(0.5);
    const ofFlavor = { nodeSelector: labels };
    const obstaclesOf = ({ free, allocatable, ...facts }: NodeCapacity): readonly PodObstacle[] => {
      const lacking = Object.entries(podClass.requests).flatMap(([resource, need]): PodObstacle[] => {
        const available = Math.max(0, free[resource] ?? 0);
        const all = { available, allocatable: allocatable[resource] ?? 0 };
        return need <= available ? [] : [{ kind: "resource", resource, need, ...all }];
      });
      const demanded = nodeObstacles(ofFlavor, { ...facts, taints: [], unschedulable: false });
      const named = new Set(demanded.map((one) => JSON.stringify(one)));
      const own = nodeObstacles(podClass.scheduling, facts).filter((one) => !named.has(JSON.stringify(one)));
      return [...lacking, ...demanded, ...own];
    };
    const couldTake = (node: NodeCapacity) =>
      nodeAllows(podClass.scheduling, readyNode(node)) &&
      nodeAllows(ofFlavor, { ...node, taints: [], unschedulable: false }) &&
      Object.entries(podClass.requests).every(([name, need]) => need <= (node.allocatable[name] ?? 0));
    const counted = nodes.filter((node) => !mayTake || couldTake(node));
    const nearest = nearestNode({ free: freeNow, fit, mayTake }, {});
    if (counted.length === 0) {
      assert.deepEqual(nearest, { node: null, nodes: 0, obstacles: [] }, `seed ${seed}`);
      continue;
    }
    found += 1;
    const texts = (obstacles: readonly PodObstacle[]) => obstacles.map((one) => JSON.stringify(one)).sort();
    const named = counted.find(({ name }) => name === nearest.node) as NodeCapacity;
    assert.deepEqual(texts(nearest.obstacles), texts(obstaclesOf(named)), `seed ${seed}`);
    for (const node of counted) {
      const own = obstaclesOf(node);
      assert.ok(own.length >= nearest.obstacles.length, `seed ${seed}: ${node.name} has fewer obstacles`);
      if (own.length > nearest.obstacles.length) continue;
      const difference = sizeOf(own) - sizeOf(nearest.obstacles);
      assert.ok(difference > -1e-9, `seed ${seed}: ${node.name} lacks less`);
      if (difference < 1e-12) assert.ok(node.name >= named.name, `seed ${seed}: ${node.name} comes first`);
    }
    const alike = counted.filter((node) => String(texts(obstaclesOf(node))) === String(texts(nearest.obstacles)));
    assert.equal(nearest.nodes, alike.length, `seed ${seed}`);
  }
  assert.ok(found > WORLDS / 2, `${found}`);
});
