/** `gangway runtime apply` and `create`: sends the training runtimes of manifests. */
import { NoteList } from "../../../core/job/request/notes.ts";
import { type RuntimeName, type RuntimeSettings, runtimeText } from "../../../core/kinds/trainjob/training-runtime.ts";
import { type Runtime, RuntimeService } from "../../../gen/gangway/v1/runtime_service_pb.ts";
import { isRuntimeManifest, readRuntime } from "../../../manifest/read-runtime.ts";
import { canonicalJson, type JsonObject, objectAt, stringAt } from "../../../runtime/json.ts";
import type { ManifestDocument } from "../../manifest/documents.ts";
import { itemsOfList, noteLine, readSteps } from "../../manifest/read-manifests.ts";
import { filenameOption } from "../../manifest/read-ready.ts";
import { readSources } from "../../manifest/sources.ts";
import { printLines } from "../../output/print.ts";
import { CallError, isNotFound, STATUS } from "../../rpc/call-error.ts";
import { detailsOf, statusFailure } from "../../rpc/rpc-failure.ts";
import { examples, onRun, type Registrar, type Run } from "../../run/run-command.ts";
import { CommandFailure, EXIT, usageFailure } from "../../shell/exit.ts";

type ApplyOptions = { readonly filename?: readonly string[]; readonly dryRun?: boolean };

/** One runtime of the manifests, and its place. */
type ReadyRuntime = { readonly where: string; readonly runtime: RuntimeSettings };

/** Sends one runtime. Returns what was done, such as `created`. */
type Send = (run: Run, runtime: RuntimeSettings, isTried: boolean) => Promise<"created" | "updated" | "unchanged">;

export function registerApplyRuntimes(registrar: Registrar): void {
  registerSend(registrar, "apply", {
    description: "Create or update the training runtimes of manifests. Skips other documents, and names them.",
    send: apply,
  });
  registerSend(registrar, "create", {
    description: "Create the training runtimes of manifests. Refuses those that exist.",
    send: createOne,
  });
}

function registerSend(
  registrar: Registrar,
  verb: "apply" | "create",
  { description, send }: { readonly description: string; readonly send: Send },
): void {
  const command = registrar.program
    .command(verb)
    .argument("[file...]", "files or folders, as for --filename")
    .description(description)
    .addOption(filenameOption())
    .option("--dry-run", "only check the manifests, change nothing")
    .addHelpText(
      "after",
      examples(`gangway runtime ${verb} -f runtimes.yaml`, `gangway runtime ${verb} -f runtimes/ --dry-run`),
    );
  onRun<ApplyOptions>(registrar, command, async (run, args, { filename = [], dryRun = false }) => {
    const ready = await readRuntimes(run, [...args, ...filename]);
    let refused = 0;
    for (const one of ready) if (!(await sendAndPrint(run, one, { send, isTried: dryRun }))) refused += 1;
    return refused > 0 ? EXIT.refused : EXIT.ok;
  });
}

/** Reads all manifests before the first is sent; throws with the errors of all of them. */
async function readRuntimes(run: Run, paths: readonly string[]): Promise<readonly ReadyRuntime[]> {
  if (paths.length === 0) throw usageFailure("give the manifests: files, folders, or - for stdin");
  const ready: ReadyRuntime[] = [];
  const errors = new NoteList<{ readonly message: string; readonly more?: number }>();
  const namespace = { name: run.namespace, isExplicit: run.isNamespaceGiven };
  const take = ({ where, value }: ManifestDocument) => {
    if (!isRuntimeManifest(value)) {
      run.deps.stderr(`skipped ${where}: ${shownObject(value)}\n`);
      return;
    }
    const read = readRuntime(value, namespace);
    if (read.kind === "runtime") ready.push({ where, runtime: read.runtime });
    else errors.addAll(read.errors.map((note) => ({ ...note, message: noteLine(where, note) })));
  };
  for await (const step of readSteps(await readSources(paths, run.deps), run.deps)) {
    if ("error" in step) errors.add(() => ({ message: step.error }));
    else for (const document of itemsOfList(step)) take(document);
  }
  const lines = [...errors.list((rest) => rest).map(({ message }) => message), ...duplicates(ready)];
  if (lines.length > 0) {
    throw new CommandFailure(EXIT.refused, [...lines.map((one) => `error: ${one}`), "nothing was applied"]);
  }
  if (ready.length > 0) return ready;
  throw usageFailure(`there is no TrainingRuntime or ClusterTrainingRuntime in ${paths.join(", ")}`);
}

