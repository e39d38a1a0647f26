/** Roles: named sets of permissions. */
import { ALL_PERMISSIONS, type CallPermission } from "./permissions.ts";

export type AccessRole = {
  readonly name: string;
  readonly permissions: readonly CallPermission[];
};

const VIEWER: readonly CallPermission[] = [
  "jobs.get",
  "kinds.get",
  "priorities.get",
  "runtimes.get",
  "namespaces.get",
  "queues.get",
  "pools.get",
  "clusters.get",
  "api.describe",
];

/** The roles that every installation has. */
export const BUILT_IN_ROLES: readonly AccessRole[] = [
  { name: "viewer", permissions: VIEWER },
  {
    name: "submitter",
    permissions: [
      ...VIEWER,
      "jobs.create",
      "jobs.secrets",
      "jobs.logs",
      "jobs.update",
      "jobs.cancel",
      "jobs.delete",
      "queues.use",
      "tokens.allocate",
      "tokens.charge",
    ],
  },
  {
    name: "operator",
    permissions: [
      ...VIEWER,
      "jobs.logs",
      "jobs.update",
      "jobs.reinstate",
      "jobs.cancel",
      "jobs.delete",
      "queues.use",
      "queues.update",
      "tokens.get",
      "tokens.manage",
      "pools.reconcile",
      "clusters.drain",
      "clusters.operate",
      "clusters.check",
      "audit.read",
    ],
  },
  {
    name: "quota-admin",
    permissions: [
      ...VIEWER,
      "namespaces.limit",
      "queues.use",
      "queues.create",
      "queues.update",
      "queues.delete",
      "priorities.define",
      "pools.update",
      "pools.delete",
      "pools.reconcile",
      "tokens.get",
      "tokens.manage",
      "audit.read",
    ],
  },
  {
    name: "cluster-admin",
    permissions: [
      ...VIEWER,
      "namespaces.police",
      "clusters.register",
      "clusters.update",
      "clusters.drain",
      "clusters.operate",
      "clusters.check",
      "clusters.delete",
      "keys.get",
      "keys.rotate",
      "audit.read",
    ],
  },
  { name: "admin", permissions: ALL_PERMISSIONS },
];
