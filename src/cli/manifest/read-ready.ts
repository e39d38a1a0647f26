import { Option } from "commander";
import type { ManifestRules } from "../../manifest/read-manifest.ts";
import type { Run } from "../run/run-command.ts";
import { CommandFailure, EXIT, usageFailure } from "../shell/exit.ts";
import { runtimeFinder } from "./find-runtime.ts";
import { GroupedNotes } from "./grouped-notes.ts";
import { type ReadyManifest, readManifests } from "./read-manifests.ts";

/** `-f` of commands that read manifests. */
export function filenameOption(): Option {
  return new Option(
    "-f, --filename <path...>",
    "files, folders of *.yaml, *.yml and *.json files, or - for stdin; may be repeated",
  );
}

export function ignoreForeignOption(): Option {
  return new Option("--ignore-foreign", "skip documents that are not jobs, such as a Service, and name them");
}

export type ReadReadyOptions = ManifestRules & {
  /** Skips documents that are not jobs, and names them. Omitted: they are errors. */
  readonly ignoreForeign?: boolean;
  /** True: an ignored member is an error. Omitted: it is a warning. */
  readonly strict?: boolean;
  /** The line after the errors: what the command did not do because of them. */
  readonly otherwise: string;
};

/** Reads all manifests before the first is sent; throws with the errors of all of them. Prints their warnings. */
export async function readReady(
  run: Run,
  paths: readonly string[],
  { ignoreForeign = false, strict = false, otherwise, settings, suspended }: ReadReadyOptions,
): Promise<readonly ReadyManifest[]> {
  if (paths.length === 0) throw usageFailure("give the manifests: files, folders, or - for stdin");
  const namespace = { name: run.namespace, isExplicit: run.isNamespaceGiven };
  const read = await readManifests(paths, {
    io: run.deps,
    kinds: await run.deps.kinds(),
    ignoresForeign: ignoreForeign,
    namespace,
    findRuntime: runtimeFinder(run.client),
    settings,
    suspended,
  });
  const { ready, foreign } = read;
  const [errors, warnings] = strict ? [[...read.errors, ...read.warnings], []] : [read.errors, read.warnings];
  if (ignoreForeign) for (const one of foreign) run.deps.stderr(`skipped ${one}\n`);
  printNotes(run, warnings, "warning");
  printNotes(run, read.notes, "note");
  if (errors.length > 0) {
    const way = ignoreForeign || foreign.length === 0 ? "" : "; --ignore-foreign skips documents that are not jobs";
    throw new CommandFailure(EXIT.refused, [...errors.map((error) => `error: ${error}`), otherwise + way]);
  }
  if (ready.length === 0) throw usageFailure(`there is no manifest in ${paths.join(", ")}`);
  return ready;
}

function printNotes(run: Run, lines: readonly string[], word: "warning" | "note"): void {
  using notes = new GroupedNotes(run.deps.stderr, word);
  for (const line of lines) notes.add(line);
}
