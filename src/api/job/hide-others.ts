/** Shows why jobs wait without the names of jobs, callers and clusters that a caller may not see. */
import { INSTALLATION } from "../../core/access/scope.ts";
import type { Job } from "../../core/job/job.ts";
import {
  type MaySeeCluster,
  messageWithoutClusters,
  recordedWithoutClusters,
} from "../../core/plan/hidden-clusters.ts";
import { type MayName, type Said, saidWithoutNames, withoutNames } from "../../core/plan/hidden-names.ts";
import {
  admissionWithoutPools,
  clusterWithoutPools,
  hiddenPools,
  textWithoutPools,
} from "../../core/plan/hidden-pools.ts";
import type { ClusterRefusal, PlannedAdmission, Refusal } from "../../core/plan/plan-types.ts";
import type { Simulation } from "../../core/plan/simulate.ts";
import type { CallAccess } from "../rpc/call-access.ts";

const NAMED_JOB = /^([^/\s]+)\/[^/\s]+$/;

/** Which jobs, callers and clusters may be named to a caller. `maySee` null: all clusters. */
export type Sight = { readonly mayName: MayName; readonly maySee: MaySeeCluster | null };

/** Null: everything may be named to the caller. */
export function sightOf(access: CallAccess): Sight | null {
  const mayName = mayNameTo(access);
  const maySee = maySeeClusters(access, []);
  if (mayName === null && maySee === null) return null;
  return { mayName: mayName ?? (() => true), maySee };
}

/** Recorded words about why a job waits. `own`: the clusters that it was admitted to. */
export function wordsFor(sight: Sight, text: string, own: readonly (string | null)[] = []): string {
  return namesNobody(text) ? text : hidden(sight, text, own);
}

/** Of the texts that are read now. */
const TEXTS_MAX = 1_000;
const TEXT_CHARS_MAX = 1_000;
const BLIND: Sight = { mayName: () => false, maySee: () => false };
const namingNobody = new Map<string, boolean>();

/** True if a caller that may see nothing reads the same words: then every caller does. */
function namesNobody(text: string): boolean {
  const known = namingNobody.get(text);
  if (known !== undefined) return known;
  const isSame = hidden(BLIND, text, []) === text;
  if (namingNobody.size >= TEXTS_MAX) namingNobody.clear();
  if (text.length <= TEXT_CHARS_MAX) namingNobody.set(text, isSame);
  return isSame;
}

function hidden({ mayName, maySee }: Sight, text: string, own: readonly (string | null)[]): string {
  const named = withoutNames(text, mayName);
  return maySee === null ? named : recordedWithoutClusters(named, (name) => own.includes(name) || maySee(name));
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
export function saidTo<T extends Said>(access: CallAccess, said: T): T {
  const mayName = mayNameTo(access);
  return mayName === null ? said : saidWithoutNames(said, mayName);
}

/** Which clusters may be shown to the caller; also those of the job itself. Null: all. */
export function maySeeClusters(access: CallAccess, own: readonly (string | null)[]): MaySeeCluster | null {
  if (access.may("clusters.get", INSTALLATION)) return null;
  return (name) => own.includes(name) || access.may("clusters.get", { kind: "cluster", name });
}

/** The same refusal if the caller may see all of its clusters. */
export function refusalTo(access: CallAccess, refusal: Refusal, own: readonly (string | null)[]): Refusal {
  const said = saidTo(access, refusal);
  const maySee = maySeeClusters(access, own);
  if (maySee === null) return said;
  const message = messageWithoutClusters(said.message, said.clusters, maySee);
  return { ...said, message, clusters: said.clusters.filter(({ cluster }) => maySee(cluster)) };
}

/** The same simulation if the caller may see all of its clusters and pools. */
export function simulationTo(access: CallAccess, simulation: Simulation): Simulation {
  return simulationWithoutPools(access, simulationWithoutClusters(access, saidTo(access, simulation)));
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

function simulationWithoutPools(access: CallAccess, said: Simulation): Simulation {
  if (access.may("pools.get", INSTALLATION)) return said;
  const maySee = (name: string) => access.may("pools.get", { kind: "pool", name });
  const ofClusters = said.clusters.flatMap(({ refusal }) => refusal ?? []);
  const hidden = hiddenPools({ ...said, refusals: [...said.refusals, ...ofClusters] }, maySee);
  if (hidden.length === 0) return said;
  const without = (refusal: ClusterRefusal) => clusterWithoutPools(refusal, hidden);
  return {
    ...said,
    message: textWithoutPools(said.message, hidden),
    clusters: said.clusters.map((one) => ({ ...one, refusal: one.refusal && without(one.refusal) })),
    refusals: said.refusals.map(without),
    quotas: said.quotas.filter(({ flavor }) => !hidden.includes(flavor)),
    admission: said.admission && admissionWithoutPools(said.admission, hidden),
  };
}

/** The same job if it names nobody else. */
export function withoutOthers(job: Job, sight: Sight | null): Job {
  if (sight === null) return job;
  const { waiting, conditions, backoff } = job.status;
  const own = job.admissions.map(({ cluster }) => cluster);
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
