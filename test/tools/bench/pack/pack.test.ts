import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pick, seededRandom } from "../../../support/random.ts";
import { RealNodes } from "./carry-out.ts";
import { churn } from "./churn.ts";
import { fill, gpusOf } from "./fill.ts";
import { benchPack } from "./pack.ts";
import { carriedOut, packerOf, RULES } from "./rules.ts";
import { GPU, readTrace } from "./trace.ts";
import { churnWorld, equalWorld, traceWorld } from "./worlds.ts";

/** A small trace: nodes of two models, and tasks. Some need one model, one shares a GPU, and some need no GPU. */
function traceFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "gangway-trace-"));
  const random = seededRandom(5);
  const nodes = Array.from({ length: 40 }, (_, at) => `n-${at},96000,400000,8,${at % 2 === 0 ? "A" : "B"}`);
  const tasks = Array.from({ length: 200 }, (_, at) => {
    const gpus = pick(random, [0, 1, 1, 1, 2, 4, 8]);
    const spec = pick(random, ["", "", "A", "A|B"]);
    const seconds = 10 + Math.floor(random() * 1000);
    const size = [4000 + 8000 * gpus, 4000 + 30_000 * gpus, gpus, gpus === 0 ? 0 : 1000];
    return [`t-${at}`, ...size, spec, "LS", "Running", at, at + seconds, at].join();
  });
  const shared = "t-shared,1000,1000,1,500,,LS,Running,0,1,0";
  writeFileSync(join(folder, "x_node_list.csv"), ["sn,cpu_milli,memory_mib,gpu,model", ...nodes].join("\n"));
  const head =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time";
  writeFileSync(join(folder, "x_pod_list.csv"), [head, shared, ...tasks].join("\n"));
  return folder;
}

test("the bench of packing prints each rule, and judges every goal of each column", (t) => {
  const dir = traceFolder();
  t.after(() => rmSync(dir, { recursive: true }));
  const lines: string[] = [];
  benchPack({ dir, seeds: 1, churn: true, racks: true, gangs: 400 }, (line) => lines.push(line));
  for (const row of [...RULES, "carried out"]) {
    const [line = ""] = lines.filter((one) => one.startsWith(row));
    assert.match(line.slice(14), /^(\d+\.\d +){5}$/, line);
  }
  const met = (goal: string) => lines.filter((line) => line.startsWith("met: ") && line.includes(goal)).length;
  assert.deepEqual([met("below best fit"), met("carried out within")], [5, 5], lines.join("\n"));
  assert.ok(
    lines.some((line) => / racks: above ties by name by [1-9]/.test(line)),
    lines.join("\n"),
  );
  const judged = lines.filter((line) => /^(met|MISSED): /.test(line)).map((line) => line.split(" ")[1]);
  assert.deepEqual([...new Set(judged)], ["trace:", "half:", "8-GPU:", "churn:", "racks:"]);
});

test("worlds are the same for one seed, request what their headings say, and use only whole GPUs", (t) => {
  const dir = traceFolder();
  t.after(() => rmSync(dir, { recursive: true }));
  const trace = readTrace(dir);
  assert.equal(trace.tasks.length, 200, "tasks that share a GPU are left out");
  const all = gpusOf(trace.nodes.map((node) => ({ ...node, rack: null })));
  for (const half of [false, true]) {
    const world = traceWorld(trace, 3, { half });
    assert.deepEqual(traceWorld(trace, 3, { half }), world);
    assert.notDeepEqual(traceWorld(trace, 4, { half }), world);
    const requested = world.gangs.reduce((sum, { gpus }) => sum + gpus, 0);
    assert.ok(requested >= all && requested < all + 8, `${requested} of ${all}`);
    const several = world.gangs.reduce((sum, { gpus }) => sum + (gpus > 1 ? gpus : 0), 0);
    if (half) assert.ok(Math.abs(several / requested - 0.5) < 0.03, `${several} of ${requested}`);
  }
  const equal = equalWorld(1).gangs.reduce((sum, { gpus }) => sum + gpus, 0);
  assert.ok(equal >= 128 * 8 && equal < 129 * 8, `${equal}`);
  const { gangs, nodes } = churnWorld(trace, 1, { gangs: 2000, racks: true });
  assert.deepEqual(
    [...Map.groupBy(nodes, ({ rack }) => rack).values()].map(({ length }) => length),
    Array(8).fill(16),
  );
  const timeOf = (of: typeof gangs) => of.reduce((sum, { pods, gpus, seconds }) => sum + pods * gpus * seconds, 0);
  const part = timeOf(gangs.filter(({ needsRack }) => needsRack)) / timeOf(gangs);
  assert.ok(Math.abs(part - 0.9) < 0.02, `${part} of the time needs a rack`);
});

test("no rule uses more than the nodes have, and a gang that needs a rack is in one", (t) => {
  const dir = traceFolder();
  t.after(() => rmSync(dir, { recursive: true }));
  const world = churnWorld(readTrace(dir), 2, { gangs: 150, racks: true });
  const rackOf = new Map(world.nodes.map(({ name, rack }) => [name, rack]));
  for (const make of [
    ...RULES.map((rule) => () => packerOf(rule, world.nodes, seededRandom(1))),
    () => carriedOut(world.nodes),
  ]) {
    const packer = make();
    const used = new Map<string, number>();
    const count = (nodes: readonly string[], gpus: number) => {
      for (const node of nodes) {
        used.set(node, (used.get(node) ?? 0) + gpus);
        assert.ok((used.get(node) ?? 0) <= 8, node);
      }
    };
    const watched: typeof packer = {
      place: (gang) => {
        const placed = packer.place(gang);
        if (placed !== null) {
          assert.equal(placed.nodes.length, gang.pods);
          if (gang.needsRack) assert.equal(new Set(placed.nodes.map((node) => rackOf.get(node))).size, 1);
          count(placed.nodes, gang.gpus);
        }
        return placed;
      },
      remove: (placed) => {
        count(placed.nodes, -placed.gang.gpus);
        packer.remove(placed);
      },
    };
    const percent = churn(watched, world);
    assert.ok(percent > 30 && percent <= 100, `${percent}`);
  }
});

test("with more asked for than there is, less than all is in use, and never less at a higher load", () => {
  const world = equalWorld(1);
  const filled = fill(packerOf("ours", world.nodes, seededRandom(1)), world);
  assert.equal(filled.length, 101);
  assert.ok(
    (filled[100] ?? 0) > 90 && filled.every((part, load) => part <= load + 1 && part >= (filled[load - 1] ?? 0)),
  );
});

test("a pod comes to its planned node while that takes it, else to another one that does, else to none", () => {
  const resources = { [GPU]: 2000, cpu: 8000, memory: 2 ** 40 };
  const nodes = new RealNodes(["a", "b", "c"].map((name) => ({ name, resources })));
  const pod = { [GPU]: 1000, cpu: 1000, memory: 1000 };
  const bind = (node: string, ...others: string[]) => nodes.bind(pod, { node, others });
  assert.deepEqual([bind("b", "a"), bind("b", "a"), bind("b", "a"), bind("b")], ["b", "b", "a", null]);
  nodes.free("b", pod);
  assert.equal(bind("b", "a"), "b");
});
