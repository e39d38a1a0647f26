/**
 * The kinds of jobs that a process serves: those of Gangway and those of plugins. It lets operators add kinds without a
 * change of Gangway, and refuses a wrong plugin at start-up.
 */
import { invariant } from "../../runtime/assert.ts";
import { isJsonObject } from "../../runtime/json.ts";
import { batchJob } from "./batch/batch-job.ts";
import { checkKind } from "./check-kind.ts";
import { guarded } from "./guarded.ts";
import { jobSet } from "./jobset/jobset.ts";
import type { Kind } from "./kind.ts";
import { caffe2Job } from "./kubeflow/caffe2-job.ts";
import { jaxJob } from "./kubeflow/jax-job.ts";
import { mpiJob } from "./kubeflow/mpi-job.ts";
import { paddleJob } from "./kubeflow/paddle-job.ts";
import { pytorchJob } from "./kubeflow/pytorch-job.ts";
import { tfJob } from "./kubeflow/tf-job.ts";
import { xgboostJob } from "./kubeflow/xgboost-job.ts";
import { plainJob } from "./plain-job.ts";
import type { PluginEntry } from "./plugin.ts";
import { trainJob } from "./trainjob/trainjob.ts";

/** The kinds of Gangway itself, in the order of lists. */
export const OWN_ENTRY: PluginEntry = {
  id: "gangway",
  kinds: [pytorchJob, tfJob, mpiJob, xgboostJob, paddleJob, jaxJob, caffe2Job, plainJob, batchJob, jobSet, trainJob],
};

export const KINDS: readonly Kind[] = OWN_ENTRY.kinds;

/** Known kinds that are not served, by name, with the reason. */
export const UNSERVED_KINDS: ReadonlyMap<string, string> = new Map([
  ["MXJob", "Apache MXNet is retired, and Kubeflow has dropped the kind"],
]);

/** The kinds that a process serves, and their plugins. Each name is served once; at most one kind is the default. */
export type Registry = {
  /** Every kind, in the order of lists. */
  readonly all: readonly Kind[];
  /** Returns the kind of this name, else the default kind. Undefined if the name is unknown or not served. */
  readonly kindOf: (name: string) => Kind | undefined;
  /** Returns the kind whose manifests have this `apiVersion` and `kind`. */
  readonly ofManifest: (apiVersion: string, kind: string) => Kind | undefined;
  /** The kind that serves the names that no other kind has. Undefined: there is none. */
  readonly defaultKind: Kind | undefined;
  /** Returns the plugin whose kind serves this name. */
  readonly entryOf: (name: string) => PluginEntry | undefined;
};

/** @throws Error that names the wrong member of an entry, or the name that two entries share. */
export function createRegistry(entries: readonly PluginEntry[]): Registry {
  for (const entry of entries) checkEntry(entry);
  const served = entries.map((entry) => (entry === OWN_ENTRY ? entry : { ...entry, kinds: entry.kinds.map(guarded) }));
  return registryOf(served);
}

function registryOf(entries: readonly PluginEntry[]): Registry {
  const twice = firstTwice(entries.map(({ id }) => id));
  if (twice !== undefined) throw new Error(`two plugins have the id ${twice}`);
  const kinds = entries.flatMap((entry) => entry.kinds);
  // Users could not tell apart two names that differ only in case.
  const taken = firstTwice(kinds.map(({ name }) => name.toLowerCase()));
  if (taken !== undefined) throw new Error(twiceText(taken, entries));
  const defaults = entries.filter(({ isDefault }) => isDefault === true);
  if (defaults.length > 1)
    throw new Error(`only one plugin can be the default, but these are: ${defaults.map(({ id }) => id).join(", ")}`);
  const byName = new Map(entries.flatMap((entry) => entry.kinds.map((kind) => [kind.name, { entry, kind }] as const)));
  const [fallback] = defaults.flatMap((entry) => entry.kinds.slice(0, 1).map((kind) => ({ entry, kind })));
  const find = (name: string) =>
    byName.get(name) ?? (UNSERVED_KINDS.has(name) || !isKindName(name) ? undefined : fallback);
  const defaultKind = fallback?.kind;
  const byManifest = new Map(kinds.map((kind) => [`${kind.apiVersion} ${kind.manifestKind ?? kind.name}`, kind]));
  return {
    all: kinds,
    defaultKind,
    kindOf: (name) => find(name)?.kind,
    entryOf: (name) => find(name)?.entry,
    ofManifest: (apiVersion, kind) => byManifest.get(`${apiVersion} ${kind}`),
  };
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

/**
 * The name of the kind that serves a job. If that is the default kind, it differs from the name in the job's spec.
 * Metrics use this name, because the number of kinds is bounded.
 */
export function servedName(kinds: Registry, { spec }: { readonly spec: { readonly kind: string } }): string {
  return kinds.kindOf(spec.kind)?.name ?? spec.kind;
}

/** The kind of an accepted job. Throws if the kind is no longer served. */
export function kindOfJob(
  kinds: Registry,
  { uid, spec }: { readonly uid: string; readonly spec: { readonly kind: string } },
): Kind {
  const kind = kinds.kindOf(spec.kind);
  invariant(kind !== undefined, `job ${uid} is of a kind that is served, not ${spec.kind}`);
  return kind;
}

const ID = /^[A-Za-z0-9][-A-Za-z0-9._/@]{0,127}$/;
const MEMBERS: readonly (keyof PluginEntry)[] = ["id", "kinds", "isDefault", "load"];

/** Checks an entry that a module exports, which may be any value. @throws Error that names the wrong member. */
function checkEntry(entry: unknown): asserts entry is PluginEntry {
  if (!isJsonObject(entry)) throw new Error("a plugin must be an object with id and kinds");
  const { id, kinds, isDefault, load } = entry as Record<string, unknown>;
  if (typeof id !== "string" || !ID.test(id)) {
    throw new Error("a plugin's id must be 1 to 128 letters, digits, dashes, dots, slashes and @");
  }
  const must = (holds: boolean, what: string) => {
    if (!holds) throw new Error(`plugin ${id}: ${what}`);
  };
  const unknown = Object.keys(entry).find((member) => !MEMBERS.some((known) => known === member));
  must(unknown === undefined, `${unknown} is not a member of a plugin; members are: ${MEMBERS.join(", ")}`);
  must(Array.isArray(kinds) && kinds.length > 0, "kinds must be a list of at least one kind");
  must(isDefault === undefined || typeof isDefault === "boolean", "isDefault must be true or false");
  must(load === undefined || typeof load === "function", "load must be a function");
  for (const kind of kinds as readonly unknown[]) checkKind(kind, { isOwn: (entry as unknown) === OWN_ENTRY }, must);
  const services = (kinds as PluginEntry["kinds"]).filter(({ runs }) => runs === "service");
  must(services.length === 0 || load !== undefined, `load is required, because ${services[0]?.name} runs a service`);
}
