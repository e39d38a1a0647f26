import { thrownText } from "../../runtime/thrown-text.ts";
import { checkedClusterSpec, checkedErrors, checkedObjects, checkedVerdict } from "./check-answer.ts";
import type { Kind } from "./kind.ts";

/**
 * A kind of somebody else's, made safe where many jobs are looked at together: what it throws there costs its own jobs only. What it says of one
 * gang (cluster spec, objects, verdict) may throw on, because whoever steps that job takes it as the kind's failure; so does what it says there
 * and nobody could use.
 */
export function guarded(kind: Kind): Kind {
  const { roleName, isMaster, elasticRoles, validate } = kind;
  return {
    ...kind,
    roleName: (role) => orElse(() => String(roleName(role)), role),
    isMaster: (members, role, index) => orElse(() => isMaster(members, role, index) === true, false),
    validate: (sent) => {
      try {
        return checkedErrors(validate(sent));
      } catch (error) {
        const message = `cannot be checked, because its kind failed: ${thrownText(error)}`;
        return [{ path: "spec.kindSpec", message }];
      }
    },
    clusterSpec: (replica) => checkedClusterSpec(kind.clusterSpec(replica)),
    objects: (gang) => checkedObjects(kind.objects(gang)),
    verdict: (states, kindSpec) => checkedVerdict(kind.verdict(states, kindSpec)),
    ...(elasticRoles === undefined ? {} : { elasticRoles: (spec) => orElse(() => listOf(elasticRoles(spec)), []) }),
  };
}

function listOf<T>(value: readonly T[]): readonly T[] {
  return Array.isArray(value) ? value : [];
}

function orElse<T>(ask: () => T, otherwise: T): T {
  try {
    return ask();
  } catch {
    return otherwise;
  }
}
