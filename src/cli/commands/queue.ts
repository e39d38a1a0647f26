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
  QueueStrategy,
} from "../../gen/gangway/v1/queue_service_pb.ts";
import { EXIT, usageFailure } from "../exit.ts";
import { printLines } from "../output.ts";
import { examples, onRun, type Registrar, repeated } from "../shell.ts";
import type { Column } from "../table.ts";
import { registerGet, registerList, registerVerb } from "./resource.ts";

type Settings = { quota?: readonly string[]; strategy?: keyof typeof STRATEGIES; parent?: string };

const STRATEGIES = { strict: QueueStrategy.STRICT_FIFO, "best-effort": QueueStrategy.BEST_EFFORT_FIFO } as const;
const QUOTA = /^([^=]+)=([^=,]+):(\d{1,16})((?:,(?:borrow|lend)=\d{1,16})*)$/;
const QUOTA_FORM = "<quota>";
const QUOTA_HELP =
  "FLAVOR=RESOURCE:COUNT[,borrow=COUNT][,lend=COUNT]: how much of a flavor the queue may use; below a parent, how much more it may borrow and how much of it others may use (else all); flavors are tried in the order given; may be repeated";
const PARENT_FORM = "--parent <name>";

/** `gangway queue …`: what teams may use. */
export function registerQueue(registrar: Registrar): void {
  const program = registrar.program
    .command("queue")
    .description("share flavors among teams")
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
  registerList(group, {
    description: "list queues, as the trees that they form, with what is used of them",
    plural: "queues",
    schema: ListQueuesResponseSchema,
    list: (run) => run.client.call(listQueues, {}),
    table: (_run, { queues }) => queuesTable(asTree(queues)),
  });
  registerGet(group, {
    example: "research",
    schema: QueueSchema,
    get: async (run, name) => (await run.client.call(getQueue, { name })).queue ?? create(QueueSchema, { name }),
    table: (_run, queue) => queuesTable([{ queue, depth: 0 }]),
  });
  registerCreate(group);
  registerUpdate(group);
  registerVerb(group, "delete", {
    description: "delete a queue that nothing names",
    example: "nlp",
    done: "deleted",
    change: (run, name) => run.client.call(deleteQueue, { name }),
  });
}

function strategyOption(): Option {
  return new Option("--strategy <strategy>", "strict: nothing passes a gang that cannot go yet").choices(
    Object.keys(STRATEGIES),
  );
}

function registerCreate(registrar: Registrar): void {
  const command = registrar.program
    .command("create")
    .description("create a queue")
    .argument("<name>", "name of the queue")
    .option(`--quota ${QUOTA_FORM}`, QUOTA_HELP, repeated)
    .option(PARENT_FORM, "the queue above it, whose queues lend to each other")
    .addOption(strategyOption())
    .addHelpText(
      "after",
      examples(
        "gangway queue create nlp --quota gpu/h100=nvidia.com/gpu:8 --strategy strict",
        "gangway queue create nlp-dev --parent nlp --quota gpu/h100=nvidia.com/gpu:0,borrow=2",
      ),
    );
  onRun<Settings>(registrar, command, async (run, [name = ""], settings) => {
    const strategy = settings.strategy === undefined ? QueueStrategy.UNSPECIFIED : STRATEGIES[settings.strategy];
    const { parent = "" } = settings;
    const queue = { name, parent, strategy, quotas: (settings.quota ?? []).map(parseQuota) };
    await run.client.call(QueueService.method.createQueue, { queue });
    printLines(run, [`queue/${name} created`]);
    return EXIT.ok;
  });
}

function registerUpdate(registrar: Registrar): void {
  const command = registrar.program
    .command("update")
    .description("change a queue: what is not given stays; --quota replaces all quotas")
    .argument("<name>", "name of the queue")
    .option(`--quota ${QUOTA_FORM}`, QUOTA_HELP, repeated)
    .option(PARENT_FORM, 'the queue above it; "" for none')
    .addOption(strategyOption())
    .addHelpText(
      "after",
      examples(
        "gangway queue update nlp --quota gpu/h100=nvidia.com/gpu:16 --quota gpu/a100=nvidia.com/gpu:8",
        "gangway queue update nlp --strategy best-effort",
        "gangway queue update nlp-dev --parent research",
      ),
    );
  onRun<Settings>(registrar, command, async (run, [name = ""], settings) => {
    const { quota, strategy: wanted, parent } = settings;
    if (quota === undefined && wanted === undefined && parent === undefined) {
      throw usageFailure("give --quota, --parent or --strategy");
    }
    const quotas = quota?.map(parseQuota);
    const { queue } = await run.client.call(QueueService.method.getQueue, { name });
    const strategy = wanted === undefined ? queue?.strategy : STRATEGIES[wanted];
    await run.client.call(QueueService.method.updateQueue, {
      queue: {
        name,
        parent: parent ?? queue?.parent ?? "",
        strategy: strategy ?? QueueStrategy.UNSPECIFIED,
        quotas: quotas ?? queue?.quotas ?? [],
        resourceVersion: queue?.resourceVersion ?? "",
      },
    });
    printLines(run, [`queue/${name} updated`]);
    return EXIT.ok;
  });
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

/** `,borrow=4,lend=2` → 4n of `borrow`; the last counts. */
function shareOf(shares: string, name: "borrow" | "lend"): bigint | null {
  const found = shares.split(",").findLast((share) => share.startsWith(`${name}=`));
  return found === undefined ? null : BigInt(found.slice(name.length + 1));
}

const COLUMNS: readonly Column[] = [
  { title: "NAME" },
  { title: "STRATEGY" },
  { title: "WAITING", align: "right" },
  { title: "ADMITTED", align: "right" },
  { title: "USED/QUOTA" },
  { title: "PARENT" },
];

type Placed = { readonly queue: Queue; readonly depth: number };

/** Each queue after the one that it stands below, else in the order given. */
function asTree(queues: readonly Queue[]): readonly Placed[] {
  const names = new Set(queues.map(({ name }) => name));
  const below = (parent: string, depth: number): readonly Placed[] =>
    queues
      .filter((queue) => (names.has(queue.parent) ? queue.parent : "") === parent)
      .flatMap((queue) => [{ queue, depth }, ...below(queue.name, depth + 1)]);
  return below("", 0);
}

function queuesTable(placed: readonly Placed[]) {
  const rows = placed.map(({ queue, depth }) => [
    depth === 0 ? queue.name : `└${"──".repeat(depth - 1)} ${queue.name}`,
    queue.strategy === QueueStrategy.STRICT_FIFO ? "strict" : "best-effort",
    String(queue.use?.waitingJobs ?? 0),
    String(queue.use?.admittedJobs ?? 0),
    queue.quotas.map((quota) => quotaText(quota, queue.use?.used[quota.flavor] ?? 0n)).join(", "),
    queue.parent,
  ]);
  return { columns: COLUMNS, rows, names: placed.map(({ queue }) => `queue/${queue.name}`) };
}

/** `gpu/h100 4/8`, with what it may borrow and what it lends where that is limited: `gpu/h100 4/8 (borrows 2, lends 0)`. */
function quotaText({ flavor, nominal, borrowingLimit, lendingLimit }: FlavorQuota, used: bigint): string {
  const shares = [
    ...(borrowingLimit === undefined ? [] : [`borrows ${borrowingLimit}`]),
    ...(lendingLimit === undefined ? [] : [`lends ${lendingLimit}`]),
  ];
  return `${flavor} ${used}/${nominal}${shares.length === 0 ? "" : ` (${shares.join(", ")})`}`;
}
