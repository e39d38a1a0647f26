import type { Resources } from "../../../../src/core/pods/resources.ts";
import { pick, seededRandom } from "../../../support/random.ts";
import { GPU, nodeResources, type Trace, type TraceTask } from "./trace.ts";

export type PackNode = {
  readonly name: string;
  readonly model: string;
  /** Null: the world has no racks. */
  readonly rack: string | null;
  readonly resources: Resources;
};

/** Pods that are placed together, all alike. */
export type PackGang = {
  readonly pods: number;
  /** GPUs of each pod. */
  readonly gpus: number;
  readonly requests: Resources;
  readonly models: readonly string[];
  readonly needsRack: boolean;
  readonly seconds: number;
};

export type PackWorld = { readonly nodes: readonly PackNode[]; readonly gangs: readonly PackGang[] };

const NODES_PER_RACK = 16;
/** The nodes of worlds that have no nodes of the trace. */
const EQUAL_NODES = 128;
const GPUS_PER_NODE = 8;
/** What a pod of such worlds requests for each GPU, a little less than the node has for it. */
const PER_GPU: Resources = { cpu: 12_000, memory: 100 * 2 ** 30 * 1000 };
const OF_NODE: Resources = { cpu: 128_000, memory: 1024 * 2 ** 30 * 1000 };
const SIZES = [1, 2, 4, 8];
/** The part of the GPU time that needs one rack. */
const RACK_PART = 0.9;
/** How many pods a gang has. */
const MEMBERS = [1, 2, 4];

/** The nodes of a trace and tasks that request as many GPUs, half of them for tasks of several if that is wanted. */
export function traceWorld({ nodes, tasks }: Trace, seed: number, { half }: { readonly half: boolean }): PackWorld {
  const random = seededRandom(seed);
  const wanted = nodes.reduce((sum, { resources }) => sum + (resources[GPU] ?? 0) / 1000, 0);
  const several = tasks.filter(({ gpus }) => gpus > 1);
  const others = tasks.filter(({ gpus }) => gpus <= 1);
  const gangs: PackGang[] = [];
  for (let [sum, ofSeveral] = [0, 0]; sum < wanted; ) {
    const task = pick(random, !half ? tasks : ofSeveral * 2 < sum ? several : others);
    gangs.push(gangOf(task));
    sum += task.gpus;
    if (task.gpus > 1) ofSeveral += task.gpus;
  }
  return { nodes: nodes.map((node) => ({ ...node, rack: null })), gangs };
}

/** Equal nodes, and pods of 1, 2, 4 or 8 GPUs, each size as often, until they request as many GPUs as there are. */
export function equalWorld(seed: number): PackWorld {
  const random = seededRandom(seed);
  const gangs: PackGang[] = [];
  for (let sum = 0; sum < EQUAL_NODES * GPUS_PER_NODE; ) {
    const gpus = pick(random, SIZES);
    gangs.push(equalGang({ gpus, pods: 1, seconds: 1 }));
    sum += gpus;
  }
  return { nodes: equalNodes({ racks: false }), gangs };
}

/** Equal nodes, and gangs that run for as long as tasks of a trace. */
export function churnWorld(
  { tasks }: Trace,
  seed: number,
  { gangs: count, racks }: { readonly gangs: number; readonly racks: boolean },
): PackWorld {
  const random = seededRandom(seed);
  let [all, inRack] = [0, 0];
  const gangs = Array.from({ length: count }, () => {
    const { seconds } = pick(random, tasks);
    const made = equalGang({ gpus: pick(random, SIZES), pods: pick(random, MEMBERS), seconds });
    const time = made.pods * made.gpus * seconds;
    const needsRack = racks && inRack + time <= RACK_PART * (all + time);
    all += time;
    if (needsRack) inRack += time;
    return { ...made, needsRack };
  });
  return { nodes: equalNodes({ racks }), gangs };
}

function equalNodes({ racks }: { readonly racks: boolean }): readonly PackNode[] {
  const resources = nodeResources({ [GPU]: GPUS_PER_NODE * 1000, ...OF_NODE });
  return Array.from({ length: EQUAL_NODES }, (_, at) => {
    const rack = racks ? `rack-${Math.floor(at / NODES_PER_RACK)}` : null;
    return { name: `node-${String(at).padStart(4, "0")}`, model: "gpu", rack, resources };
  });
}

function gangOf({ gpus, requests, models, seconds }: TraceTask): PackGang {
  return { pods: 1, gpus, requests, models, needsRack: false, seconds };
}

function equalGang(of: { readonly gpus: number; readonly pods: number; readonly seconds: number }): PackGang {
  const amounts = Object.entries(PER_GPU).map(([name, amount]) => [name, amount * of.gpus]);
  const requests = { [GPU]: of.gpus * 1000, ...Object.fromEntries(amounts), pods: 1000 };
  return { ...of, requests, models: [], needsRack: false };
}
