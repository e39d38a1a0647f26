/** `gangway queue tree`: the trees of queues, with what each queue uses, borrows and lends. */
import { create } from "@bufbuild/protobuf";
import { ListQueuesResponseSchema, type Queue, QueueService } from "../../gen/gangway/v1/queue_service_pb.ts";
import { printResponse } from "../output/print.ts";
import type { Column } from "../output/table.ts";
import { examples, onRun, type Registrar } from "../run/run-command.ts";
import { CommandFailure, EXIT } from "../shell/exit.ts";
import { type OutputFormat, outputOption } from "../shell/options.ts";
import { timeText } from "./quota/grants.ts";

export function registerTree(registrar: Registrar): void {
  const command = registrar.program
    .command("tree")
    .summary("Show the trees of queues, and what each queue uses, borrows and lends")
    .description(
      "Show the trees of queues. For each flavor: how much the queue uses of its own quota, also through the queues " +
        "below it; how much it has borrowed from other queues, and how much others have borrowed from it; and how " +
        "much its own jobs hold in lost clusters. A child counts with its use above its guarantee (quota minus " +
        "lending limit). So the root shows less than its tree uses where queues may not lend all. The share is 1000 " +
        "times the borrowed part of the lendable quota of the tree, divided by the weight.",
    )
    .argument("[name]", "only this queue and the queues below it")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway queue tree", "gangway queue tree nlp"));
  onRun<{ readonly output: OutputFormat }>(registrar, command, async (run, [name], { output }) => {
    const { queues } = await run.client.call(QueueService.method.listQueues, {});
    const shown = name === undefined ? asTree(queues) : branchOf(name, asTree(queues));
    const message = create(ListQueuesResponseSchema, { queues: shown.map(({ queue }) => queue) });
    const names = shown.map(({ queue }) => `queue/${queue.name}`);
    const table = { columns: COLUMNS, rows: shown.map(rowOf), names, none: "no queues" };
    printResponse(run, output, { ...table, schema: ListQueuesResponseSchema, message });
    return EXIT.ok;
  });
}

/** A queue and its distance to the first queue that is shown of its tree. */
export type QueueInTree = { readonly queue: Queue; readonly depth: number };

/** Sorts each queue after its parent. Queues of one parent keep their order. */
export function asTree(queues: readonly Queue[]): readonly QueueInTree[] {
  const names = new Set(queues.map(({ name }) => name));
  const childrenOf = (parent: string, depth: number): readonly QueueInTree[] =>
    queues
      .filter((queue) => (names.has(queue.parent) ? queue.parent : "") === parent)
      .flatMap((queue) => [{ queue, depth }, ...childrenOf(queue.name, depth + 1)]);
  return childrenOf("", 0);
}

/** By queue: the admitted jobs of it and of all queues below it, which its limit of running jobs counts. */
export function admittedInBranches(queues: readonly Queue[]): ReadonlyMap<string, number> {
  const tree = asTree(queues);
  const sums = new Map<string, number>();
  for (const { queue } of tree.toReversed()) {
    const branch = (sums.get(queue.name) ?? 0) + (queue.use?.admittedJobs ?? 0);
    sums.set(queue.name, branch);
    sums.set(queue.parent, (sums.get(queue.parent) ?? 0) + branch);
  }
  return sums;
}

/** The name with lines that show how deep it is: `└── nlp-dev`. */
export function nameInTree(name: string, depth: number): string {
  return depth === 0 ? name : `└${"──".repeat(depth - 1)} ${name}`;
}

/** A queue and those below it. */
function branchOf(name: string, tree: readonly QueueInTree[]): readonly QueueInTree[] {
  const at = tree.findIndex(({ queue }) => queue.name === name);
  const top = tree[at];
  if (top === undefined) throw new CommandFailure(EXIT.refused, [`error: queue ${name} does not exist`]);
  const after = tree.slice(at + 1);
  const end = after.findIndex(({ depth }) => depth <= top.depth);
  const below = end < 0 ? after : after.slice(0, end);
  return [top, ...below].map(({ queue, depth }) => ({ queue, depth: depth - top.depth }));
}

const COLUMNS: readonly Column[] = [
  { title: "NAME" },
  { title: "WEIGHT", align: "right" },
  { title: "SHARE", align: "right" },
  { title: "USED/QUOTA" },
];

function rowOf({ queue, depth }: QueueInTree): readonly string[] {
  const { name, weight = 1, use } = queue;
  const share = use?.share ?? 0;
  return [
    nameInTree(name, depth),
    String(weight),
    Number.isFinite(share) ? String(share) : "infinite",
    flavorsOf(queue).join(", "),
  ];
}

/** Of the use of a flavor, in the order in which they are shown. */
const PARTS = ["borrowed", "lent", "lost"] as const;

/** `gpu/h100 6/4 (2 borrowed)`, for each flavor of which the queue has a quota or uses something. */
function flavorsOf({ quotas, use }: Queue): readonly string[] {
  const own = new Map(quotas.map((quota) => [quota.flavor, quota]));
  const flavors = new Set([...own.keys(), ...Object.keys(use?.used ?? {}).sort()]);
  return [...flavors].map((flavor) => {
    const { nominal = 0n, granted = 0n, grantedUntil } = own.get(flavor) ?? {};
    const parts = PARTS.map((part) => [use?.[part][flavor] ?? 0n, part] as const).filter(([amount]) => amount > 0n);
    const more = [
      ...(grantedUntil === undefined ? [] : [`${granted} granted until ${timeText({ until: grantedUntil })}`]),
      ...parts.map(([amount, part]) => `${amount} ${part}`),
    ];
    const text = `${flavor} ${use?.used[flavor] ?? 0n}/${nominal + granted}`;
    return more.length === 0 ? text : `${text} (${more.join(", ")})`;
  });
}
