import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Admission } from "../../gen/gangway/v1/job_pb.ts";
import {
  type ExplainJobResponse,
  ExplainJobResponseSchema,
  JobService,
  QuotaLevel,
  type QuotaRefusal,
} from "../../gen/gangway/v1/job_service_pb.ts";
import { type JobRef, refOf, resolveJobNames } from "../jobs/job-name.ts";
import {
  addJobNamesOrFilter,
  type JobSelectionOptions,
  listSelected,
  refuseNone,
  selectionGiven,
} from "../jobs/select-jobs.ts";
import { formatSpan } from "../output/duration.ts";
import { ageCell, clusterText } from "../output/job-text.ts";
import { phaseWord, returnedCount, tokensText } from "../output/job-words.ts";
import { keptHeading } from "../output/kept-log.ts";
import { printEncoded, printLines, printTable } from "../output/print.ts";
import { oneLine } from "../output/table.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";
import { isTable, noHeadersOption, type OutputFormat, outputOption } from "../shell/options.ts";

type ExplainOptions = JobSelectionOptions & { output: OutputFormat };

export function registerExplain(registrar: Registrar): void {
  const command = addJobNamesOrFilter(registrar.program.command("explain"))
    .alias("describe")
    .description("Explain why a job waits, where it runs, or why it failed")
    .addOption(noHeadersOption())
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples(
        "gangway explain llama-pretrain",
        "gangway explain llama-pretrain -o json",
        "gangway explain -l sweep=lr",
      ),
    );
  onRun<ExplainOptions>(registrar, command, async (run, args, options) => {
    for (const [at, job] of (await jobsToExplain(run, args, options)).entries()) {
      const answer = await run.client.call(JobService.method.explainJob, job);
      if (at > 0) printBetween(run, options.output);
      printAnswer(run, { name: job.name, answer }, options.output);
    }
    return EXIT.ok;
  });
}

function printBetween(run: Run, output: OutputFormat): void {
  if (isTable(output)) printLines(run, [""]);
  if (output === "yaml") run.deps.stdout("---\n");
}

function printAnswer(
  run: Run,
  { name, answer }: { readonly name: string; readonly answer: ExplainJobResponse },
  output: OutputFormat,
): void {
  if (output === "name") printLines(run, [name]);
  else if (isTable(output)) printExplanation(run, { name, answer }, output);
  else printEncoded(run, output, { schema: ExplainJobResponseSchema, message: answer });
}

/** The jobs that arguments name or options select. A name without a kind is not checked: its explanation is. */
async function jobsToExplain(run: Run, args: readonly string[], options: ExplainOptions): Promise<readonly JobRef[]> {
  const selection = await selectionGiven(run, args, { options, verb: "explain" });
  if (selection === null) return resolveJobNames(run, args);
  const jobs = await listSelected(run, selection, []);
  if (jobs.length === 0) refuseNone(run, selection);
  return jobs.map(refOf);
}

function printExplanation(
  run: Run,
  { name, answer }: { readonly name: string; readonly answer: ExplainJobResponse },
  output: "table" | "wide",
): void {
  printLines(run, [answer.summary, "", ...factLines(run, answer)]);
  printFailureLogs(run, name, answer);
  if (answer.podProblems.length > 0) {
    printLines(run, [""]);
    const columns = ["PODS", "OF", "REASON", "SINCE", "MESSAGE"].map((title) => ({ title }));
    const nowMs = run.deps.clock.nowMs();
    const rows = answer.podProblems.map((problem) => [
      String(problem.pods),
      problem.replicaType,
      problem.reason,
      ageCell(problem.since, nowMs),
      problem.message,
    ]);
    printTable(run, columns, rows, output);
  }
  if (answer.quotas.length > 0) {
    printLines(run, [""]);
    const titles = ["LEVEL", "FLAVOR", "REASON", "NEEDS", "USED", "LIMIT", "RESERVED", "HELD BY"];
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
    printTable(run, columns, rows, output);
  }
  if (answer.clusters.length > 0) {
    printLines(run, [""]);
    const columns = ["CLUSTER", "FLAVOR", "REASON", "PODS NEEDED", "PODS THAT FIT", "MESSAGE"].map((title) => ({
      title,
    }));
    const rows = answer.clusters.map((cluster) => [
      clusterText(cluster),
      cluster.flavor,
      cluster.reason,
      String(cluster.need),
      String(cluster.have),
      cluster.message,
    ]);
    printTable(run, columns, rows, output);
  }
}

/** So many of the last lines say most often what went wrong. `gangway logs --attempt` prints all that are kept. */
const SHOWN_LINES_MAX = 20;

/** Prints the last lines of the container that the failure is blamed on, and says of which others there are some. */
function printFailureLogs(run: Run, name: string, { failureLogs }: ExplainJobResponse): void {
  if (failureLogs === undefined) return;
  const { logs, leftOut } = failureLogs;
  if (leftOut !== "") printLines(run, ["", `The last lines of failed containers are left out: ${leftOut}.`]);
  const [first, ...others] = logs;
  if (first === undefined) return;
  const lines = first.text === "" ? [] : first.text.split("\n").slice(-SHOWN_LINES_MAX);
  printLines(run, [
    "",
    keptHeading({ ...first, cut: first.cut || first.text.split("\n").length > lines.length }),
    ...lines,
  ]);
  if (others.length > 0) printLines(run, ["", ...others.map((log) => keptHeading(log))]);
  printLines(run, ["", `All lines that are kept: gangway logs ${name} --attempt ${first.attempt}`]);
}

/** `queue research` or `pool gpu/h100`: the level of the quota that refuses the job. */
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
    ["Evaluated", evaluatedAt === undefined ? "" : `${ageCell(evaluatedAt, nowMs)} ago`],
    ["Retry in", retryAt === undefined ? "" : formatSpan(timestampMs(retryAt) - nowMs)],
  ];
  return facts.filter(([, text]) => text !== "").map(([title, text]) => `${`${title}:`.padEnd(11)}${oneLine(text)}`);
}

function admissionText(admission: Admission): string {
  const members = Object.entries(admission.members).map(([role, count]) => `${count} ${role}`);
  const returned = returnedCount(admission);
  const back = returned === 0 ? "" : `, of which ${returned} gave back their tokens`;
  const held = `${back}${admission.tokens.length === 0 ? "" : `, holds ${tokensText(admission.tokens)}`}`;
  const cluster = `${admission.simulated ? "simulated " : ""}${admission.cluster}`;
  const where = admission.cluster === "" ? "" : ` on ${cluster} (${members.join(", ")})`;
  return `${admission.number}${where}${held}`;
}
