import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Resources } from "../../../../src/core/pods/resources.ts";

export const GPU = "nvidia.com/gpu";
const MIB = 2 ** 20 * 1000;
const PODS_PER_NODE = 110;
/** Thousandths of a GPU that a task gets of each of its devices. Others share devices, which no plan does. */
const WHOLE = "1000";

export type TraceNode = { readonly name: string; readonly model: string; readonly resources: Resources };

/** A task is one pod. */
export type TraceTask = {
  readonly gpus: number;
  readonly requests: Resources;
  /** The models that it accepts. Empty: any. */
  readonly models: readonly string[];
  readonly seconds: number;
};

export type Trace = { readonly nodes: readonly TraceNode[]; readonly tasks: readonly TraceTask[] };

/** Reads the nodes of a cluster, and its tasks of whole GPUs or of none in their order. */
export function readTrace(dir: string): Trace {
  const tasks = readCsv(dir, "pod").flatMap((row) => {
    const isWhole = row["gpu_milli"] === WHOLE || Number(row["num_gpu"]) === 0;
    return isWhole ? [taskOf(row)] : [];
  });
  return { nodes: readCsv(dir, "node").map(nodeOf), tasks };
}

type Row = Readonly<Record<string, string>>;

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

function nodeOf(row: Row): TraceNode {
  return { name: row["sn"] ?? "", model: row["model"] ?? "", resources: nodeResources(amountsOf(row, "gpu")) };
}

/** The amounts of a node in thousandths, with room for pods. */
export function nodeResources(amounts: Resources): Resources {
  return { ...amounts, pods: PODS_PER_NODE * 1000 };
}

function taskOf(row: Row): TraceTask {
  const amounts = { ...amountsOf(row, "num_gpu"), pods: 1000 };
  const models = (row["gpu_spec"] ?? "").split("|").filter((model) => model !== "");
  return {
    gpus: Number(row["num_gpu"]),
    requests: Object.fromEntries(Object.entries(amounts).filter(([, amount]) => amount > 0)),
    models,
    seconds: Math.max(1, Number(row["deletion_time"]) - Number(row["scheduled_time"])),
  };
}

function amountsOf(row: Row, gpus: string): Resources {
  return {
    [GPU]: Number(row[gpus]) * 1000,
    cpu: Number(row["cpu_milli"]),
    memory: Number(row["memory_mib"]) * MIB,
  };
}
