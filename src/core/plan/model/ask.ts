/**
 * The part of a job that decides whether and where its gang fits, without the templates of its pods. The planner
 * compares thousands of gangs; templates may be megabytes, and thousands of gangs have equal asks.
 */
import { compareText } from "../../../runtime/compare-text.ts";
import { contentHash } from "../../../runtime/content-hash.ts";
import {
  arrayAt,
  canonicalJson,
  type Json,
  type JsonObject,
  objectAt,
  stringAt,
  stringMapAt,
} from "../../../runtime/json.ts";
import { specNow } from "../../job/interruptible.ts";
import type { Job } from "../../job/job.ts";
import type { TopologyWish } from "../../job/placement/topology-wish.ts";
import type { NewJob } from "../../job/request/requests.ts";
import { firstMembers, memberOrder } from "../../job/roles.ts";
import { type JobSpec, totalReplicas } from "../../job/spec.ts";
import { defaultContainerOf } from "../../kinds/containers.ts";
import { elasticRolesOf, isService, type Kind } from "../../kinds/kind.ts";
import type { Registry } from "../../kinds/registry.ts";
import { type AddedPort, hostPortsOf } from "../../pods/fit/host-ports.ts";
import { podRequests, type Resources } from "../../pods/resources.ts";

/** Pods that a fit cannot tell apart. */
export type PodClass = {
  /** Without resources of which the pods request nothing. */
  readonly requests: Resources;
  /**
   * The members of a pod's spec that decide which nodes allow it: `nodeSelector`, `affinity` with its required node
   * affinity alone, `tolerations`. Omits members without an effect.
   */
  readonly scheduling: JsonObject;
  /** The names of the ports of its node that a pod takes, by `hostPortsOf`. Omitted: it takes none. */
  readonly hostPorts?: readonly string[];
};

/** The members of one replica type. */
export type AskRole = {
  /** The name of the replica type, as its kind spells it. */
  readonly role: string;
  readonly replicas: number;
  /** How many of them are among the fewest members that the gang accepts. */
  readonly first: number;
  /** The place of their pod class in `podClasses`. */
  readonly podClass: number;
  /**
   * How near each other its members are, with the slices of the job's wish if the job has no other replica type.
   * Omitted: no wish of its own.
   */
  readonly topology?: TopologyWish;
};

/** Everything that a plan reads of a job's spec, but its queue, priority and suspension. */
export type Ask = {
  /** In the order in which members are admitted. */
  readonly roles: readonly AskRole[];
  /** Each one once, in the order of the roles. */
  readonly podClasses: readonly PodClass[];
  readonly placement: Omit<Job["spec"]["placement"], "topology">;
  /** How near each other all members are together. It has no slices: those are of a replica type. Omitted: no wish. */
  readonly topology?: Omit<TopologyWish, "slices">;
  /** True if the gang may grow step by step. */
  readonly elastic: boolean;
  /** True for a job without pods, which needs no capacity in a cluster. */
  readonly service: boolean;
};

/** An ask, and the hash by which jobs name it. */
export type HashedAsk = { readonly hash: string; readonly ask: Ask };

/** A job that is ready to be recorded, with its ask. Omitted: it is made when the job is recorded. */
export type AskedJob = NewJob & { readonly asked?: HashedAsk };

/** The members of a gang and their pods. */
export type AskMembers = Pick<Ask, "roles" | "podClasses">;

/**
 * The ask of a job as it is now. It changes with the numbers of replicas, and once an interruptible job stops being
 * interruptible. Jobs that a plan cannot tell apart have asks with equal canonical JSON.
 */
export function askOf(job: Pick<Job, "spec" | "status">, kinds: Registry): Ask {
  const spec = admissibleSpec(job);
  const { clusters, clusterSelector, gpuModels } = spec.placement;
  const kind = kinds.kindOf(spec.kind);
  return {
    ...askMembers(spec, kind),
    placement: { clusters, clusterSelector: sorted(clusterSelector), gpuModels },
    ...wishOfJob(spec),
    elastic: elasticRolesOf(kind, spec).length > 0,
    service: isService(kind),
  };
}

function wishOfJob({ placement }: JobSpec): Pick<Ask, "topology"> {
  const { slices: _ofRole, ...level } = placement.topology ?? {};
  return Object.keys(level).length === 0 ? {} : { topology: level };
}

/** The wish of a replica type. The slices of a job's wish are those of its only replica type. */
function wishOfRole({ placement, replicaSpecs }: JobSpec, role: string): Pick<AskRole, "topology"> {
  const own = replicaSpecs[role]?.topology;
  const sliced = placement.topology?.slices;
  const ofJob = sliced !== undefined && Object.keys(replicaSpecs).length === 1 ? sliced : undefined;
  const slices = own?.slices ?? ofJob;
  if (own === undefined && slices === undefined) return {};
  return { topology: { ...own, ...(slices === undefined ? {} : { slices }) } };
}

/** The ask of a job, with its hash. */
export function hashedAsk(job: Pick<Job, "spec" | "status">, kinds: Registry): HashedAsk {
  return hashed(askOf(job, kinds));
}

export function hashed(ask: Ask): HashedAsk {
  return { hash: contentHash(ask), ask };
}

