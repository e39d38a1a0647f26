/** Nodes as rows of a table. */

import { clusterName } from "../../core/job/cluster-text.ts";
import {
  type GetCapacityResponse,
  GetCapacityResponseSchema,
  type Node,
  type NodeHolder,
} from "../../gen/gangway/v1/cluster_service_pb.ts";
import { ageCell, MARK_TEXT } from "../output/job-text.ts";
import { printResponse, tableWidth } from "../output/print.ts";
import type { Column } from "../output/table.ts";
import type { Run } from "../run/run-command.ts";
import { isTable, type OutputFormat } from "../shell/options.ts";
import { gpusOf } from "./list-nodes.ts";

/** The facts beside a node that its cells need. */
type Shown = {
  readonly nowMs: number;
  /** The namespace whose jobs are named without it. */
  readonly namespace: string;
  readonly cordonedClusters: ReadonlySet<string>;
  readonly simulated: ReadonlySet<string>;
  /** True: for a terminal, whose lines are short. */
  readonly marks: boolean;
};

type NodeColumn = Column & { readonly cell: (node: Node, shown: Shown) => string; readonly wide?: true };

const NAME: NodeColumn = { title: "NAME", cell: ({ name }) => name };
const CLUSTER: NodeColumn = { title: "CLUSTER", cell: ({ cluster }, shown) => clusterCell(cluster, shown) };
const FLAVOR: NodeColumn = { title: "FLAVOR", drop: 2, cell: ({ flavors }) => flavors.join(",") };
const HELD: NodeColumn = { title: "HELD", align: "right", cell: (node) => String(gpusOf(node)?.held ?? "") };
const FREE: NodeColumn = { title: "FREE", align: "right", cell: (node) => String(gpusOf(node)?.free ?? "") };
const GPUS: NodeColumn = { title: "GPUS", align: "right", drop: 1, cell: (node) => String(gpusOf(node)?.all ?? "") };
const STATE: NodeColumn = { title: "STATE", cell: (node, shown) => statesText(node, shown).join(", ") };
const JOBS: NodeColumn = {
  title: "JOBS",
  cell: (node, { namespace }) => holderTexts(node, namespace).join(", "),
};

const COLUMNS: readonly NodeColumn[] = [
  NAME,
  CLUSTER,
  FLAVOR,
  HELD,
  FREE,
  GPUS,
  STATE,
  { title: "SINCE", align: "right", wide: true, cell: ({ since }, { nowMs }) => ageCell(since, nowMs) },
  { title: "TAINTS", wide: true, cell: ({ taints }) => taints.join(",") },
  { title: "LABELS", wide: true, cell: ({ labels }) => labelsText(labels).join(",") },
  { title: "MESSAGE", wide: true, cell: ({ message }) => message },
  JOBS,
];

/** The part of its GPUs that is held. */
function partCell(node: Node): string {
  const gpus = gpusOf(node);
  return gpus === null || gpus.all === 0n ? "" : `${Math.round((Number(gpus.held) / Number(gpus.all)) * 100)}%`;
}

const TOP_COLUMNS: readonly NodeColumn[] = [
  NAME,
  CLUSTER,
  FLAVOR,
  HELD,
  { title: "HELD%", align: "right", cell: partCell },
  FREE,
  GPUS,
  { title: "PODS", align: "right", drop: 3, cell: ({ holders }) => String(podsOf(holders)) },
  STATE,
];

function podsOf(holders: readonly NodeHolder[]): number {
  return holders.reduce((sum, { pods }) => sum + pods, 0);
}

/** `h100-east*` in a terminal, else `h100-east (simulated)`. */
function clusterCell(cluster: string, { simulated, marks }: Pick<Shown, "simulated" | "marks">): string {
  const isSimulated = simulated.has(cluster);
  return marks ? `${cluster}${isSimulated ? "*" : ""}` : clusterName({ name: cluster, simulated: isSimulated });
}

/** `ready`, or why the node takes no pods. */
export function statesText(node: Node, { cordonedClusters }: Pick<Shown, "cordonedClusters">): readonly string[] {
  const { ready, cordoned, leaving, reason, cluster } = node;
  return [
    ready ? "ready" : `not ready${reason === "" || reason === "NotReady" ? "" : ` (${reason})`}`,
    ...(cordoned ? ["cordoned"] : []),
    ...(leaving ? ["leaving"] : []),
    ...(cordonedClusters.has(cluster) ? ["cluster cordoned"] : []),
  ];
}

/** The name of a holder: `gpt`, or `nlp/gpt` in another namespace than the run's. */
export function holderName({ namespace, name, uid }: NodeHolder, ownNamespace: string): string {
  if (name !== "") return namespace === ownNamespace ? name : `${namespace}/${name}`;
  return uid === "" ? "another job" : `a job without a record (${uid})`;
}

/** `gpt 4`: the holders of a node with their GPUs, those that may not be named as one. */
function holderTexts({ holders, otherGpus }: Node, namespace: string): readonly string[] {
  const sums = new Map<string, bigint>();
  for (const holder of holders) {
    const name = holderName(holder, namespace);
    sums.set(name, (sums.get(name) ?? 0n) + holder.gpus);
  }
  if (otherGpus > 0n) sums.set("other pods", otherGpus);
  return [...sums].map(([name, gpus]) => `${name} ${gpus}`);
}

export function labelsText(labels: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort();
}

/** What an answer says beside its nodes. */
export function shownOf(run: Run, { clusters }: GetCapacityResponse, output: OutputFormat): Shown {
  const namesOf = (of: "cordoned" | "simulated") => new Set(clusters.filter((one) => one[of]).map(({ name }) => name));
  return {
    nowMs: run.deps.clock.nowMs(),
    namespace: run.namespace,
    cordonedClusters: namesOf("cordoned"),
    simulated: namesOf("simulated"),
    marks: tableWidth(run, output) !== null,
  };
}

/** Prints nodes as a table, or the answer in another format. */
export function printNodes(
  run: Run,
  answer: GetCapacityResponse,
  { output, isTop = false }: { readonly output: OutputFormat; readonly isTop?: boolean },
): void {
  const shown = shownOf(run, answer, output);
  const columns = (isTop ? TOP_COLUMNS : COLUMNS).filter(({ wide }) => wide !== true || output === "wide");
  const { nodes } = answer;
  printResponse(run, output, {
    schema: GetCapacityResponseSchema,
    message: answer,
    names: nodes.map(({ name }) => `node/${name}`),
    columns,
    rows: nodes.map((node) => columns.map(({ cell }) => cell(node, shown))),
    none: "no nodes",
  });
  const hasMarks = shown.marks && nodes.some(({ cluster }) => shown.simulated.has(cluster));
  if (isTable(output) && hasMarks) run.deps.stderr(`${MARK_TEXT}\n`);
}
