/** Serves quota admins: lists, shows, creates, changes and deletes queues. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { Option } from "commander";
import {
  type FlavorQuota,
  type FlavorQuotaSchema,
  ListQueuesResponseSchema,
  type Queue,
  QueueSchema,
  QueueService,
  QueueStopPolicy,
  QueueStrategy,
} from "../../gen/gangway/v1/queue_service_pb.ts";
import { EXIT, usageFailure } from "../exit.ts";
import { repeated } from "../options.ts";
import { printLines } from "../output/print.ts";
import type { Column } from "../output/table.ts";
import { examples, onRun, type Registrar, type Run } from "../run-command.ts";
import { registerGetObject, registerListObjects, registerObjectVerb } from "./named-object-commands.ts";

type QueueSettings = {
  quota?: readonly string[];
  strategy?: keyof typeof STRATEGIES;
  parent?: string;
  maxRunningJobs?: number;
};

const STRATEGIES = { strict: QueueStrategy.STRICT_FIFO, "best-effort": QueueStrategy.BEST_EFFORT_FIFO } as const;
const QUOTA = /^([^=]+)=([^=,]+):(\d{1,16})((?:,(?:borrow|lend)=\d{1,16})*)$/;
const QUOTA_HELP =
  "FLAVOR=RESOURCE:COUNT[,borrow=COUNT][,lend=COUNT], the amount of a flavor that the queue may use; " +
  "below a parent, also the most that it may borrow, and that others may borrow from it (default: no limit); " +
  "flavors are tried in the order given; may be repeated";

/** `gangway queue` and its commands. */
export function registerQueue(registrar: Registrar): void {
  const program = registrar.program
    .command("queue")
    .description("List, create, change, stop and delete queues, which share flavors among teams")
    .addHelpText(
      "after",
      examples(
        "gangway queue list",
        "gangway queue create nlp --quota gpu/h100=nvidia.com/gpu:8",
        "gangway queue create nlp-dev --parent nlp --quota gpu/h100=nvidia.com/gpu:4,borrow=2,lend=4",
      ),
    );
  const group = { ...registrar, program };
  const { listQueues, getQueue, deleteQueue } = QueueService.method;
  registerListObjects(group, {
    description: "List queues as a tree, with their use",
    plural: "queues",
    schema: ListQueuesResponseSchema,
    list: (run) => run.client.call(listQueues, {}),
    table: (_run, { queues }) => queuesTable(asTree(queues)),
  });
  registerGetObject(group, {
    example: "research",
    schema: QueueSchema,
    get: async (run, name) => (await run.client.call(getQueue, { name })).queue ?? create(QueueSchema, { name }),
    table: (_run, queue) => queuesTable([{ queue, depth: 0 }]),
  });
  registerCreate(group);
  registerUpdate(group);
  registerStop(group);
  registerResume(group);
  registerObjectVerb(group, "delete", {
    description: "Delete a queue that no job, namespace, pool, token or child queue uses",
    example: "nlp",
    done: "deleted",
    change: (run, name) => run.client.call(deleteQueue, { name }),
  });
}

function strategyOption(): Option {
  return new Option(
    "--strategy <strategy>",
    "strict: no gang passes one that cannot be admitted yet; best-effort: gangs that fit may (default: best-effort)",
  ).choices(Object.keys(STRATEGIES));
}

function maxRunningOption(): Option {
  const help = "the most jobs of the queue and those below it that are admitted at the same time; 0: any number";
  return new Option("--max-running-jobs <count>", help).argParser((text) => {
    if (!/^\d{1,9}$/.test(text)) throw usageFailure(`--max-running-jobs must be a number from 0 up, not ${text}`);
    return Number(text);
  });
}

function registerCreate(registrar: Registrar): void {
  const command = registrar.program
    .command("create")
    .description("Create a queue")
    .argument("<name>", "name of the queue")
    .option("--quota <quota>", QUOTA_HELP, repeated)
    .option("--parent <name>", "parent queue; queues below one parent lend to each other")
    .addOption(strategyOption())
    .addOption(maxRunningOption())
    .addHelpText(
      "after",
      examples(
        "gangway queue create nlp --quota gpu/h100=nvidia.com/gpu:8 --strategy strict",
        "gangway queue create nlp-dev --parent nlp --quota gpu/h100=nvidia.com/gpu:0,borrow=2",
      ),
    );
  onRun<QueueSettings>(registrar, command, async (run, [name = ""], settings) => {
    const strategy = settings.strategy === undefined ? QueueStrategy.UNSPECIFIED : STRATEGIES[settings.strategy];
    const { parent = "", maxRunningJobs = 0 } = settings;
    const queue = { name, parent, strategy, maxRunningJobs, quotas: (settings.quota ?? []).map(parseQuota) };
    await run.client.call(QueueService.method.createQueue, { queue });
    printLines(run, [`queue/${name} created`]);
    return EXIT.ok;
  });
}

