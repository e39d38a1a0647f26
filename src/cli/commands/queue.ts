/** Serves quota admins: lists, shows, creates, changes and deletes queues. */
import { clone, create } from "@bufbuild/protobuf";
import { type Command, Option } from "commander";
import {
  type FlavorQuota,
  FlavorQuotaSchema,
  ListQueuesResponseSchema,
  type Queue,
  QueueSchema,
  QueueService,
  QueueStopPolicy,
  QueueStrategy,
} from "../../gen/gangway/v1/queue_service_pb.ts";
import { printLines } from "../output/print.ts";
import { NO_LIMIT } from "../output/quota-text.ts";
import type { Column } from "../output/table.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT, usageFailure } from "../shell/exit.ts";
import { INT32_MAX, isTable, type OutputFormat, repeated } from "../shell/options.ts";
import { registerFreeze } from "./freeze.ts";
import { registerGetObject, registerListObjects, registerObjectVerb } from "./named-object-commands.ts";
import { warnOfUnknownFlavors, warnOfUseWithoutQuota } from "./queue-flavor-warnings.ts";
import { addPolicyFlags, changePolicy, type PolicyOptions, policyText } from "./queue-policy-flags.ts";
import { admittedInBranches, asTree, nameInTree, type QueueInTree, registerTree } from "./queue-tree.ts";
import { timeText } from "./quota/grants.ts";

type QueueSettings = PolicyOptions & {
  readonly quota?: readonly string[];
  readonly strategy?: keyof typeof STRATEGIES;
  readonly parent?: string;
  readonly maxRunningJobs?: number;
  readonly maxWaitingJobs?: number;
};

const STRATEGIES = { strict: QueueStrategy.STRICT_FIFO, "best-effort": QueueStrategy.BEST_EFFORT_FIFO } as const;
const QUOTA = /^([^=]+)=([^=,]+):(-?\d+)((?:,(?:borrow|lend)=-?\d+)*)$/;
const QUOTA_HELP =
  "FLAVOR=RESOURCE:COUNT[,borrow=COUNT][,lend=COUNT], the amount of a flavor that the queue may use; " +
  "below a parent, also the most that it may borrow, and that others may borrow from it (default: no limit); " +
  "flavors are tried in the order given; may be repeated";

