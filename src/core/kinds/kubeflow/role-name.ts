import type { RoleBounds } from "../kind.ts";

/** Spells a replica type as its kind does, from any case, as Kubeflow does. Unknown types stay unchanged. */
export function boundedRoleName(roles: readonly RoleBounds[]): (role: string) => string {
  const names = new Map(roles.map(({ name }) => [name.toLowerCase(), name]));
  return (role) => names.get(role.toLowerCase()) ?? role;
}