function registerUpdate(registrar: Registrar): void {
  const command = registrar.program
    .command("update")
    .summary("Change a queue")
    .description("Change a queue. Omitted options change nothing. --quota replaces all its quotas.")
    .argument("<name>", "name of the queue")
    .option("--quota <quota>", QUOTA_HELP, repeated)
    .option("--parent <name>", 'parent queue; "" for none')
    .addOption(strategyOption())
    .addOption(maxRunningOption())
    .addHelpText(
      "after",
      examples(
        "gangway queue update nlp --quota gpu/h100=nvidia.com/gpu:16 --quota gpu/a100=nvidia.com/gpu:8",
        "gangway queue update nlp --strategy best-effort",
        "gangway queue update nlp-dev --parent research",
      ),
    );
  onRun<QueueSettings>(registrar, command, async (run, [name = ""], settings) => {
    const { quota, parent, maxRunningJobs } = settings;
    if (Object.keys(settings).length === 0) {
      throw usageFailure("there is nothing to change; give --quota, --parent, --strategy or --max-running-jobs");
    }
    const quotas = quota?.map(parseQuota);
    const { queue } = await run.client.call(QueueService.method.getQueue, { name });
    const strategy = settings.strategy === undefined ? queue?.strategy : STRATEGIES[settings.strategy];
    await run.client.call(QueueService.method.updateQueue, {
      queue: {
        name,
        parent: parent ?? queue?.parent ?? "",
        strategy: strategy ?? QueueStrategy.UNSPECIFIED,
        quotas: quotas ?? queue?.quotas ?? [],
        maxRunningJobs: maxRunningJobs ?? queue?.maxRunningJobs ?? 0,
        resourceVersion: queue?.resourceVersion ?? "",
      },
    });
    printLines(run, [`queue/${name} updated`]);
    return EXIT.ok;
  });
}

function registerStop(registrar: Registrar): void {
  const command = registrar.program
    .command("stop")
    .summary("Stop a queue and all queues below it")
    .description("Stop a queue and all queues below it: no job is admitted and no gang grows; jobs that run go on")
    .argument("<name>", "name of the queue")
    .option("--drain", "also undo the admissions: pods end within their grace time, and their jobs wait again")
    .addHelpText("after", examples("gangway queue stop research", "gangway queue stop research --drain"));
  onRun<{ drain?: boolean }>(registrar, command, async (run, [name = ""], { drain = false }) => {
    await setStopPolicy(run, name, drain ? QueueStopPolicy.HOLD_AND_DRAIN : QueueStopPolicy.HOLD);
    printLines(run, [`queue/${name} stopped`]);
    return EXIT.ok;
  });
}

function registerResume(registrar: Registrar): void {
  const command = registrar.program
    .command("resume")
    .description("Let a queue that was stopped admit jobs again")
    .argument("<name>", "name of the queue")
    .addHelpText("after", examples("gangway queue resume research"));
  onRun(registrar, command, async (run, [name = ""]) => {
    const stoppedBy = await setStopPolicy(run, name, QueueStopPolicy.NONE);
    const still = stoppedBy === "" ? "" : `, but it is below queue ${stoppedBy}, which is stopped`;
    printLines(run, [`queue/${name} resumed${still}`]);
    return EXIT.ok;
  });
}

/** Returns the name of the queue that stops this one then. */
async function setStopPolicy(run: Run, name: string, stopPolicy: QueueStopPolicy): Promise<string> {
  const { queue: before } = await run.client.call(QueueService.method.getQueue, { name });
  const { parent = "", strategy = QueueStrategy.UNSPECIFIED, quotas = [], maxRunningJobs = 0 } = before ?? {};
  const { resourceVersion = "" } = before ?? {};
  const { queue: after } = await run.client.call(QueueService.method.updateQueue, {
    queue: { name, parent, strategy, quotas, maxRunningJobs, resourceVersion, stopPolicy },
  });
  return after?.stoppedBy ?? "";
}

