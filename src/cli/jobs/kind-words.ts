/**
 * The kinds of jobs as people write them: `PyTorchJob`, `pytorchjobs`, `pytorch` or `pytorchjob.kubeflow.org`. A kind
 * that shares its name with another is named with its group: `job.batch` or `job.v1.batch`.
 */
import { nearestName } from "../../core/pods/nearest-name.ts";
import { JobService } from "../../gen/gangway/v1/job_service_pb.ts";
import type { Run } from "../run/run-command.ts";
import { usageFailure } from "../shell/exit.ts";

/** Words for jobs of any kind, as kubectl has them. A job's name is its own in its namespace, whatever its kind. */
const ANY: readonly string[] = ["job", "jobs"];

/** The part of a run that reads kinds. */
type KindsRun = Pick<Run, "deps" | "client">;

/** True if the word means jobs of any kind. */
export function isAnyKind(word: string): boolean {
  return ANY.includes(withoutGroup(word));
}

/** True if the word is one for this kind. */
export function isWordFor(word: string, kind: string): boolean {
  const dot = kind.indexOf(".");
  if (dot < 0) return wordsFor(kind).includes(withoutGroup(word));
  const [version = "", ...group] = kind.slice(dot + 1).split(".");
  const groups = [group.join("."), `${version}.${group.join(".")}`];
  const words = wordsFor(kind.slice(0, dot)).flatMap((plain) => groups.map((one) => `${plain}.${one}`.toLowerCase()));
  return words.includes(word.toLowerCase());
}

/** The kind of this program that a word means. Null: none of them. */
export async function localKind({ deps }: Pick<Run, "deps">, word: string): Promise<string | null> {
  return kindAmong(word, await localKinds(deps));
}

/** The kind of this program or of the service that a word means. Null: none. */
export async function anyKind(run: KindsRun, word: string): Promise<string | null> {
  return (await localKind(run, word)) ?? kindAmong(word, (await servedKinds(run)).names);
}

/** The kind that a value of `--kind` means. Refuses a word that is none, unless the service takes unknown kinds. */
export async function kindOfOption(run: KindsRun, word: string): Promise<string> {
  const local = await localKind(run, word);
  if (local !== null) return local;
  const { names, takesUnknown } = await servedKinds(run);
  const kind = kindAmong(word, names);
  if (kind !== null) return kind;
  if (takesUnknown) return word;
  throw usageFailure(`there is no kind ${word}; ${meantOrAll(word, names)}`);
}

/** `did you mean PyTorchJob?`, or all kinds. */
export async function kindHelp(run: KindsRun, word: string): Promise<string> {
  return meantOrAll(word, (await servedKinds(run)).names);
}

/** A name that is close to an unknown one, or all of them. */
export function meantOrAll(word: string, kinds: readonly string[]): string {
  const meant = nearestName(withoutGroup(word), kinds);
  return meant === null ? `the kinds are ${kinds.join(", ")}` : `did you mean ${meant}?`;
}

function kindAmong(word: string, kinds: readonly string[]): string | null {
  return kinds.find((kind) => isWordFor(word, kind)) ?? null;
}

async function localKinds(deps: Run["deps"]): Promise<readonly string[]> {
  return (await deps.kinds()).all.map(({ name }) => name);
}

async function servedKinds({ client }: Pick<Run, "client">) {
  const { kinds } = await client.call(JobService.method.listKinds, {});
  return { names: kinds.map(({ name }) => name), takesUnknown: kinds.some(({ isDefault }) => isDefault) };
}

/** `pytorchjob`, `pytorchjobs` and `pytorch`. A kind that is only `Job` has no shorter word. */
function wordsFor(kind: string): readonly string[] {
  const word = kind.toLowerCase();
  const short = word.replace(/job$/, "");
  const plural = /(?:s|x|ch|sh)$/.test(word) ? `${word}es` : word.replace(/([^aeiou])y$/, "$1ie").concat("s");
  return short === "" || short === word ? [word, plural] : [word, plural, short];
}

/** kubectl writes `pytorchjobs.kubeflow.org` and `pytorchjobs.v1.kubeflow.org`. */
function withoutGroup(word: string): string {
  return word.toLowerCase().replace(/\.(?:v\d\w*\.)?(?:kubeflow\.org|gangway\.dev)$/, "");
}
