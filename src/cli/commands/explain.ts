import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Admission } from "../../gen/gangway/v1/job_pb.ts";
import {
  type ExplainJobResponse,
  ExplainJobResponseSchema,
  type JobEvent,
  JobService,
  ListJobEventsResponseSchema,
  QuotaLevel,
  type QuotaRefusal,
} from "../../gen/gangway/v1/job_service_pb.ts";
import { formatSpan } from "../duration.ts";
import { EXIT } from "../exit.ts";
import { ageCell, phaseWord } from "../job-text.ts";
import { namedJob } from "../named-job.ts";
import { encodeMessage, printLines, printTable, show } from "../output.ts";
import {
  examples,
  namespaceOption,
  type OutputFormat,
  onRun,
  outputOption,
  type Registrar,
  type Run,
} from "../shell.ts";
import { oneLine } from "../table.ts";

type Options = { namespace: string; output: OutputFormat };

const PAGE_SIZE = 500;

export function registerExplain(registrar: Registrar): void {
  const command = registrar.program
    .command("explain")
    .description("say why a job waits, runs where it runs, or failed")
    .argument("<name>", "name of the job, as NAME or KIND/NAME")
    .addOption(namespaceOption())
    .addOption(outputOption())
    .addHelpText("after", examples("gangway explain llama-pretrain", "gangway explain llama-pretrain -o json"));
  onRun<Options>(registrar, command, async (run, [given = ""], { namespace, output }) => {
    const name = await namedJob(run, given, namespace);
    const answer = await run.client.call(JobService.method.explainJob, { namespace, name });
    if (output === "name") printLines(run, [name]);
    else if (output !== "table") run.deps.stdout(encodeMessage(output, ExplainJobResponseSchema, answer));
    else printExplanation(run, answer);
    return EXIT.ok;
  });
}

function printExplanation(run: Run, answer: ExplainJobResponse): void {
  printLines(run, [answer.summary, "", ...factLines(run, answer)]);
  if (answer.quotas.length > 0) {
    printLines(run, [""]);
    const titles = ["LEVEL", "FLAVOR", "REASON", "NEEDS", "USED", "LIMIT", "KEPT", "HELD BY"];
    const columns = titles.map((title) => ({ title }));
    const rows = answer.quotas.map((quota) => [
      levelText(quota),
      quota.flavor,
      quota.reason,
      String(quota.need),
      String(quota.used),
      String(quota.limit),
      String(quota.reserved),
      quota.heldBy.join(", "),
    ]);
    printTable(run, columns, rows);
  }
  if (answer.clusters.length > 0) {
    printLines(run, [""]);
    const columns = ["CLUSTER", "FLAVOR", "REASON", "PODS NEEDED", "FIT NOW", "MESSAGE"].map((title) => ({ title }));
    const rows = answer.clusters.map((cluster) => [
      cluster.cluster,
      cluster.flavor,
      cluster.reason,
      String(cluster.need),
      String(cluster.have),
      cluster.message,
    ]);
    printTable(run, columns, rows);
  }
}

/** `queue research`, `pool gpu/h100`: where the quota counts. */
function levelText({ level, name, queue }: QuotaRefusal): string {
  const words: Readonly<Record<number, string>> = {
    [QuotaLevel.POOL]: "pool",
    [QuotaLevel.PROJECT]: "project",
    [QuotaLevel.NAMESPACE]: "namespace",
  };
  return `${words[level] ?? "queue"} ${name || queue}`;
}

function factLines(run: Run, answer: ExplainJobResponse): string[] {
  const nowMs = run.deps.clock.nowMs();
  const { admission, failure, evaluatedAt, retryAt } = answer;
  const position = answer.position > 0 ? `, #${answer.position} in its queue` : "";
  const facts: readonly (readonly [string, string])[] = [
    ["Phase", phaseWord(answer.phase) + position],
    ["Reason", answer.reason],
    ["Admission", admission === undefined ? "" : admissionText(admission)],
    ["Failure", failure === undefined ? "" : `${failure.code}: ${failure.message}`],
    ["Draining", answer.draining.map(admissionText).join("; ")],
    ["Looked at", evaluatedAt === undefined ? "" : `${ageCell(evaluatedAt, nowMs)} ago`],
    ["Again in", retryAt === undefined ? "" : formatSpan(timestampMs(retryAt) - nowMs)],
  ];
  return facts.filter(([, text]) => text !== "").map(([title, text]) => `${`${title}:`.padEnd(11)}${oneLine(text)}`);
}

function admissionText(admission: Admission): string {
  const members = Object.entries(admission.members).map(([role, count]) => `${count} ${role}`);
  const tokens = admission.tokens.map((token) => `${token.amount} ${token.pool}`);
  const held = tokens.length === 0 ? "" : `, holds ${tokens.join(", ")}`;
  const where = admission.cluster === "" ? "" : ` on ${admission.cluster} (${members.join(", ")})`;
  return `${admission.number}${where}${held}`;
}

export function registerEvents(registrar: Registrar): void {
  const command = registrar.program
    .command("events")
    .description("show what happened to a job, oldest first")
    .argument("<name>", "name of the job, as NAME or KIND/NAME")
    .addOption(namespaceOption())
    .addOption(outputOption())
    .addHelpText("after", examples("gangway events llama-pretrain"));
  onRun<Options>(registrar, command, async (run, [given = ""], { namespace, output }) => {
    const events = await allEvents(run, { namespace, name: await namedJob(run, given, namespace) });
    const nowMs = run.deps.clock.nowMs();
    show(run, output, {
      schema: ListJobEventsResponseSchema,
      message: create(ListJobEventsResponseSchema, { events }),
      names: events.map((event) => event.reason),
      columns: [{ title: "AGE", align: "right" }, { title: "TYPE" }, { title: "REASON" }, { title: "MESSAGE" }],
      rows: events.map((event) => [ageCell(event.time, nowMs), event.type, event.reason, event.message]),
      none: "no events",
    });
    return EXIT.ok;
  });
}

async function allEvents(run: Run, which: { readonly namespace: string; readonly name: string }): Promise<JobEvent[]> {
  const events: JobEvent[] = [];
  let pageToken = "";
  do {
    const request = { ...which, pageSize: PAGE_SIZE, pageToken };
    const page = await run.client.call(JobService.method.listJobEvents, request);
    events.push(...page.events);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return events;
}