function parseQuota(text: string): MessageInitShape<typeof FlavorQuotaSchema> {
  const [, flavor, resource, nominal, shares = ""] = QUOTA.exec(text) ?? [];
  if (flavor === undefined || resource === undefined || nominal === undefined) {
    const example = "gpu/h100=nvidia.com/gpu:8 or gpu/h100=nvidia.com/gpu:8,borrow=4,lend=2";
    throw usageFailure(
      `--quota must be FLAVOR=RESOURCE:COUNT[,borrow=COUNT][,lend=COUNT], e.g. ${example}, not ${text}`,
    );
  }
  const borrowingLimit = shareOf(shares, "borrow");
  const lendingLimit = shareOf(shares, "lend");
  return {
    flavor,
    resource,
    nominal: BigInt(nominal),
    ...(borrowingLimit === null ? {} : { borrowingLimit }),
    ...(lendingLimit === null ? {} : { lendingLimit }),
  };
}

/** Reads `borrow` or `lend` from `,borrow=4,lend=2`. If one is repeated, the last counts. Null: not given. */
function shareOf(shares: string, name: "borrow" | "lend"): bigint | null {
  const found = shares.split(",").findLast((share) => share.startsWith(`${name}=`));
  return found === undefined ? null : BigInt(found.slice(name.length + 1));
}

const COLUMNS: readonly Column[] = [
  { title: "NAME" },
  { title: "STRATEGY" },
  { title: "STOPPED" },
  { title: "WAITING", align: "right" },
  { title: "ADMITTED", align: "right" },
  { title: "USED/QUOTA" },
  { title: "PARENT" },
];

type QueueInTree = { readonly queue: Queue; readonly depth: number };

/** Sorts each queue after its parent. Queues of one parent keep their order. */
function asTree(queues: readonly Queue[]): readonly QueueInTree[] {
  const names = new Set(queues.map(({ name }) => name));
  const childrenOf = (parent: string, depth: number): readonly QueueInTree[] =>
    queues
      .filter((queue) => (names.has(queue.parent) ? queue.parent : "") === parent)
      .flatMap((queue) => [{ queue, depth }, ...childrenOf(queue.name, depth + 1)]);
  return childrenOf("", 0);
}

function queuesTable(queues: readonly QueueInTree[]) {
  const rows = queues.map(({ queue, depth }) => [
    depth === 0 ? queue.name : `└${"──".repeat(depth - 1)} ${queue.name}`,
    queue.strategy === QueueStrategy.STRICT_FIFO ? "strict" : "best-effort",
    stopText(queue),
    String(queue.use?.waitingJobs ?? 0),
    `${queue.use?.admittedJobs ?? 0}${queue.maxRunningJobs === 0 ? "" : `/${queue.maxRunningJobs}`}`,
    queue.quotas.map((quota) => quotaText(quota, queue.use?.used[quota.flavor] ?? 0n)).join(", "),
    queue.parent,
  ]);
  return { columns: COLUMNS, rows, names: queues.map(({ queue }) => `queue/${queue.name}`) };
}

/** How a queue is stopped by its own policy, or the queue above it that stops it; empty if it admits jobs. */
function stopText({ name, stopPolicy, stoppedBy }: Queue): string {
  if (stoppedBy !== "" && stoppedBy !== name) return `by ${stoppedBy}`;
  if (stopPolicy === QueueStopPolicy.HOLD_AND_DRAIN) return "drain";
  return stopPolicy === QueueStopPolicy.HOLD ? "hold" : "";
}

/** `gpu/h100 4/8`, with the limits of borrowing and lending, if there are any: `gpu/h100 4/8 (borrows 2, lends 0)`. */
function quotaText({ flavor, nominal, borrowingLimit, lendingLimit }: FlavorQuota, used: bigint): string {
  const shares = [
    ...(borrowingLimit === undefined ? [] : [`borrows ${borrowingLimit}`]),
    ...(lendingLimit === undefined ? [] : [`lends ${lendingLimit}`]),
  ];
  return `${flavor} ${used}/${nominal}${shares.length === 0 ? "" : ` (${shares.join(", ")})`}`;
}
