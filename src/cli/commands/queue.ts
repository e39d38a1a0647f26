import type { MessageInitShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { Option } from "commander";
import {
  type FlavorQuotaSchema,
  ListQueuesResponseSchema,
  type Queue,
  QueueSchema,
  QueueService,
  QueueStrategy,
} from "../../gen/gangway/v1/queue_service_pb.ts";
import { EXIT, usageFailure } from "../exit.ts";
import { printLines, show } from "../output.ts";
import { examples, type OutputFormat, onRun, outputOption, type Registrar, repeated } from "../shell.ts";
import type { Column } from "../table.ts";

type Output = { output: OutputFormat };
type Settings = { quota?: readonly string[]; strategy?: keyof typeof STRATEGIES };

const STRATEGIES = { strict: QueueStrategy.STRICT_FIFO, "best-effort": QueueStrategy.BEST_EFFORT_FIFO } as const;
const QUOTA = /^([^=]+)=([^=]+):(\d{1,16})$/;
const QUOTA_FORM = "<flavor=resource:count>";
const QUOTA_HELP = "how much of a flavor the queue may use; flavors are tried in the order given; may be repeated";

/** `gangway queue …`: what teams may use. */
export function registerQueue(registrar: Registrar): void {
  const program = registrar.program
    .command("queue")
    .description("share flavors among teams")
    .addHelpText("after", examples("gangway queue list", "gangway queue create nlp --quota gpu/h100=nvidia.com/gpu:8"));
  const group = { ...registrar, program };
  registerList(group);
  registerGet(group);
  registerCreate(group);
  registerUpdate(group);
  registerDelete(group);
}

function registerList(registrar: Registrar): void {
  const command = registrar.program
    .command("list")
    .description("list queues with what is used of them")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway queue list"));
  onRun<Output>(registrar, command, async (run, _args, { output }) => {
    const { queues } = await run.client.call(QueueService.method.listQueues, {});
    const message = create(ListQueuesResponseSchema, { queues });
    show(run, output, { ...queuesTable(queues), schema: ListQueuesResponseSchema, message, none: "no queues" });
    return EXIT.ok;
  });
}

function registerGet(registrar: Registrar): void {
  const command = registrar.program
    .command("get")
    .description("show a queue")
    .argument("<name>", "name of the queue")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway queue get research -o yaml"));
  onRun<Output>(registrar, command, async (run, [name = ""], { output }) => {
    const { queue } = await run.client.call(QueueService.method.getQueue, { name });
    const message = queue ?? create(QueueSchema, { name });
    show(run, output, { ...queuesTable([message]), schema: QueueSchema, message, none: "" });
    return EXIT.ok;
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
    .addOption(strategyOption())
    .addHelpText("after", examples("gangway queue create nlp --quota gpu/h100=nvidia.com/gpu:8 --strategy strict"));
  onRun<Settings>(registrar, command, async (run, [name = ""], settings) => {
    const strategy = settings.strategy === undefined ? QueueStrategy.UNSPECIFIED : STRATEGIES[settings.strategy];
    const queue = { name, strategy, quotas: (settings.quota ?? []).map(parseQuota) };
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
    .addOption(strategyOption())
    .addHelpText(
      "after",
      examples(
        "gangway queue update nlp --quota gpu/h100=nvidia.com/gpu:16 --quota gpu/a100=nvidia.com/gpu:8",
        "gangway queue update nlp --strategy best-effort",
      ),
    );
  onRun<Settings>(registrar, command, async (run, [name = ""], settings) => {
    if (settings.quota === undefined && settings.strategy === undefined)
      throw usageFailure("give --quota or --strategy");
    const quotas = settings.quota?.map(parseQuota);
    const { queue } = await run.client.call(QueueService.method.getQueue, { name });
    const strategy = settings.strategy === undefined ? queue?.strategy : STRATEGIES[settings.strategy];
    await run.client.call(QueueService.method.updateQueue, {
      queue: {
        name,
        strategy: strategy ?? QueueStrategy.UNSPECIFIED,
        quotas: quotas ?? queue?.quotas ?? [],
        resourceVersion: queue?.resourceVersion ?? "",
      },
    });
    printLines(run, [`queue/${name} updated`]);
    return EXIT.ok;
  });
}

function registerDelete(registrar: Registrar): void {
  const command = registrar.program
    .command("delete")
    .description("delete a queue that nothing names")
    .argument("<name>", "name of the queue")
    .addHelpText("after", examples("gangway queue delete nlp"));
  onRun<object>(registrar, command, async (run, [name = ""]) => {
    await run.client.call(QueueService.method.deleteQueue, { name });
    printLines(run, [`queue/${name} deleted`]);
    return EXIT.ok;
  });
}

function parseQuota(text: string): MessageInitShape<typeof FlavorQuotaSchema> {
  const [, flavor, resource, nominal] = QUOTA.exec(text) ?? [];
  if (flavor === undefined || resource === undefined || nominal === undefined) {
    throw usageFailure(`--quota must be FLAVOR=RESOURCE:COUNT, e.g. gpu/h100=nvidia.com/gpu:8, not ${text}`);
  }
  return { flavor, resource, nominal: BigInt(nominal) };
}

const COLUMNS: readonly Column[] = [
  { title: "NAME" },
  { title: "STRATEGY" },
  { title: "WAITING", align: "right" },
  { title: "ADMITTED", align: "right" },
  { title: "USED/QUOTA" },
];

function queuesTable(queues: readonly Queue[]) {
  const rows = queues.map((queue) => [
    queue.name,
    queue.strategy === QueueStrategy.STRICT_FIFO ? "strict" : "best-effort",
    String(queue.use?.waitingJobs ?? 0),
    String(queue.use?.admittedJobs ?? 0),
    queue.quotas.map((quota) => `${quota.flavor} ${queue.use?.used[quota.flavor] ?? 0n}/${quota.nominal}`).join(", "),
  ]);
  return { columns: COLUMNS, rows, names: queues.map((queue) => `queue/${queue.name}`) };
}
