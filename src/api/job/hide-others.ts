/** Shows why jobs wait without the names of jobs, callers, clusters, pools and queues that a caller may not see. */
import { INSTALLATION } from "../../core/access/scope.ts";
import type { Job } from "../../core/job/job.ts";
import {
  type MaySeeCluster,
  messageWithoutClusters,
  recordedWithoutClusters,
} from "../../core/plan/explain/hidden-clusters.ts";
import {
  type MayName,
  type ReportedWhy,
  reportedWithoutNames,
  withoutNames,
} from "../../core/plan/explain/hidden-names.ts";
import {
  admissionWithoutPools,
  clusterWithoutPools,
  type MaySeeQuota,
  messageWithoutQuotas,
  quotasWithoutNames,
} from "../../core/plan/explain/hidden-quotas.ts";
import type { ClusterRefusal, PlannedAdmission, QuotaRefusal, Refusal } from "../../core/plan/model/plan-types.ts";
import type { Simulation } from "../../core/plan/model/simulation.ts";
import type { CallAccess } from "../rpc/call-access.ts";

const NAMED_JOB = /^([^/\s]+)\/[^/\s]+$/;

/** The names that a caller may learn. Null: all clusters; all pools and queues. */
export type Sight = {
  readonly mayName: MayName;
  readonly maySee: MaySeeCluster | null;
  readonly maySeeQuota: MaySeeQuota | null;
};

/** The names that a job's owner knows anyway: the clusters and pools of its admissions, and its queue. */
export type Own = { readonly clusters: readonly (string | null)[]; readonly quotas: readonly string[] };

const NOTHING: Own = { clusters: [], quotas: [] };

export function ownOf({ admissions, spec }: Pick<Job, "admissions" | "spec">): Own {
  return {
    clusters: admissions.map(({ cluster }) => cluster),
    quotas: [spec.runPolicy.schedulingPolicy.queue, ...admissions.flatMap(({ flavors }) => Object.values(flavors))],
  };
}

/** Null: everything may be named to the caller. */
export function sightOf(access: CallAccess): Sight | null {
  const mayName = mayNameTo(access);
  const maySee = maySeeClusters(access, []);
  const maySeeQuota = maySeeQuotas(access);
  if (mayName === null && maySee === null && maySeeQuota === null) return null;
  return { mayName: mayName ?? (() => true), maySee, maySeeQuota };
}

/** Recorded words about why a job waits. */
export function wordsFor(sight: Sight, text: string, own = NOTHING): string {
  return namesNobody(text) ? text : hidden(sight, text, own);
}

/** Of the texts that are read now. */
const TEXTS_MAX = 1_000;
const TEXT_CHARS_MAX = 1_000;
const BLIND: Sight = {
  mayName: () => false,
  maySee: () => false,
  maySeeQuota: { pool: () => false, queue: () => false },
};
const namingNobody = new Map<string, boolean>();

/** True if a caller that may see nothing reads the same words: then every caller does. */
function namesNobody(text: string): boolean {
  const known = namingNobody.get(text);
  if (known !== undefined) return known;
  const isSame = hidden(BLIND, text, NOTHING) === text;
  if (namingNobody.size >= TEXTS_MAX) namingNobody.clear();
  if (text.length <= TEXT_CHARS_MAX) namingNobody.set(text, isSame);
  return isSame;
}

function hidden({ mayName, maySee, maySeeQuota }: Sight, text: string, { clusters, quotas }: Own): string {
  const named = withoutNames(text, mayName);
  const placed =
    maySee === null ? named : recordedWithoutClusters(named, (name) => clusters.includes(name) || maySee(name));
  return maySeeQuota === null ? placed : messageWithoutQuotas(placed, withOwn(maySeeQuota, quotas));
}

function withOwn(maySee: MaySeeQuota, own: readonly string[]): MaySeeQuota {
  return {
    pool: (name) => own.includes(name) || maySee.pool(name),
    queue: (name) => own.includes(name) || maySee.queue(name),
  };
}

/** Null: everyone. */
function mayNameTo(access: CallAccess): MayName | null {
  const seesCallers = access.may("tokens.get", INSTALLATION);
  if (seesCallers && access.may("jobs.get", INSTALLATION)) return null;
  return (holder) => {
    const namespace = NAMED_JOB.exec(holder)?.[1];
    if (namespace !== undefined) return access.may("jobs.get", { kind: "namespace", name: namespace });
    return seesCallers;
  };
}

/** The same words if they name nobody else. */
export function saidTo<T extends ReportedWhy>(access: CallAccess, said: T): T {
  const mayName = mayNameTo(access);
  return mayName === null ? said : reportedWithoutNames(said, mayName);
}

