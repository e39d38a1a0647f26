import type { Kind } from "./kind.ts";

/**
 * A kind of somebody else's, made safe where many jobs are looked at together: what it throws there costs its own jobs only. What it says of one
 * gang (cluster spec, objects, verdict) may throw on, because whoever steps that job takes it as the kind's failure.
 */
export function guarded(kind: Kind): Kind {
  const { roleName, isMaster, elasticRoles, validate } = kind;
  return {
    ...kind,
    roleName: (role) => orElse(() => String(roleName(role)), role),
    isMaster: (members, role, index) => orElse(() => isMaster(members, role, index) === true, false),
    validate: (sent) => {
      try {
        return validate(sent);
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        return [{ path: "spec.kindSpec", message: `cannot be checked, because its kind failed: ${why}` }];
      }
    },
    ...(elasticRoles === undefined ? {} : { elasticRoles: (spec) => orElse(() => elasticRoles(spec), []) }),
  };
}

function orElse<T>(ask: () => T, otherwise: T): T {
  try {
    return ask();
  } catch {
    return otherwise;
  }
}
