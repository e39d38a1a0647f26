import { invariant } from "../../runtime/assert.ts";
import { caffe2Job } from "./caffe2-job.ts";
import { checkEntry } from "./check-entry.ts";
import { guarded } from "./guarded.ts";
import { jaxJob } from "./jax-job.ts";
import type { Kind } from "./kind.ts";
import { mpiJob } from "./mpi-job.ts";
import { paddleJob } from "./paddle-job.ts";
import { plainJob } from "./plain-job.ts";
import type { PluginEntry } from "./plugin.ts";
import { pytorchJob } from "./pytorch-job.ts";
import { tfJob } from "./tf-job.ts";
import { xgboostJob } from "./xgboost-job.ts";

/** Our own kinds, in the order in which they are listed. */
export const OWN_ENTRY: PluginEntry = {
  id: "gangway",
  kinds: [pytorchJob, tfJob, mpiJob, xgboostJob, paddleJob, jaxJob, caffe2Job, plainJob],
};

export const KINDS: readonly Kind[] = OWN_ENTRY.kinds;

/** Kinds whose name is known and that are not served, with the reason. */
export const UNSERVED_KINDS: ReadonlyMap<string, string> = new Map([
  ["MXJob", "Apache MXNet is retired, and Kubeflow has dropped the kind"],
]);

/** Which kinds there are, and whose they are: each name once, at most one default. */
export type Registry = {
  readonly entries: readonly PluginEntry[];
  readonly kinds: readonly Kind[];
  /** The kind of that name, or the default where nobody else serves it; undefined where it is unknown or not served. */
  readonly kindOf: (name: string) => Kind | undefined;
  /** The kind that serves names which nobody else does; undefined where there is none. */
  readonly defaultKind: Kind | undefined;
  /** Whose plugin runs jobs of that kind. */
  readonly entryOf: (name: string) => PluginEntry | undefined;
};

/** @throws Error saying what is wrong with an entry, or what two of them have in common. */
export function createRegistry(entries: readonly PluginEntry[]): Registry {
  for (const entry of entries) checkEntry(entry);
  const served = entries.map((entry) => (entry === OWN_ENTRY ? entry : { ...entry, kinds: entry.kinds.map(guarded) }));
  return registryOf(served);
}

function registryOf(entries: readonly PluginEntry[]): Registry {
  const twice = firstTwice(entries.map(({ id }) => id));
  if (twice !== undefined) throw new Error(`two plugins have the id ${twice}`);
  const kinds = entries.flatMap((entry) => entry.kinds);
  // Nobody could tell two apart that differ in case alone.
  const taken = firstTwice(kinds.map(({ name }) => name.toLowerCase()));
  if (taken !== undefined) throw new Error(twiceText(taken, entries));
  const defaults = entries.filter(({ isDefault }) => isDefault === true);
  if (defaults.length > 1)
    throw new Error(`there can be one default, and these are: ${defaults.map(({ id }) => id).join(", ")}`);
  const byName = new Map(entries.flatMap((entry) => entry.kinds.map((kind) => [kind.name, { entry, kind }] as const)));
  const [fallback] = defaults.flatMap((entry) => entry.kinds.slice(0, 1).map((kind) => ({ entry, kind })));
  const find = (name: string) =>
    byName.get(name) ?? (UNSERVED_KINDS.has(name) || !isKindName(name) ? undefined : fallback);
  const defaultKind = fallback?.kind;
  return { entries, kinds, defaultKind, kindOf: (name) => find(name)?.kind, entryOf: (name) => find(name)?.entry };
}

function twiceText(taken: string, entries: readonly PluginEntry[]): string {
  const all = entries.flatMap(({ id, kinds }) => kinds.map(({ name }) => ({ id, name })));
  const [first, second] = all.filter(({ name }) => name.toLowerCase() === taken);
  const other = first?.name === second?.name ? "" : ` as ${first?.name}`;
  return `kind ${second?.name} is registered twice: by plugin ${first?.id}${other} and by plugin ${second?.id}`;
}

function isKindName(name: string): boolean {
  return /^[A-Za-z][A-Za-z0-9]{0,62}$/.test(name);
}

function firstTwice(names: readonly string[]): string | undefined {
  return names.find((name, at) => names.indexOf(name) < at);
}

let registry = createRegistry([OWN_ENTRY]);

/**
 * Serves these kinds beside our own. Called by the composition root, before anything asks for a kind: every decision is made with one registry.
 */
export function serveKinds(entries: readonly PluginEntry[]): void {
  registry = createRegistry([OWN_ENTRY, ...entries]);
}

/** The kinds that are served, in the order in which they are listed. */
export function servedKinds(): readonly Kind[] {
  return registry.kinds;
}

/** The kind of that name; undefined where it is unknown or not served. */
export function kindOf(name: string): Kind | undefined {
  return registry.kindOf(name);
}

/** The name of the kind that serves a job: where that is the default, it is not what the job says, and there are no more of them than kinds. */
export function servedName({ spec }: { readonly spec: { readonly kind: string } }): string {
  return kindOf(spec.kind)?.name ?? spec.kind;
}

/** The kind of a job that was accepted. Throws where it is not served any more. */
export function kindOfJob({ uid, spec }: { readonly uid: string; readonly spec: { readonly kind: string } }): Kind {
  const kind = kindOf(spec.kind);
  invariant(kind !== undefined, `job ${uid} is of a kind that is served, not ${spec.kind}`);
  return kind;
}

/** The kind that also serves names which nobody else does; undefined where there is none. */
export function defaultKind(): Kind | undefined {
  return registry.defaultKind;
}

/** Whose plugin runs jobs of that kind; undefined where it is unknown or not served. */
export function entryOf(name: string): PluginEntry | undefined {
  return registry.entryOf(name);
}