/** Which clusters may be shown to the caller; also those of the job itself. Null: all. */
export function maySeeClusters(access: CallAccess, own: readonly (string | null)[]): MaySeeCluster | null {
  if (access.may("clusters.get", INSTALLATION)) return null;
  return (name) => own.includes(name) || access.may("clusters.get", { kind: "cluster", name });
}

/** Which pools and queues may be shown to the caller. Null: all. */
function maySeeQuotas(access: CallAccess): MaySeeQuota | null {
  if (access.may("pools.get", INSTALLATION) && access.may("queues.get", INSTALLATION)) return null;
  return {
    pool: (name) => access.may("pools.get", { kind: "pool", name }),
    queue: (name) => access.may("queues.get", { kind: "queue", name }),
  };
}

/** The same refusal if the caller may see everything that it names. */
export function refusalTo(access: CallAccess, refusal: Refusal, own: Own): Refusal {
  const said = saidTo(access, refusal);
  const maySee = maySeeClusters(access, own.clusters);
  const shown = maySee === null ? said : refusalWithoutClusters(said, maySee);
  const maySeeQuota = maySeeQuotas(access);
  if (maySeeQuota === null) return shown;
  const { message, quotas, clusters } = shown;
  return { ...shown, ...answerWithoutQuotas({ message, quotas, clusters }, withOwn(maySeeQuota, own.quotas)) };
}

function refusalWithoutClusters(said: Refusal, maySee: MaySeeCluster): Refusal {
  const message = messageWithoutClusters(said.message, said.clusters, maySee);
  return { ...said, message, clusters: said.clusters.filter(({ cluster }) => maySee(cluster)) };
}

type Answer = {
  readonly message: string;
  readonly quotas: readonly QuotaRefusal[];
  readonly clusters: readonly ClusterRefusal[];
};

function answerWithoutQuotas({ message, quotas, clusters }: Answer, maySee: MaySeeQuota): Answer {
  return {
    message: messageWithoutQuotas(message, maySee),
    quotas: quotasWithoutNames(quotas, maySee),
    clusters: clusters.map((one) => clusterWithoutPools(one, maySee)),
  };
}

/** The same simulation if the caller may see all that it names. `queue`: the job's own. */
export function simulationTo(access: CallAccess, simulation: Simulation, queue: string): Simulation {
  const shown = simulationWithoutClusters(access, saidTo(access, simulation));
  const maySeeQuota = maySeeQuotas(access);
  return maySeeQuota === null ? shown : simulationWithoutQuotas(shown, withOwn(maySeeQuota, [queue]));
}

/** The job has no admission yet that would show a cluster to the caller. */
function simulationWithoutClusters(access: CallAccess, said: Simulation): Simulation {
  const maySee = maySeeClusters(access, []);
  if (maySee === null) return said;
  const { admission, refusals } = said;
  return {
    ...said,
    message: messageWithoutClusters(said.message, refusals, maySee),
    clusters: said.clusters.filter(({ cluster }) => maySee(cluster)),
    refusals: refusals.filter(({ cluster }) => maySee(cluster)),
    admission: admission && (maySee(admission.cluster ?? "") ? admission : withoutCluster(admission)),
  };
}

function withoutCluster({ simulated: _, ...admission }: PlannedAdmission): PlannedAdmission {
  return { ...admission, cluster: null };
}

function simulationWithoutQuotas(said: Simulation, maySee: MaySeeQuota): Simulation {
  const { message, quotas, refusals } = said;
  const shown = answerWithoutQuotas({ message, quotas, clusters: refusals }, maySee);
  return {
    ...said,
    message: shown.message,
    quotas: shown.quotas,
    refusals: shown.clusters,
    clusters: said.clusters.map((one) => {
      return { ...one, refusal: one.refusal && clusterWithoutPools(one.refusal, maySee) };
    }),
    admission: said.admission && admissionWithoutPools(said.admission, maySee),
  };
}

/** The same job if it names nobody else. */
export function withoutOthers(job: Job, sight: Sight | null): Job {
  if (sight === null) return job;
  const { waiting, conditions, backoff } = job.status;
  const own = ownOf(job);
  const hide = (text: string) => wordsFor(sight, text, own);
  const said = [waiting?.message, backoff?.why, ...conditions.map(({ message }) => message)];
  if (said.every((text) => text === undefined || hide(text) === text)) return job;
  const status = {
    ...job.status,
    conditions: conditions.map((one) => ({ ...one, message: hide(one.message) })),
    waiting: waiting && { ...waiting, message: hide(waiting.message) },
    backoff: backoff?.why === undefined ? backoff : { ...backoff, why: hide(backoff.why) },
  };
  return { ...job, status };
}
