import {
  JobService,
  type SimulatedCluster,
  type SimulateJobResponse,
  SimulateJobResponseSchema,
  Verdict,
} from "../../gen/gangway/v1/job_service_pb.ts";
import { maxOf } from "../../runtime/lists.ts";
import { GroupedNotes } from "../manifest/grouped-notes.ts";
import { noteLine, type ReadyManifest } from "../manifest/read-manifests.ts";
import { filenameOption, ignoreForeignOption, readReady } from "../manifest/read-ready.ts";
import { addSettingOptions, SETTINGS_HEADING, settingValues } from "../manifest/setting-options.ts";
import { clusterText, qualifiedName } from "../output/job-text.ts";
import { encodeMessage, printLines } from "../output/print.ts";
import { wrapText } from "../output/wrap.ts";
import { CallError } from "../rpc/call-error.ts";
import { rpcFailure } from "../rpc/rpc-failure.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";
import { isTable, type OutputFormat, outputOption } from "../shell/options.ts";

type CanRunOptions = { filename?: readonly string[]; ignoreForeign?: boolean; output: OutputFormat };

export function registerCanRun(registrar: Registrar): void {
  const command = registrar.program
    .command("can-run")
    .argument("[file...]", "files or folders, as for --filename")
    .summary("Say whether jobs could run, and where")
    .description(
      "Say whether the jobs of manifests could run, now or later, and on which clusters. Submits nothing.\n" +
        "Exit status: 0 if each could run somewhere, 1 if one never could, 3 if one is refused.",
    )
    .addOption(filenameOption())
    .addOption(ignoreForeignOption())
    .addOption(outputOption());
  addSettingOptions(command, { heading: SETTINGS_HEADING });
  command.addHelpText(
    "after",
    examples(
      "gangway can-run -f pytorch-simple.yaml",
      "gangway can-run pytorch-simple.yaml --queue nlp --gpu-model h100",
      "gangway can-run jobs/ -o json",
    ),
  );
  onRun<CanRunOptions>(registrar, command, async (run, args, options) => {
    const { filename = [], ignoreForeign = false, output } = options;
    const rules = { ignoreForeign, settings: settingValues(options), otherwise: "nothing was judged" };
    const ready = await readReady(run, [...args, ...filename], rules);
    let worst: number = EXIT.ok;
    using notes = new GroupedNotes(run.deps.stderr);
    for (const manifest of ready) {
      const answer = await judge(run, manifest);
      if (answer === null) {
        worst = EXIT.refused;
        continue;
      }
      const { where, spelled } = manifest;
      for (const warning of answer.warnings) notes.add(spelled(noteLine(where, warning)));
      printAnswer(run, { manifest, answer, output });
      if (answer.verdict === Verdict.NEVER && worst === EXIT.ok) worst = EXIT.neverRuns;
    }
    return worst;
  });
}

/** The answer about one manifest. Null for a refused one, after printing why. Throws if the service is unavailable. */
async function judge(run: Run, { job, where, spelled }: ReadyManifest): Promise<SimulateJobResponse | null> {
  try {
    return await run.client.call(JobService.method.simulateJob, { job });
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    const { exitCode, lines } = rpcFailure(error, run.client.address);
    if (exitCode !== EXIT.refused) throw error;
    run.deps.stderr(`${where}:\n${spelled(lines.join("\n"))}\n`);
    return null;
  }
}

type Answered = {
  readonly manifest: ReadyManifest;
  readonly answer: SimulateJobResponse;
  readonly output: OutputFormat;
};

function printAnswer(run: Run, { manifest, answer, output }: Answered): void {
  const { job } = manifest;
  if (output === "name") printLines(run, [qualifiedName(job)]);
  else if (isTable(output)) printLines(run, answerLines(run, answer));
  else run.deps.stdout((output === "yaml" ? "---\n" : "") + encodeMessage(output, SimulateJobResponseSchema, answer));
}

/** The answer, then a sentence for each cluster. Lines end at the edge of the terminal. */
function answerLines(run: Run, { summary, clusters }: SimulateJobResponse): readonly string[] {
  const width = run.deps.isTty ? run.deps.columns : null;
  const names = maxOf(
    clusters.map((cluster) => clusterText(cluster).length),
    0,
  );
  return [
    ...wrapText(summary, { width, indent: "  " }),
    ...clusters.flatMap((cluster) => {
      const name = `  ${clusterText(cluster).padEnd(names)}  `;
      const [first = "", ...more] = wrapText(verdictText(cluster), { width: width && width - name.length, indent: "" });
      return [name + first, ...more.map((line) => " ".repeat(name.length) + line)];
    }),
  ];
}

/** Goes on after the cluster's name: `h100-east can run the job now`. */
function verdictText({ verdict, refusal }: SimulatedCluster): string {
  const why = refusal === undefined ? "" : `: ${refusal.message.replace(/^(?=needs |waits )/, "the job ")}`;
  switch (verdict) {
    case Verdict.FITS_NOW:
      return "can run the job now";
    case Verdict.WAITS:
      return `can run the job later${why}`;
    case Verdict.NEVER:
      return `can never run the job${why}`;
    default:
      return `has verdict ${verdict}${why}`;
  }
}
