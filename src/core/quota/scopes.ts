import type { Scope } from "./counters.ts";

/** Text that two scopes share only if they are the same: no name can run into its neighbour. */
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

/** The scope that a key was made of. */
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