/** `Service web`, cut to the lengths that Kubernetes allows. */
function shownObject(value: ManifestDocument["value"]): string {
  const [kind = "", name = ""] = [stringAt(value, "kind"), stringAt(objectAt(value, "metadata"), "name")];
  return `${kind.slice(0, 63)} ${name.slice(0, 253)}`.trim() || "it has no kind";
}

function duplicates(ready: readonly ReadyRuntime[]): readonly string[] {
  const takenBy = new Map<string, string>();
  return ready.flatMap(({ where, runtime }) => {
    const taken = takenBy.get(runtimeText(runtime));
    takenBy.set(runtimeText(runtime), where);
    if (taken === undefined) return [];
    return [noteLine(where, { field: "metadata.name", message: `${runtime.name} is also the name of ${taken}` })];
  });
}

/** False: the service has refused the runtime. */
async function sendAndPrint(
  run: Run,
  { where, runtime }: ReadyRuntime,
  { send, isTried }: { readonly send: Send; readonly isTried: boolean },
): Promise<boolean> {
  try {
    const done = await send(run, runtime, isTried);
    printLines(run, [`runtime/${runtimeText(runtime)} ${done}${isTried ? " (dry run)" : ""}`]);
    return true;
  } catch (error) {
    if (!(error instanceof CallError) || error.code === STATUS.CANCELLED) throw error;
    const failure = statusFailure({ code: error.code, message: error.details, details: detailsOf(error) });
    if (failure.exitCode !== EXIT.refused) throw error;
    run.deps.stderr(`${where}:\n${[...failure.lines, ...error.remedy].map(spelled).join("\n")}\n`);
    return false;
  }
}

/** Names the fields of the service as the manifest does. */
function spelled(text: string): string {
  return text.replaceAll(/\bruntime\.(name|namespace|labels)\b/g, "metadata.$1").replaceAll("runtime.spec", "spec");
}

const createOne: Send = async (run, runtime, isTried) => {
  await run.client.call(RuntimeService.method.createRuntime, { runtime: sentRuntime(runtime), validateOnly: isTried });
  return "created";
};

const apply: Send = async (run, runtime, isTried) => {
  const existing = await existingRuntime(run, runtime);
  if (existing === null) return createOne(run, runtime, isTried);
  const settings = ({ labels, spec }: Pick<Runtime, "labels" | "spec">) => canonicalJson([labels, spec ?? {}]);
  if (settings(existing) === settings(sentRuntime(runtime))) return "unchanged";
  const changed = { ...sentRuntime(runtime), resourceVersion: existing.resourceVersion };
  await run.client.call(RuntimeService.method.updateRuntime, { runtime: changed, validateOnly: isTried });
  return "updated";
};

function sentRuntime({ namespace, name, labels, spec }: RuntimeSettings) {
  return { namespace, name, labels: { ...labels }, spec: spec as Exclude<Runtime["spec"], undefined> & JsonObject };
}

/** Null: there is none, or the caller may not see it. */
async function existingRuntime(run: Run, { namespace, name }: RuntimeName): Promise<Runtime | null> {
  try {
    const { runtime } = await run.client.call(RuntimeService.method.getRuntime, { namespace, name });
    return runtime ?? null;
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}
