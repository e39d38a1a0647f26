import type { Violation } from "../../core/quota/counters.ts";

/** What was in the way, in one sentence. */
export function violationText({ scope, used, limit, requested, reservedForHead }: Violation): string {
  const reserved = reservedForHead > 0 ? `, ${reservedForHead} reserved for the head of its line` : "";
  return `${requested} asked of ${nameOf(scope)}, which uses ${used} of ${limit}${reserved}`;
}

function nameOf(scope: Violation["scope"]): string {
  switch (scope.kind) {
    case "pool":
      return `pool ${scope.pool}`;
    case "project":
      return `project ${scope.project} in pool ${scope.pool}`;
    case "namespace":
      return `namespace ${scope.namespace} in pool ${scope.pool}`;
    case "queue":
      return `queue ${scope.queue} in pool ${scope.pool}`;
  }
}