/** `gangway queue` and its commands. */
export function registerQueue(registrar: Registrar): void {
  const program = registrar.program
    .command("queue")
    .description("List, create, change, stop, freeze and delete queues, which share flavors among teams")
    .addHelpText(
      "after",
      examples(
        "gangway queue list",
        "gangway queue create nlp --quota gpu/h100=nvidia.com/gpu:8",
        "gangway queue create nlp-dev --parent nlp --quota gpu/h100=nvidia.com/gpu:4,borrow=2,lend=4",
        "gangway queue list -o wide",
        "gangway queue tree",
      ),
    );
  const group = { ...registrar, program };
  const { listQueues, getQueue, deleteQueue } = QueueService.method;
  registerListObjects(group, {
    description: "List queues as a tree, with their use",
    plural: "queues",
    schema: ListQueuesResponseSchema,
    list: (run) => run.client.call(listQueues, {}),
    table: (_run, { queues }, output) => queuesTable(asTree(queues), { output, all: queues }),
  });
  registerGetObject(group, {
    example: "research",
    schema: QueueSchema,
    get: async (run, name) => (await run.client.call(getQueue, { name })).queue ?? create(QueueSchema, { name }),
    table: async (run, queue, output) => {
      const isCounted = queue.maxRunningJobs > 0 && isTable(output);
      const all = isCounted ? (await run.client.call(listQueues, {})).queues : [queue];
      return queuesTable([{ queue, depth: 0 }], { output, all });
    },
  });
  registerTree(group);
  registerCreate(group);
  registerUpdate(group);
  registerStop(group);
  registerResume(group);
  registerFreezeQueue(group);
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

function limitOption(flag: "--max-running-jobs" | "--max-waiting-jobs", help: string): Option {
  return new Option(`${flag} <count>`, `${help}; 0: any number`).argParser((text) => {
    if (/^\d{1,10}$/.test(text) && Number(text) <= INT32_MAX) return Number(text);
    throw usageFailure(`${flag} must be a number from 0 to ${INT32_MAX}, not ${text}`);
  });
}

function registerCreate(registrar: Registrar): void {
  const command = registrar.program
    .command("create")
    .description("Create a queue")
    .argument("<name>", "name of the queue")
    .option("--quota <quota>", QUOTA_HELP, repeated)
    .option("--parent <name>", "parent queue; queues below one parent lend to each other");
  addSettingFlags(command).addHelpText(
    "after",
    examples(
      "gangway queue create nlp --quota gpu/h100=nvidia.com/gpu:8 --strategy strict",
      "gangway queue create nlp-dev --parent nlp --quota gpu/h100=nvidia.com/gpu:0,borrow=2 --weight 2",
    ),
  );
  onRun<QueueSettings>(registrar, command, async (run, [name = ""], settings) => {
    const queue = changedQueue(create(QueueSchema, { name }), settings);
    await run.client.call(QueueService.method.createQueue, { queue });
    printLines(run, [`queue/${name} created`]);
    await warnOfUnknownFlavors(run, queue.quotas);
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
    .option("--parent <name>", 'parent queue; "" for none');
  addSettingFlags(command).addHelpText(
    "after",
    examples(
      "gangway queue update nlp --quota gpu/h100=nvidia.com/gpu:16 --quota gpu/a100=nvidia.com/gpu:8",
      "gangway queue update nlp --strategy best-effort",
      "gangway queue update nlp-dev --parent research",
      "gangway queue update nlp --preempt-within-queue lower-priority --min-runtime-preempt 10m",
      "gangway queue update nlp --on-cluster-lost wait",
    ),
  );
  onRun<QueueSettings>(registrar, command, async (run, [name = ""], settings) => {
    if (!run.hasOwnOptions) {
      throw usageFailure("there is nothing to change; give --quota, --parent, --strategy or another option");
    }
    const queue = await updateQueue(run, name, (before) => changedQueue(before, settings));
    printLines(run, [`queue/${name} updated`]);
    if (settings.quota === undefined) return EXIT.ok;
    warnOfUseWithoutQuota(run, queue);
    await warnOfUnknownFlavors(run, queue.quotas);
    return EXIT.ok;
  });
}

function addSettingFlags(command: Command): Command {
  const running = "the most jobs of the queue and those below it that are admitted at the same time";
  const waiting = "the most jobs of the queue that wait or are suspended; new ones beyond it are refused";
  command.addOption(strategyOption()).addOption(limitOption("--max-running-jobs", running));
  return addPolicyFlags(command.addOption(limitOption("--max-waiting-jobs", waiting)));
}

/** The queue with the settings that were given; the others stay. */
function changedQueue(before: Queue, settings: QueueSettings): Queue {
  const queue = clone(QueueSchema, before);
  const { quota, parent, strategy, maxRunningJobs, maxWaitingJobs } = settings;
  if (quota !== undefined) queue.quotas = quota.map(parseQuota);
  if (parent !== undefined) queue.parent = parent;
  if (strategy !== undefined) queue.strategy = STRATEGIES[strategy];
  if (maxRunningJobs !== undefined) queue.maxRunningJobs = maxRunningJobs;
  if (maxWaitingJobs !== undefined) queue.maxWaitingJobs = maxWaitingJobs;
  changePolicy(queue, settings);
  return queue;
}

/** Reads a queue and writes it back with a change, unless another caller has changed it meanwhile. */
async function updateQueue(run: Run, name: string, change: (before: Queue) => Queue): Promise<Queue> {
  const { queue: before } = await run.client.call(QueueService.method.getQueue, { name });
  const queue = change(before ?? create(QueueSchema, { name }));
  const { queue: after } = await run.client.call(QueueService.method.updateQueue, { queue });
  return after ?? queue;
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
    const { frozenBy } = await setStopPolicy(run, name, drain ? QueueStopPolicy.HOLD_AND_DRAIN : QueueStopPolicy.HOLD);
    const later = drain && frozenBy !== "" ? `; it drains once the freeze of queue ${frozenBy} has ended` : "";
    printLines(run, [`queue/${name} stopped${later}`]);
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
    const { stoppedBy } = await setStopPolicy(run, name, QueueStopPolicy.NONE);
    const still = stoppedBy === "" ? "" : `, but it is below queue ${stoppedBy}, which is stopped`;
    printLines(run, [`queue/${name} resumed${still}`]);
    return EXIT.ok;
  });
}

function registerFreezeQueue(registrar: Registrar): void {
  const { freezeQueue, unfreezeQueue } = QueueService.method;
  registerFreeze(registrar, {
    noun: "queue",
    example: "research",
    what: "a queue and all queues below it",
    freeze: (run, name, reason) => run.client.call(freezeQueue, { name, reason }),
    unfreeze: async (run, name) => {
      return unfrozenText((await run.client.call(unfreezeQueue, { name })).queue ?? create(QueueSchema, { name }));
    },
  });
}

/** What keeps a queue from admitting jobs after its own freeze has ended, as words to add; empty if nothing does. */
function unfrozenText({ name, frozenBy, stoppedBy, stopPolicy }: Queue): string {
  if (frozenBy !== "") return `, but it is below queue ${frozenBy}, which is frozen`;
  if (stoppedBy === "") return "";
  if (stoppedBy !== name) return `, but it is below queue ${stoppedBy}, which is stopped`;
  return stopPolicy === QueueStopPolicy.HOLD_AND_DRAIN
    ? ", but it is stopped with --drain: its admissions are undone now"
    : ", but it is stopped";
}

function setStopPolicy(run: Run, name: string, stopPolicy: QueueStopPolicy): Promise<Queue> {
  return updateQueue(run, name, (before) => ({ ...before, stopPolicy }));
}

function parseQuota(text: string): FlavorQuota {
  const [, flavor, resource, nominal, shares = ""] = QUOTA.exec(text) ?? [];
  if (flavor === undefined || resource === undefined || nominal === undefined) {
    const example = "gpu/h100=nvidia.com/gpu:8 or gpu/h100=nvidia.com/gpu:8,borrow=4,lend=2";
    throw usageFailure(
      `--quota must be FLAVOR=RESOURCE:COUNT[,borrow=COUNT][,lend=COUNT], e.g. ${example}, not ${text}`,
    );
  }
  const borrowingLimit = shareOf(shares, "borrow", text);
  const lendingLimit = shareOf(shares, "lend", text);
  return create(FlavorQuotaSchema, {
    flavor,
    resource,
    nominal: quotaAmount(nominal, text),
    ...(borrowingLimit === null ? {} : { borrowingLimit }),
    ...(lendingLimit === null ? {} : { lendingLimit }),
  });
}

/** Reads `borrow` or `lend` from `,borrow=4,lend=2`. If one is repeated, the last counts. Null: not given. */
function shareOf(shares: string, name: "borrow" | "lend", quota: string): bigint | null {
  const found = shares.split(",").findLast((share) => share.startsWith(`${name}=`));
  return found === undefined ? null : quotaAmount(found.slice(name.length + 1), quota);
}

function quotaAmount(digits: string, quota: string): bigint {
  const amount = BigInt(digits);
  if (amount >= 0n && amount <= NO_LIMIT) return amount;
  throw usageFailure(`the amounts of --quota must be whole numbers from 0 to ${NO_LIMIT}, not ${digits} in ${quota}`);
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

/** With `-o wide`. */
const WIDE_COLUMNS: readonly Column[] = [{ title: "WEIGHT", align: "right" }, { title: "POLICY" }];

/** `all`: also those that are not shown. Their jobs count in the limits of queues above them. */
function queuesTable(
  queues: readonly QueueInTree[],
  { output, all }: { readonly output: OutputFormat; readonly all: readonly Queue[] },
) {
  const isWide = output === "wide";
  const admitted = admittedInBranches(all);
  const rows = queues.map(({ queue, depth }) => [
    nameInTree(queue.name, depth),
    queue.strategy === QueueStrategy.STRICT_FIFO ? "strict" : "best-effort",
    haltText(queue),
    countText(queue.use?.waitingJobs ?? 0, queue.maxWaitingJobs),
    queue.maxRunningJobs === 0
      ? String(queue.use?.admittedJobs ?? 0)
      : countText(admitted.get(queue.name) ?? 0, queue.maxRunningJobs),
    queue.quotas.map((quota) => quotaText(quota, queue.use?.used[quota.flavor] ?? 0n)).join(", "),
    queue.parent,
    ...(isWide ? [String(queue.weight ?? 1), policyText(queue)] : []),
  ]);
  const columns = isWide ? [...COLUMNS, ...WIDE_COLUMNS] : COLUMNS;
  return { columns, rows, names: queues.map(({ queue }) => `queue/${queue.name}`) };
}

/** `2/10`: two jobs, and at most ten. `2`: any number. */
function countText(count: number, max: number): string {
  return max === 0 ? String(count) : `${count}/${max}`;
}

/** How a queue is frozen and stopped, or the queues above it that are: `frozen, drain`; empty if it admits jobs. */
function haltText(queue: Queue): string {
  const { name, frozenBy } = queue;
  const freeze = frozenBy === name ? "frozen" : `frozen by ${frozenBy}`;
  return [frozenBy === "" ? "" : freeze, stopText(queue)].filter((text) => text !== "").join(", ");
}

function stopText({ name, stopPolicy, stoppedBy }: Queue): string {
  if (stoppedBy !== "" && stoppedBy !== name) return `by ${stoppedBy}`;
  if (stopPolicy === QueueStopPolicy.HOLD_AND_DRAIN) return "drain";
  return stopPolicy === QueueStopPolicy.HOLD ? "hold" : "";
}

/** `gpu/h100 4/8`, with the limits of borrowing and lending, if there are any: `gpu/h100 4/8 (borrows 2, lends 0)`. */
function quotaText(quota: FlavorQuota, used: bigint): string {
  const { flavor, nominal, granted, grantedUntil: until, borrowingLimit, lendingLimit } = quota;
  const shares = [
    ...(until === undefined ? [] : [`${granted} granted until ${timeText({ until })}`]),
    ...(borrowingLimit === undefined ? [] : [`borrows ${borrowingLimit}`]),
    ...(lendingLimit === undefined ? [] : [`lends ${lendingLimit}`]),
  ];
  return `${flavor} ${used}/${nominal + granted}${shares.length === 0 ? "" : ` (${shares.join(", ")})`}`;
}
