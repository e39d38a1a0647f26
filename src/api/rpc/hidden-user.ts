import type { CallPermission } from "../../core/access/permissions.ts";
import type { Place } from "../../core/access/scope.ts";
import type { ChangeOutcome } from "../../core/admin/change-outcome.ts";
import type { CallAccess } from "./call-access.ts";

/** How the users of a record are named, which kind of place shows them, and to whom. */
const USERS: readonly {
  readonly named: RegExp;
  readonly kind: Exclude<Place["kind"], "installation" | "share" | "project">;
  readonly permission: CallPermission;
}[] = [
  { named: /^(job) ([^/]+)\/\S+/, kind: "namespace", permission: "jobs.get" },
  { named: /^(robot) \S+ of namespace (\S+)/, kind: "namespace", permission: "robots.get" },
  { named: /^(namespace) (\S+)/, kind: "namespace", permission: "namespaces.get" },
  { named: /^(pool|tokens of) (\S+)/, kind: "pool", permission: "pools.get" },
  { named: /^(queue) ([^\s,]+)/, kind: "queue", permission: "queues.get" },
  { named: /^(cluster) ([^\s,]+)/, kind: "cluster", permission: "clusters.get" },
];

/** The outcome of a deletion, without the name of a user of the record that the caller may not see. */
export function withoutHiddenUser<T>(outcome: ChangeOutcome<T>, access: CallAccess): ChangeOutcome<T> {
  if (outcome.kind !== "inUse") return outcome;
  for (const { named, kind, permission } of USERS) {
    const [, what = "", name = ""] = named.exec(outcome.by) ?? [];
    if (what === "" || access.may(permission, { kind, name })) continue;
    return { kind: "inUse", by: what === "tokens of" ? "tokens of a pool" : `a ${what}` };
  }
  return outcome;
}
