/** Raises the quota of a queue for some time: `gangway quota grant`, `grants` and `revoke`. */
import { durationFromMs, timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  GrantQuotaResponseSchema,
  ListQuotaGrantsResponseSchema,
  QueueService,
  type QuotaGrant,
} from "../../../gen/gangway/v1/queue_service_pb.ts";
import { printChange, printLines, printResponse } from "../../output/print.ts";
import { NO_LIMIT } from "../../output/quota-text.ts";
import type { Column } from "../../output/table.ts";
import { examples, onRun, type Registrar } from "../../run/run-command.ts";
import { EXIT, usageFailure } from "../../shell/exit.ts";
import { durationOption, type OutputFormat, outputOption } from "../../shell/options.ts";

const { getQueue, grantQuota, listQuotaGrants, revokeQuotaGrant } = QueueService.method;

export function registerGrants(registrar: Registrar): void {
  registerGrant(registrar);
  registerListGrants(registrar);
  registerRevoke(registrar);
}

type GrantOptions = {
  readonly until?: string;
  readonly for?: number;
  readonly reason: string;
  readonly output: OutputFormat;
};

function registerGrant(registrar: Registrar): void {
  const command = registrar.program
    .command("grant")
    .summary("Raise a queue's quota of a pool for some time")
    .description(
      "Raise a queue's nominal quota of a pool by an amount until a time. A queue has one grant of a pool: another " +
        "one replaces it. At its end, what the queue uses beyond its quota counts as borrowed.",
    )
    .argument("<queue>", "name of the queue")
    .argument("<pool>", "the pool, a flavor of the queue's quotas")
    .argument("<amount>", "how much more than its nominal quota the queue has")
    .option("--until <time>", "when it ends, such as 2026-12-01T18:00:00Z")
    .addOption(durationOption("--for <duration>", "how long it lasts, such as 2h"))
    .option("--reason <text>", "why; kept in the audit log", "")
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples(
        "gangway quota grant nlp gpu/h100 8 --for 2h",
        'gangway quota grant nlp gpu/h100 8 --until 2026-12-01T18:00:00Z --reason "paper deadline"',
      ),
    );
  onRun<GrantOptions>(registrar, command, async (run, [queue = "", flavor = "", amount = ""], options) => {
    const { reason, output } = options;
    const asked = { queue, flavor, amount: amountOf(amount), reason, end: endOf(options) };
    const message = await run.client.call(grantQuota, asked);
    const { grant } = message;
    const until = grant === undefined ? "" : ` until ${timeText(grant)}`;
    const line = `queue/${queue} has ${amount} of ${flavor} more${until}`;
    printChange(run, output, { line, names: [`queue/${queue}`], schema: GrantQuotaResponseSchema, message });
    return EXIT.ok;
  });
}

function amountOf(text: string): bigint {
  const amount = /^\d+$/.test(text) ? BigInt(text) : 0n;
  if (amount >= 1n && amount <= NO_LIMIT) return amount;
  throw usageFailure(`the amount must be a whole number from 1 to ${NO_LIMIT}, not ${text}`);
}

function endOf({ until, for: lastsMs }: GrantOptions) {
  if ((until === undefined) === (lastsMs === undefined)) throw usageFailure("give either --until or --for");
  if (lastsMs !== undefined) return { case: "duration", value: durationFromMs(lastsMs) } as const;
  const at = new Date(until ?? "");
  if (Number.isNaN(at.getTime()))
    throw usageFailure(`--until must be a time such as 2026-12-01T18:00:00Z, not ${until}`);
  return { case: "until", value: timestampFromDate(at) } as const;
}

function registerListGrants(registrar: Registrar): void {
  const command = registrar.program
    .command("grants")
    .description("List the quotas that are raised for some time")
    .argument("[queue]", "only those of this queue")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway quota grants", "gangway quota grants nlp"));
  onRun<{ output: OutputFormat }>(registrar, command, async (run, [queue = ""], { output }) => {
    const message = await run.client.call(listQuotaGrants, { queue });
    // The list of a queue that does not exist is empty, too.
    if (queue !== "" && message.grants.length === 0) await run.client.call(getQueue, { name: queue });
    const rows = message.grants.map((grant) => [
      grant.queue,
      grant.flavor,
      String(grant.amount),
      timeText(grant),
      grant.actor,
      grant.reason,
    ]);
    const names = message.grants.map((grant) => `queue/${grant.queue}`);
    const table = { columns: COLUMNS, rows, names, none: "no quotas are raised" };
    printResponse(run, output, { ...table, schema: ListQuotaGrantsResponseSchema, message });
    return EXIT.ok;
  });
}

const COLUMNS: readonly Column[] = [
  { title: "QUEUE" },
  { title: "POOL" },
  { title: "AMOUNT", align: "right" },
  { title: "UNTIL" },
  { title: "BY" },
  { title: "REASON" },
];

function registerRevoke(registrar: Registrar): void {
  const command = registrar.program
    .command("revoke")
    .description("End the grant of a queue's quota of a pool before its time")
    .argument("<queue>", "name of the queue")
    .argument("<pool>", "the pool")
    .addHelpText("after", examples("gangway quota revoke nlp gpu/h100"));
  onRun(registrar, command, async (run, [queue = "", flavor = ""]) => {
    await run.client.call(revokeQuotaGrant, { queue, flavor });
    printLines(run, [`queue/${queue} has its own quota of ${flavor} again`]);
    return EXIT.ok;
  });
}

/** `2026-12-01T18:00:00Z`. */
export function timeText({ until }: Pick<QuotaGrant, "until">): string {
  return until === undefined
    ? ""
    : timestampDate(until)
        .toISOString()
        .replace(/\.\d+Z$/, "Z");
}
