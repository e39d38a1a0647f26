/** The nodes and tasks of a real cluster for `npm run bench -- plan --trace DIR`. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { FleetState } from "../../../src/core/plan/fleet-state.ts";
import type { PlanGang } from "../../../src/core/plan/model/plan-gang.ts";
import type { NodeCapacity, PlanSnapshot } from "../../../src/core/plan/model/snapshot.ts";
import { changesOf } from "../../support/load-snapshot.ts";

const GPU = "nvidia.com/gpu";
const PODS_PER_NODE = 110;
const MIB = 2 ** 20 * 1000;
/** The tasks are repeated until they request so many times the GPUs of the nodes. */
const DEMAND = 1.5;

type Row = Readonly<Record<string, string>>;

/** Places the tasks of a trace, repeated until the nodes are full, and prints the part of the GPUs that they get. */
export function benchTrace(dir: string, print: (line: string) => void): number {
  const nodes = readCsv(dir, "node").map(nodeOf);
  const tasks = readCsv(dir, "pod");
  const all = nodes.reduce((sum, { allocatable }) => sum + (allocatable[GPU] ?? 0) / 1000, 0);
  const waiting: PlanGang[] = [];
  let wanted = 0;
  for (let at = 0; wanted < all * DEMAND; at++) {
    const gang = gangOfTask(tasks[at % tasks.length] ?? {}, at);
    waiting.push(gang);
    wanted += (gang.ask.podClasses[0]?.requests[GPU] ?? 0) / 1000;
  }
  const state = new FleetState();
  for (const change of changesOf(snapshotOf(nodes, waiting))) state.apply(change);
  const { admissions } = state.round(0, { admissionsMax: Number.POSITIVE_INFINITY });
  const units = admissions.flatMap(({ allocations }) => allocations.map(({ amount }) => amount));
  const part = units.reduce((sum, amount) => sum + amount, 0) / all;
  print(`${nodes.length} nodes with ${all} GPUs, ${waiting.length} tasks that request ${wanted}`);
  print(`allocation reached: ${(part * 100).toFixed(2)} % of the GPUs, by ${admissions.length} tasks`);
  return part;
}

/** The first file of a folder whose name has a word. */
function readCsv(dir: string, word: string): readonly Row[] {
  const name = readdirSync(dir).find((file) => file.includes(`${word}_list`) && file.endsWith(".csv"));
  if (name === undefined) throw new Error(`${dir} has no file *${word}_list*.csv`);
  const [head = "", ...lines] = readFileSync(join(dir, name), "utf8").trim().split("\n");
  const columns = head.split(",");
  return lines.map((line) => {
    const values = line.split(",");
    return Object.fromEntries(columns.map((column, at) => [column, values[at] ?? ""]));
  });
}

function nodeOf(row: Row): NodeCapacity {
  const resources = {
    [GPU]: Number(row["gpu"]) * 1000,
    cpu: Number(row["cpu_milli"]),
    memory: Number(row["memory_mib"]) * MIB,
    pods: PODS_PER_NODE * 1000,
  };
  const labels = { gpu: row["model"] ?? "" };
  return { name: row["sn"] ?? "", labels, taints: [], unschedulable: false, allocatable: resources, free: resources };
}

/** A task is a gang of one pod. It gets whole GPUs, also if it requests a share of one. */
function gangOfTask(row: Row, at: number): PlanGang {
  const requests = {
    [GPU]: Number(row["num_gpu"]) * 1000,
    cpu: Number(row["cpu_milli"]),
    memory: Number(row["memory_mib"]) * MIB,
    pods: 1000,
  };
  const requested = Object.fromEntries(Object.entries(requests).filter(([, amount]) => amount > 0));
  const gpuModels = (row["gpu_spec"] ?? "").split("|").filter((model) => model !== "");
  const ask: PlanGang["ask"] = {
    roles: [{ role: "Worker", replicas: 1, first: 1, podClass: 0 }],
    podClasses: [{ requests: requested, scheduling: {} }],
    placement: { clusters: [], clusterSelector: {}, gpuModels },
    elastic: false,
    service: false,
  };
  const names = { namespace: "trace", name: row["name"] ?? "", project: "trace", queue: "trace" };
  const facts = { suspended: false, awaitsResult: null, backoff: null, waitsSinceMs: at, waits: true, ends: false };
  const counters = { version: 1, generation: 1, lastAdmission: 0, admissions: [], priority: 0, createTimeMs: at };
  return { uid: `task-${at}`, ...names, ...facts, ...counters, askHash: JSON.stringify(ask), ask };
}

function snapshotOf(nodes: readonly NodeCapacity[], waiting: readonly PlanGang[]): PlanSnapshot {
  const models = [...new Set(nodes.map(({ labels }) => labels["gpu"] ?? ""))];
  const nominal = Number.MAX_SAFE_INTEGER;
  const quotas = models.map((model) => ({ flavor: `gpu/${model}`, resource: GPU, nominal }));
  const flavors = models.map((model) => ({ name: `gpu/${model}`, resource: GPU, nodeLabels: { gpu: model } }));
  const facts = { name: "trace", labels: {}, flavors, cordoned: false, reachable: true, admissionCounter: 0 };
  return {
    quotaEpoch: 1,
    waiting,
    admitted: [],
    queues: [{ name: "trace", parent: null, strategy: "BEST_EFFORT_FIFO", quotas }],
    pools: models.map((model) => {
      return { pool: `gpu/${model}`, quota: null, projectDefault: null, namespaceDefault: null };
    }),
    sums: [],
    callers: [],
    clusters: [{ ...facts, capacity: { nodes, seen: [], unbound: [] } }],
  };
}
