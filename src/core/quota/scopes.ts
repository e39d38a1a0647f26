import type { Scope } from "./counters.ts";

/** Returns a text that is unique to the scope. JSON quotes keep adjacent names apart. */
export function scopeKey(scope: Scope): string {
  switch (scope.kind) {
    case "pool":
      return JSON.stringify([scope.kind, scope.pool]);
    case "project":
      return JSON.stringify([scope.kind, scope.pool, scope.project]);
    case "namespace":
      return JSON.stringify([scope.kind, scope.pool, scope.project, scope.namespace]);
    case "queue":
      return JSON.stringify([scope.kind, scope.pool, scope.queue]);
  }
}

/** Returns the scope of a `scopeKey`. */
export function scopeOfKey(key: string): Scope {
  const [kind, pool = "", second = "", third = ""] = JSON.parse(key) as [Scope["kind"], string?, string?, string?];
  switch (kind) {
    case "pool":
      return { kind, pool };
    case "project":
      return { kind, pool, project: second };
    case "namespace":
      return { kind, pool, project: second, namespace: third };
    case "queue":
      return { kind, pool, queue: second };
  }
}