/** The spec that the next admission follows. All members are needed once a part of them has waited in vain. */
function admissibleSpec(job: Pick<Job, "spec" | "status">): JobSpec {
  const spec = specNow(job);
  if (job.status.backoff?.whole !== true) return spec;
  const schedulingPolicy = { ...spec.runPolicy.schedulingPolicy, minAvailable: totalReplicas(spec) };
  return { ...spec, runPolicy: { ...spec.runPolicy, schedulingPolicy } };
}

/**
 * The members of a gang from the templates of its job's spec, with what the kind adds to their pods. Kind omitted:
 * without that.
 */
export function askMembers(spec: JobSpec, kind?: Kind): AskMembers {
  const first = firstMembers(spec, spec.runPolicy.schedulingPolicy.minAvailable);
  const podClasses: PodClass[] = [];
  const places = new Map<string, number>();
  const roles = memberOrder(spec).map((role): AskRole => {
    const podClass = podClassOf(...podOf(spec, role, kind));
    const key = canonicalJson(podClass);
    const place = places.get(key) ?? podClasses.push(podClass) - 1;
    places.set(key, place);
    const replicas = spec.replicaSpecs[role]?.replicas ?? 0;
    return { role, replicas, first: first[role] ?? 0, podClass: place, ...wishOfRole(spec, role) };
  });
  return { roles, podClasses };
}

/** The spec of a replica type's pods with the init containers of its kind, and the port that the kind adds. */
function podOf(spec: JobSpec, role: string, kind: Kind | undefined): readonly [JsonObject, AddedPort | null] {
  const podSpec = objectAt(spec.replicaSpecs[role]?.template, "spec");
  if (kind === undefined) return [podSpec, null];
  const added = kind.countedInit?.(spec, role) ?? [];
  const initContainers = [...arrayAt(podSpec, "initContainers"), ...added];
  const container = stringAt(defaultContainerOf(podSpec, kind), "name") ?? "";
  const port = kind.defaultPort === null ? null : { container, ...kind.defaultPort };
  return [added.length === 0 ? podSpec : { ...podSpec, initContainers }, port];
}

/** The class of the pods with this spec. */
export function podClassOf(podSpec: JsonObject, added: AddedPort | null = null): PodClass {
  const requested = Object.entries(podRequests(podSpec)).filter(([, amount]) => amount !== 0);
  const hostPorts = hostPortsOf(podSpec, added);
  return {
    requests: sorted(Object.fromEntries(requested)),
    scheduling: schedulingOf(podSpec),
    ...(hostPorts.length === 0 ? {} : { hostPorts }),
  };
}

/** The part of a pod's spec that `nodeAllows` reads. Lists whose order has no effect are sorted. */
function schedulingOf(podSpec: JsonObject): JsonObject {
  const nodeSelector = sorted(stringMapAt(podSpec, "nodeSelector"));
  const required = requiredAffinity(podSpec);
  const tolerations = distinct(
    arrayAt(podSpec, "tolerations")
      .map(tolerationOf)
      .filter(({ effect }) => effect !== "PreferNoSchedule"),
  );
  return {
    ...(required === null
      ? {}
      : { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } } }),
    ...(Object.keys(nodeSelector).length === 0 ? {} : { nodeSelector }),
    ...(tolerations.length === 0 ? {} : { tolerations }),
  };
}

/** The required node affinity of a pod. Null: it has none. One without terms allows no node, so it stays. */
function requiredAffinity(podSpec: JsonObject): JsonObject | null {
  const nodeAffinity = objectAt(objectAt(podSpec, "affinity"), "nodeAffinity");
  const required = nodeAffinity["requiredDuringSchedulingIgnoredDuringExecution"];
  if (required === undefined || required === null) return null;
  const terms = arrayAt(required, "nodeSelectorTerms").map(termOf);
  return { nodeSelectorTerms: distinct(terms.filter((term) => Object.keys(term).length > 0)) };
}

function termOf(term: Json): JsonObject {
  const matchers = ["matchExpressions", "matchFields"].map((list) => {
    return [list, distinct(arrayAt(term, list).map(matcherOf))] as const;
  });
  return Object.fromEntries(matchers.filter(([, list]) => list.length > 0));
}

function matcherOf(matcher: Json): JsonObject {
  const named = filled(matcher, ["key", "operator"]);
  const values = arrayAt(matcher, "values");
  if (values.length === 0) return named;
  const isOrdered = named["operator"] === "Gt" || named["operator"] === "Lt";
  return { ...named, values: isOrdered ? values.slice(0, 1) : distinct(values) };
}

function tolerationOf(toleration: Json): JsonObject {
  const isAny = stringAt(toleration, "operator") === "Exists";
  return filled(toleration, ["effect", "key", isAny ? "operator" : "value"]);
}

/** The members of these names that have a text. An empty text has the meaning of an omitted one. */
function filled(value: Json, members: readonly string[]): JsonObject {
  const texts = stringMapAt({ value }, "value");
  return Object.fromEntries(members.flatMap((member) => (texts[member] ? [[member, texts[member]]] : [])));
}

function sorted<T>(map: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(map).sort(([a], [b]) => compareText(a, b)));
}

/** Each value once, in an order that does not depend on theirs. */
function distinct<T extends Json>(values: readonly T[]): readonly T[] {
  const byText = new Map(values.map((value) => [canonicalJson(value), value]));
  return [...byText].sort(([a], [b]) => compareText(a, b)).map(([, value]) => value);
}
