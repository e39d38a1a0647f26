/** One node in full: its labels and taints, what it has, and the pods that hold it. */
import { clusterName } from "../../core/job/cluster-text.ts";
import type { GetCapacityResponse, Node, NodeHolder } from "../../gen/gangway/v1/cluster_service_pb.ts";
import { compareText } from "../../runtime/compare-text.ts";
import { ageCell } from "../output/job-text.ts";
import { printPainted, printTable, tableWidth } from "../output/print.ts";
import { type Column, oneLine } from "../output/table.ts";
import { wrapText } from "../output/wrap.ts";
import type { Run } from "../run/run-command.ts";
import { gpusOf } from "./list-nodes.ts";
import { holderName, labelsText, shownOf, statesText } from "./node-table.ts";

const INDENT = " ".repeat(11);

export function describeNode(run: Run, node: Node, answer: GetCapacityResponse): void {
  const shown = shownOf(run, answer, "table");
  const gpus = gpusOf(node);
  const facts: readonly (readonly [string, readonly string[]])[] = [
    ["Node", [node.name]],
    ["Cluster", [clusterName({ name: node.cluster, simulated: shown.simulated.has(node.cluster) })]],
    ["State", [statesText(node, shown).join(", ")]],
    ["Since", node.since === undefined ? [] : [`${ageCell(node.since, shown.nowMs)} ago`]],
    ["Message", node.message === "" ? [] : [node.message]],
    ["Flavors", node.flavors.length === 0 ? ["none"] : node.flavors],
    ["GPUs", [gpus === null ? "none" : `${gpus.held} held, ${gpus.free} free, of ${gpus.all}`]],
    ["Labels", orNone(labelsText(node.labels))],
    ["Taints", orNone(node.taints)],
  ];
  const width = tableWidth(run, "table");
  printPainted(
    run,
    facts.flatMap(([title, texts]) => factLines(title, texts, width)),
  );
  printResources(run, node);
  printHolders(run, node);
}

function orNone(texts: readonly string[]): readonly string[] {
  return texts.length === 0 ? ["none"] : texts;
}

/** Each text has lines of its own, none wider than the terminal. */
function factLines(title: string, texts: readonly string[], width: number | null): readonly string[] {
  return texts.flatMap((text, at) => {
    const begin = at === 0 ? `${title}:`.padEnd(INDENT.length) : INDENT;
    const lines = wrapText(oneLine(text), { width: width === null ? null : width - INDENT.length, indent: "" });
    return lines.map((line, nth) => cut(`${nth === 0 ? begin : INDENT}${line}`, width));
  });
}

function cut(line: string, width: number | null): string {
  return width === null || line.length <= width ? line : `${line.slice(0, Math.max(0, width - 1))}…`;
}

function printResources(run: Run, { allocatable, held, free }: Node): void {
  const columns: readonly Column[] = [
    { title: "RESOURCE" },
    ...["HELD", "FREE", "ALLOCATABLE"].map((title) => ({ title, align: "right" }) as const),
  ];
  const rows = Object.keys(allocatable)
    .sort(compareText)
    .map((name) => [name, held[name] ?? "0", free[name] ?? "0", allocatable[name] ?? ""]);
  if (rows.length === 0) return;
  printPainted(run, [""]);
  printTable(run, columns, rows, "table");
}

const HOLDER_COLUMNS: readonly Column[] = [
  { title: "JOB" },
  { title: "QUEUE", drop: 2 },
  { title: "BY", drop: 3 },
  { title: "POD" },
  { title: "GPUS", align: "right" },
  { title: "REQUESTS", drop: 1 },
];

/** A row for each pod of a job; for a job that may not be seen, one for all its pods. */
function printHolders(run: Run, node: Node): void {
  const rows = node.holders.flatMap((holder) => holderRows(holder, node, run.namespace));
  if (node.otherGpus > 0n) rows.push(["other pods", "", "", "", String(node.otherGpus), ""]);
  printPainted(run, [""]);
  if (rows.length === 0) printPainted(run, ["No job holds this node."]);
  else printTable(run, HOLDER_COLUMNS, rows, "table");
}

function holderRows(holder: NodeHolder, { gpus }: Node, namespace: string): (readonly string[])[] {
  const { queue, createdBy, members, pods } = holder;
  const job = holderName(holder, namespace);
  if (members.length === 0)
    return [[job, queue, createdBy, `${pods} pod${pods === 1 ? "" : "s"}`, String(holder.gpus), ""]];
  return members.map(({ name, requests }) => {
    const own = gpus.reduce((sum, { resource }) => sum + BigInt(/^\d+$/.exec(requests[resource] ?? "")?.[0] ?? 0), 0n);
    // Each pod requests itself of the node's room for pods.
    const amounts = Object.entries(requests).flatMap(([of, amount]) => (of === "pods" ? [] : [`${amount} ${of}`]));
    return [job, queue, createdBy, name, String(own), amounts.join(", ")];
  });
}
