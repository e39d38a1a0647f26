/** What callers may be allowed to do: a resource and a verb. */
import type { Place } from "./scope.ts";

type PlaceKind = Place["kind"];

/** The kinds of places at which each permission is asked for. `[]`: a binding anywhere is enough. */
export const PERMISSIONS = {
  /** Submit jobs, and check them before. */
  "jobs.create": ["namespace"],
  /** See jobs, their pods and events, and why they wait. */
  "jobs.get": ["namespace"],
  /** See the templates of pods, whose variables may hold secrets. */
  "jobs.secrets": ["namespace"],
  /** Read what containers write. */
  "jobs.logs": ["namespace"],
  "jobs.update": ["namespace"],
  /** Resume a job that was set aside more often than three times within a day. */
  "jobs.reinstate": ["namespace"],
  "jobs.cancel": ["namespace"],
  "jobs.delete": ["namespace"],
  "kinds.get": [],
  "namespaces.get": ["namespace", "project"],
  /** Create a namespace in a project. */
  "namespaces.create": ["project"],
  /** Change a namespace, or move one into a project. */
  "namespaces.update": ["namespace", "project"],
  /** Set what pods of a namespace may do in clusters. */
  "namespaces.police": ["installation"],
  /** Set how much the jobs of a namespace or a project may take, and how many robots it may have. */
  "namespaces.limit": ["installation"],
  "namespaces.delete": ["namespace"],
  "queues.get": ["queue"],
  /** Charge a queue: run jobs and take tokens in it. */
  "queues.use": ["queue"],
  /** Create queues below a queue. */
  "queues.create": ["queue", "installation"],
  /** Change queues below a queue. */
  "queues.update": ["queue", "installation"],
  /** Delete queues below a queue. */
  "queues.delete": ["queue", "installation"],
  "priorities.get": [],
  /** Create, change and delete priority classes. */
  "priorities.define": ["installation"],
  /** See the training runtimes of a namespace; those of the installation with a binding anywhere. */
  "runtimes.get": ["namespace"],
  /** Create, change and delete the training runtimes of a namespace or of the installation. */
  "runtimes.define": ["namespace", "installation"],
  "pools.get": ["pool"],
  /** Create and change pools. */
  "pools.update": ["pool"],
  "pools.delete": ["pool"],
  /** Compare and repair the counters of pools. */
  "pools.reconcile": ["pool", "installation"],
  /** See the tokens of all holders. */
  "tokens.get": ["pool"],
  /** Take, renew and release tokens under the caller's own name. */
  "tokens.allocate": ["pool"],
  /** Charge tokens to a project and a namespace other than `default`. */
  "tokens.charge": ["share"],
  /** Take, renew and release tokens of other holders. */
  "tokens.manage": ["pool"],
  "clusters.get": ["cluster"],
  "clusters.register": ["installation"],
  "clusters.update": ["cluster"],
  /** Keep gangs away from a cluster, and let them in again. */
  "clusters.drain": ["cluster"],
  /** Say that a cluster is lost, so that gangs leave it. */
  "clusters.operate": ["cluster"],
  "clusters.check": ["cluster"],
  "clusters.delete": ["cluster"],
  /** See which keys encrypt the credentials of which clusters. */
  "keys.get": ["installation"],
  /** Encrypt the credentials of clusters with the current key. */
  "keys.rotate": ["installation"],
  /** See the robots that belong to a namespace, a project or the installation. */
  "robots.get": ["namespace", "project", "installation"],
  "robots.create": ["namespace", "project", "installation"],
  "robots.revoke": ["namespace", "project", "installation"],
  /** See roles, and the bindings at a scope. */
  "access.get": ["installation", "project", "namespace", "queue", "pool", "cluster"],
  /** Bind roles at a scope, and take bindings away. */
  "access.bind": ["installation", "project", "namespace", "queue", "pool", "cluster"],
  /** Create and delete roles. */
  "access.define": ["installation"],
  "audit.read": ["installation"],
  /** Read the descriptors of the API. */
  "api.describe": [],
} as const satisfies Readonly<Record<string, readonly PlaceKind[]>>;

export type CallPermission = keyof typeof PERMISSIONS;

export const ALL_PERMISSIONS = Object.keys(PERMISSIONS) as readonly CallPermission[];

export function isPermission(text: string): text is CallPermission {
  return Object.hasOwn(PERMISSIONS, text);
}
