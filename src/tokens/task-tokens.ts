import type { ResourceManager } from "../core/kinds/plugin.ts";
import type { TaskAllocation, TaskHolder } from "../core/quota/calls.ts";
import type { Holder, TokenName, Violation } from "../core/quota/counters.ts";
import { type AllocateOutcome, allocate } from "./allocate.ts";
import { buildAllocations } from "./build-allocations.ts";
import { isCap } from "./caller-answers.ts";
import type { Domains } from "./domain/domains.ts";
import type { PoolCache } from "./pool-cache.ts";
import { release } from "./release.ts";

type TaskGrant = Awaited<ReturnType<ResourceManager["allocate"]>>;

/**
 * Tokens that jobs take through their plugins while they run. They do not lapse: the record that ends an admission
 * releases its tokens in the ledger. So pools of durability REDIS, which are not in the ledger, are refused. Requests
 * that come after that record, or from a worker that has lost the job's bucket, change nothing: the ledger refuses
 * them.
 */
export function createTaskTokens({
  domains,
  cache,
}: {
  readonly domains: Pick<Domains, "domain">;
  readonly cache: PoolCache;
}) {
  return {
    /** Throws `UnavailableError` while a store is away, and another error if the token can never be granted. */
    async allocate(task: TaskHolder, allocation: TaskAllocation): Promise<TaskGrant> {
      const { pool, token, amount, projectCap, namespaceCap } = allocation;
      const { project, namespace, priority, lease } = task;
      const caps = { project: projectCap, namespace: namespaceCap };
      const asked = { pool, token, amount, project, namespace, caps, queue: null, lease: { kind: "default" } } as const;
      const built = await buildAllocations(cache, [asked]);
      if (built.kind === "unknownPool") throw new Error(`pool ${pool} is not registered`);
      if (built.kind !== "built") throw new Error(`pool ${pool} cannot grant tokens to a job: ${built.kind}`);
      if (built.registered.durability === "REDIS") {
        throw new Error(`pool ${pool} has durability REDIS; a job's tokens need a pool of durability LEDGER`);
      }
      const allocations = built.allocations.map((one) => ({ ...one, leaseMs: null }));
      const domain = await domains.domain(built.registered);
      return grantOf(await allocate(domain, { allocations, holder: holderOf(task), priority, lease }), allocation);
    },

    /** Does nothing if the token is not held, or not held any more. */
    async release(task: TaskHolder, { pool, token }: TokenName): Promise<void> {
      const settings = await cache.pool(pool);
      if (settings === null) return;
      const domain = await domains.domain(settings);
      const { lease } = task;
      await release(domain, [{ pool, token, holder: holderOf(task), project: null, namespace: null, lease }]);
    },
  };
}

function grantOf(outcome: AllocateOutcome, { pool, token }: TokenName): TaskGrant {
  switch (outcome.kind) {
    case "granted":
      return { status: "GRANTED" };
    case "exhausted": {
      const status = isCap(outcome.violation) ? "NAMESPACE_QUOTA_EXCEEDED" : "EXHAUSTED";
      return { status, message: violationText(outcome.violation) };
    }
    case "tooManyTokens":
      throw new Error(`the quota domain of pool ${pool} already holds ${outcome.tokensMax} tokens, its maximum`);
    case "heldOtherwise":
      throw new Error(`token ${token} of pool ${pool} has another holder or another amount; use another token name`);
  }
}

function holderOf({ jobUid, admission }: TaskHolder): Holder {
  return { kind: "admission", jobUid, admission };
}

/** One sentence about the scope that had no room. */
function violationText({ scope, used, limit, requested, reservedForHead, frozen }: Violation): string {
  if (frozen) return `${requested} asked of ${scopeText(scope)}, which is frozen`;
  const reserved = reservedForHead > 0 ? `, ${reservedForHead} reserved for the head of its waiting line` : "";
  return `${requested} asked of ${scopeText(scope)}, which uses ${used} of ${limit}${reserved}`;
}

function scopeText(scope: Violation["scope"]): string {
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
