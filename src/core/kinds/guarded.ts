import { thrownText } from "../../runtime/thrown-text.ts";
import { checkedClusterSpec, checkedErrors, checkedObjects, checkedService, checkedVerdict } from "./check-answer.ts";
import type { Kind } from "./kind.ts";

/**
 * Wraps a kind from a plugin, so that its errors affect only its own jobs. Functions that run in the planner or the API
 * return a default instead of throwing. `clusterSpec`, `objects`, `service` and `verdict` may throw, also for a wrong
 * answer: the worker counts that as a failure of the kind.
 */
export function guarded(kind: Kind): Kind {
  const { roleName, isMaster, elasticRoles, validate, warn, countedInit, service } = kind;
  return {
    ...kind,
    roleName: (role) => orElse(() => String(roleName(role)), role),
    isMaster: (members, role, index) => orElse(() => isMaster(members, role, index) === true, false),
    validate: (sent) => {
      try {
        return checkedErrors(validate(sent));
      } catch (error) {
        const message = `cannot be checked, because the kind failed: ${thrownText(error)}`;
        return [{ path: "spec.kindSpec", message }];
      }
    },
    clusterSpec: (replica) => checkedClusterSpec(kind.clusterSpec(replica)),
    objects: (gang) => checkedObjects(kind.objects(gang)),
    verdict: (states, kindSpec) => checkedVerdict(kind.verdict(states, kindSpec)),
    ...(service === undefined ? {} : { service: (gang) => checkedService(service(gang)) }),
    ...(warn === undefined ? {} : { warn: (sent) => orElse(() => checkedErrors(warn(sent)), []) }),
    ...(countedInit === undefined
      ? {}
      : { countedInit: (spec, role) => orElse(() => listOf(countedInit(spec, role)), []) }),
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
