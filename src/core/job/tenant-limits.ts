/** How much the jobs of a namespace or of a project may take together, and how many robots may belong to it. */
import type { Job } from "./job.ts";
import type { JobSpec } from "./spec.ts";

export type TenantName = { readonly kind: "namespace" | "project"; readonly name: string };

/** Null: any amount. Jobs that have ended do not count. */
export type TenantLimits = {
  /** Jobs in phase WAITING or SUSPENDED. */
  readonly maxWaitingJobs: number | null;
  /** Jobs that are admitted. */
  readonly maxRunningJobs: number | null;
  /** Pods that jobs ask for, also while they wait. */
  readonly maxPods: number | null;
  /** Bytes of the specs with their templates, as JSON. */
  readonly maxTemplateBytes: number | null;
  /** Tokens of its robots that count. */
  readonly maxRobotTokens: number | null;
};

export const NO_TENANT_LIMITS: TenantLimits = {
  maxWaitingJobs: null,
  maxRunningJobs: null,
  maxPods: null,
  maxTemplateBytes: null,
  maxRobotTokens: null,
};

/** What the jobs of a tenant take now. */
export type JobUse = {
  readonly waitingJobs: number;
  readonly runningJobs: number;
  readonly pods: number;
  readonly templateBytes: number;
};

export type TenantUse = JobUse & { readonly robotTokens: number };

export type TenantRecord = { readonly tenant: TenantName; readonly limits: TenantLimits; readonly use: TenantUse };

/** The namespaces and projects that a job counts in. */
export function tenantsOf({ namespace, project }: Pick<Job, "namespace" | "project">): readonly TenantName[] {
  return [
    { kind: "namespace", name: namespace },
    { kind: "project", name: project },
  ];
}

/** The pods that a job asks for. */
export function podsOf({ replicaSpecs }: JobSpec): number {
  return Object.values(replicaSpecs).reduce((sum, { replicas }) => sum + replicas, 0);
}

/** The limits that are looked at when a job is created. */
export type RoomLimit = "maxWaitingJobs" | "maxPods" | "maxTemplateBytes";

/** A job has no room within a limit of its queue, its namespace or its project. */
export type NoRoom = {
  readonly kind: "noRoom";
  readonly scope: { readonly kind: "queue" | TenantName["kind"]; readonly name: string };
  readonly limit: RoomLimit;
  readonly used: number;
  /** What the job would take. */
  readonly asked: number;
  /** May be below `used`. */
  readonly max: number;
};
