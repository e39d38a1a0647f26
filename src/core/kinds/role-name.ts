import type { RoleBounds } from "./kind.ts";

/** Spells a replica type as its kind does, whatever its case, as Kubeflow's defaulting does; unknown ones stay as they are. */
export function boundedRoleName(roles: readonly RoleBounds[]): (role: string) => string {
  const names = new Map(roles.map(({ name }) => [name.toLowerCase(), name]));
  return (role) => names.get(role.toLowerCase()) ?? role;
}
