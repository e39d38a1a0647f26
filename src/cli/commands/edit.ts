import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import { JobService, JobView } from "../../gen/gangway/v1/job_service_pb.ts";
import { CHANGEABLE, editableJson, editOf, looksTheSame } from "../jobs/edited-job.ts";
import { getJobByName, JOB_ARGUMENT } from "../jobs/job-name.ts";
import { type MaskedUpdate, updateJob } from "../jobs/update-job.ts";
import { type ReadyManifest, readManifests } from "../manifest/read-manifests.ts";
import { qualifiedName } from "../output/job-text.ts";
import { printLines } from "../output/print.ts";
import { yamlText } from "../output/terminal.ts";
import { CallError, STATUS } from "../rpc/call-error.ts";
import { rpcFailure } from "../rpc/rpc-failure.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import type { TextEditor } from "../shell/deps.ts";
import { CommandFailure, EXIT } from "../shell/exit.ts";

/** How often the editor opens for one edit: enough for a person, and an end for an editor that is a program. */
const OPENED_MAX = 10;
/** How often an update is repeated because the service has changed the job's status meanwhile. */
const STALE_MAX = 5;
/** The name under which manifests are read from a text. */
const STDIN = "-";

export function registerEdit(registrar: Registrar): void {
  const command = registrar.program
    .command("edit")
    .summary("Change a job in an editor")
    .description(
      "Open the manifest of a job in an editor, and apply what was changed when it is saved.\n" +
        `These fields can change: ${CHANGEABLE}.\n` +
        "If the service or this program refuses the change, the editor opens again with the reasons; saving the same " +
        "text again gives up.\n" +
        "The editor is that of KUBE_EDITOR, of EDITOR, or vi.",
    )
    .argument("<name>", JOB_ARGUMENT)
    .argument("[of-kind]", "the name, if a kind stands before it")
    .addHelpText("after", examples("gangway edit llama-pretrain", 'EDITOR="code --wait" gangway edit llama-pretrain'));
  onRun<object>(registrar, command, async (run, args) => {
    const job = await getJobByName(run, args, JobView.FULL);
    const editor = await run.deps.openEditor(`${job.metadata?.name ?? "job"}.yaml`);
    await new Edit(run, editor, job).finish();
    await editor.remove();
    return EXIT.ok;
  });
}

/** One edit, from the first opening of the editor to its end. */
class Edit {
  readonly #run: Run;
  readonly #editor: TextEditor;
  /** The job that the text was made of, or that a refused text is compared with. */
  #job: Job;

  constructor(run: Run, editor: TextEditor, job: Job) {
    this.#run = run;
    this.#editor = editor;
    this.#job = job;
  }

  /** Returns once the job is as it was edited. Throws if the user gives up, or if the edit cannot be made. */
  async finish(): Promise<void> {
    let text = yamlText(editableJson(this.#job));
    let errors: readonly string[] = [];
    for (let opened = 0; opened < OPENED_MAX; opened += 1) {
      const saved = await this.#open(commentsOf(qualifiedName(this.#job), errors) + text);
      const isSame = withoutComments(saved) === text;
      if (errors.length > 0 && isSame) throw this.#failure(errors);
      if (isSame || withoutComments(saved).trim() === "") return this.#printNoChange();
      text = withoutComments(saved);
      errors = await this.#apply(saved);
      if (errors.length === 0) return;
    }
    throw this.#failure([...errors, `the text was refused ${OPENED_MAX} times`]);
  }

  async #open(text: string): Promise<string> {
    const saved = await this.#editor.edit(text);
    if (saved.kind === "failed") throw this.#failure([saved.reason]);
    return saved.text;
  }

  /** Changes the job as the text says. Returns why it cannot; empty if it is done. */
  async #apply(text: string): Promise<readonly string[]> {
    const io = { ...this.#run.deps, readStdin: async () => text };
    const namespace = { name: this.#job.metadata?.namespace ?? "", isExplicit: false };
    const kinds = await this.#run.deps.kinds();
    const { ready, errors } = await readManifests([STDIN], { io, kinds, namespace });
    const [edited, ...more] = ready;
    if (errors.length > 0) return errors.map((error) => error.replace(/^stdin, document 1: /, ""));
    if (edited === undefined || more.length > 0) return ["the text must have one job"];
    for (let stale = 0; stale <= STALE_MAX; stale += 1) {
      const refused = await this.#become(edited);
      if (refused !== "stale") return refused;
      if (await this.#readAgain()) return ["the job was changed meanwhile: compare this text with `gangway get`"];
    }
    return ["the job changes too often now: save the same text later"];
  }

  /** Updates the job. "stale": it has another version than this edit knows. */
  async #become({ job, spelled }: ReadyManifest): Promise<readonly string[] | "stale"> {
    const edit = editOf(this.#job, job);
    if (edit.kind === "invalid") return edit.errors;
    if (edit.update === null) {
      this.#printNoChange();
      return [];
    }
    const refusal = await this.#update(edit.update);
    if (refusal === null) return [];
    if (refusal.code === STATUS.ABORTED) return "stale";
    return rpcFailure(refusal, this.#run.client.address).lines.map(spelled);
  }

  #printNoChange(): void {
    printLines(this.#run, [`${qualifiedName(this.#job)}: no change`]);
  }

  /** Null: the job is updated. Throws an error that is not about the change, such as an unavailable service. */
  async #update(update: MaskedUpdate): Promise<CallError | null> {
    const { namespace = "", name = "", resourceVersion = "" } = this.#job.metadata ?? {};
    try {
      await updateJob(this.#run, { namespace, name }, "edited", { ...update, resourceVersion });
      return null;
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      const failure = rpcFailure(error, this.#run.client.address);
      if (failure.exitCode !== EXIT.refused) throw this.#failure(failure.lines, failure.exitCode);
      return error;
    }
  }

  /** True if a user would see another text now. The version of a job also grows when only its status changes. */
  async #readAgain(): Promise<boolean> {
    const { uid = "" } = this.#job.metadata ?? {};
    const { job } = await this.#run.client.call(JobService.method.getJob, { uid, view: JobView.FULL });
    if (job === undefined) throw new Error("the service returned no job");
    const isChanged = !looksTheSame(this.#job, job);
    this.#job = job;
    return isChanged;
  }

  #failure(errors: readonly string[], exitCode: number = EXIT.refused): CommandFailure {
    const lines = errors.map((error) =>
      error.startsWith("error: ") || error.startsWith(" ") ? error : `error: ${error}`,
    );
    return new CommandFailure(exitCode, [...lines, `nothing was changed; the text is in ${this.#editor.path}`]);
  }
}

function withoutComments(text: string): string {
  return text.replace(/^#.*\n?/gm, "");
}

/** The lines above the text. Each is a comment. */
function commentsOf(name: string, errors: readonly string[]): string {
  const why = errors.length === 0 ? [] : [`${name} was not changed:`, ...errors.map((error) => `  ${error}`), ""];
  const lines = [
    ...why,
    "Change the job, save the file, and end the editor. Lines that begin with # are ignored.",
    `Only these fields can change: ${CHANGEABLE}.`,
    "An empty file, or one that was not changed, changes nothing.",
  ];
  return lines
    .flatMap((line) => line.split("\n"))
    .map((line) => `# ${line}`.trimEnd())
    .join("\n")
    .concat("\n");
}
