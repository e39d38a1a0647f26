import { setImmediate as nextTurn } from "node:timers/promises";
import { NoteList } from "../../core/job/request/notes.ts";
import type { FieldNote } from "../../core/job/request/sent.ts";
import type { Registry } from "../../core/kinds/registry.ts";
import { runtimeNamedIn } from "../../core/kinds/trainjob/train-job-spec.ts";
import type { RuntimeName } from "../../core/kinds/trainjob/training-runtime.ts";
import type { Job } from "../../gen/gangway/v1/job_pb.ts";
import { type DefaultNamespace, foreignName, type ManifestRules, readManifest } from "../../manifest/read-manifest.ts";
import { arrayAt, isJsonObject, type Json, type JsonObject, objectAt, stringAt } from "../../runtime/json.ts";
import { type DocumentStep, type ManifestDocument, readDocuments } from "./documents.ts";
import { type ManifestSource, readSources, type SourceIo } from "./sources.ts";

/**
 * A manifest that is ready to send. `where` names its file and document. `spelled` renames the service's fields in a
 * text to those of the manifest.
 */
export type ReadyManifest = {
  readonly where: string;
  readonly job: Job;
  readonly spelled: (text: string) => string;
};

/** The manifests that can be sent, and the errors and warnings of all, each with its place. */
type ManifestsRead = {
  readonly ready: readonly ReadyManifest[];
  /** The first ones; the last says how many more there are. */
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
  /** What was taken from members of other systems. */
  readonly notes: readonly string[];
  /** The documents that are no jobs, such as a Service, each with its kind and name. */
  readonly foreign: readonly string[];
};

type ReadOptions = {
  readonly io: SourceIo;
  readonly kinds: Registry;
  readonly namespace: DefaultNamespace;
  /** True: objects of other APIs, such as a Service, are no errors. */
  readonly ignoresForeign?: boolean;
  /** Omitted: TrainJobs may name no runtime. */
  readonly findRuntime?: FindRuntimeSpec;
} & Omit<ManifestRules, "runtimeOf">;

/** The spec of a training runtime. An empty namespace names one of the installation. Null: there is none. */
export type FindRuntimeSpec = (of: RuntimeName) => Promise<JsonObject | null>;

/** Reads the manifests that the paths name. */
export async function readManifests(paths: readonly string[], options: ReadOptions): Promise<ManifestsRead> {
  const ready: ReadyManifest[] = [];
  const errors = new NoteList<Line>();
  const warnings = new NoteList<Line>();
  const notes = new NoteList<Line>();
  const foreign: string[] = [];
  const take = async ({ where, value }: ManifestDocument) => {
    const other = foreignName(value, options.kinds);
    if (other !== null) foreign.push(`${where}: ${other}`);
    if (other !== null && options.ignoresForeign === true) return;
    const runtime = await runtimeOf(value, options);
    const manifest = readManifest(value, { ...options, runtimeOf: () => runtime });
    if (manifest.kind === "invalid") errors.addAll(manifest.errors.map((note) => line(where, note)));
    else {
      ready.push({ where, job: manifest.job, spelled: manifest.spelled });
      warnings.addAll(manifest.warnings.map((note) => line(where, note)));
      notes.addAll(manifest.notes.map((note) => line(where, note)));
    }
  };
  for await (const step of readSteps(await readSources(paths, options.io), options.io)) {
    if ("error" in step) errors.add(() => ({ message: step.error }));
    else for (const document of itemsOfList(step)) await take(document);
  }
  errors.addAll(duplicates(ready));
  return { ready, errors: textsOf(errors), warnings: textsOf(warnings), notes: textsOf(notes), foreign };
}

/** The runtime that a document names. Null: it names none, or there is none. */
async function runtimeOf(document: Json, { namespace, findRuntime }: ReadOptions): Promise<JsonObject | null> {
  const own = stringAt(objectAt(document, "metadata"), "namespace") ?? namespace.name;
  const named = runtimeNamedIn(document, own);
  return named === null || findRuntime === undefined ? null : findRuntime(named);
}

type Line = { readonly message: string; readonly more?: number };

function line(where: string, note: FieldNote): Line {
  return { ...note, message: noteLine(where, note) };
}

function textsOf(lines: NoteList<Line>): readonly string[] {
  return lines.list((rest) => rest).map(({ message }) => message);
}

/** Yields the documents of all sources. Gives the event loop a turn now and then, in which an interruption is heard. */
export async function* readSteps(
  sources: readonly ManifestSource[],
  { signal }: SourceIo,
): AsyncGenerator<DocumentStep> {
  for (const source of sources) {
    for (const step of readDocuments(source)) {
      if (step === null) await nextTurn(undefined, signal === undefined ? {} : { signal });
      else yield step;
    }
  }
}

/** The objects of a `List`, as `kubectl get -o yaml` prints several objects; else the document itself. */
export function itemsOfList(document: ManifestDocument): readonly ManifestDocument[] {
  const { where, value } = document;
  if (!isJsonObject(value) || value["apiVersion"] !== "v1" || value["kind"] !== "List") return [document];
  return arrayAt(value, "items").map((item, at) => ({ where: `${where}, item ${at + 1}`, value: item }));
}

/** One line of text about a field of a document. An empty `field` is the whole document. */
export function noteLine(where: string, note: { readonly field: string; readonly message: string }): string {
  return note.field === "" ? `${where}: ${note.message}` : `${where}: ${note.field}: ${note.message}`;
}

/** Refuses two manifests of one name: they would be the same job. */
function duplicates(ready: readonly ReadyManifest[]): readonly Line[] {
  const takenBy = new Map<string, string>();
  const errors: Line[] = [];
  for (const { where, job } of ready) {
    const { name = "", namespace = "" } = job.metadata ?? {};
    const key = `${namespace}/${name}`;
    const taken = takenBy.get(key);
    if (name === "") continue;
    if (taken === undefined) takenBy.set(key, where);
    else errors.push(line(where, { field: "metadata.name", message: `${name} is also the name of ${taken}` }));
  }
  return errors;
}
