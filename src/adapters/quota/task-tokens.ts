import type { Holder } from "../../core/quota/counters.ts";
import type { AskedUnder } from "../../core/quota/ledger.ts";
import { type Allocated, allocate } from "./allocate.ts";
import { buildLines } from "./build-lines.ts";
import type { Domains } from "./domains.ts";
import type { PoolFacts } from "./pool-facts.ts";
import { release } from "./release.ts";
import { violationText } from "./violation-text.ts";

/** For whom tokens are asked: a job's admission, by the worker that has this lease of its job's bucket. */
export type TaskHolder = {
  readonly lease: NonNullable<AskedUnder["lease"]>;
  readonly jobUid: string;
  readonly admission: number;
  readonly project: string;
  readonly namespace: string;
  readonly priority: number;
};

export type TaskLine = {
  readonly pool: string;
  readonly token: string;
  readonly amount: number;
  /** Null: the pool's own. */
  readonly projectCap: number | null;
  readonly namespaceCap: number | null;
};

export type TaskGrant =
  | { readonly status: "GRANTED" }
  | { readonly status: "EXHAUSTED" | "NAMESPACE_QUOTA_EXCEEDED"; readonly message: string };

/**
 * Tokens that jobs take while they run. They do not lapse: the record that ends an admission releases in the ledger what is left of them. A pool
 * that only its counters keep has no such record, so it is refused. What comes from a worker that has lost the job's bucket meanwhile, or after that
 * record, changes nothing: the ledger refuses it.
 */
export function createTaskTokens({
  domains,
  facts,
}: {
  readonly domains: Pick<Domains, "desk">;
  readonly facts: PoolFacts;
}) {
  return {
    /** Throws `UnavailableError` where a store is away, and an error for a token or a pool that cannot be had at all. */
    async allocate(who: TaskHolder, { pool, token, amount, projectCap, namespaceCap }: TaskLine): Promise<TaskGrant> {
      const { project, namespace, priority } = who;
      const caps = { project: projectCap, namespace: namespaceCap };
      const lease = { kind: "default" } as const;
      const built = await buildLines(facts, [{ pool, token, amount, project, namespace, caps, queue: null, lease }]);
      if (built.kind === "unknownPool") throw new Error(`pool ${pool} is not registered`);
      if (built.kind !== "built") throw new Error(`pool ${pool} cannot be asked for tokens: ${built.kind}`);
      if (built.where.durability === "REDIS") {
        throw new Error(`pool ${pool} keeps its tokens in Redis alone, and a job's tokens must be in the ledger`);
      }
      const lines = built.lines.map((line) => ({ ...line, leaseMs: null }));
      const desk = await domains.desk(built.where);
      const { lease: under } = who;
      return grantOf(await allocate(desk, { lines, holder: holderOf(who), priority, lease: under }), { pool, token });
    },

    /** What is not held, or not any more, is as good as released. */
    async release(who: TaskHolder, { pool, token }: Pick<TaskLine, "pool" | "token">): Promise<void> {
      const found = await facts.pool(pool);
      if (found === null) return;
      const desk = await domains.desk(found);
      const { lease } = who;
      await release(desk, [{ pool, token, holder: holderOf(who), project: null, namespace: null, lease }]);
    },
  };
}

function grantOf(outcome: Allocated, { pool, token }: Pick<TaskLine, "pool" | "token">): TaskGrant {
  switch (outcome.kind) {
    case "granted":
      return { status: "GRANTED" };
    case "exhausted": {
      const { kind } = outcome.violation.scope;
      const isCap = kind === "project" || kind === "namespace";
      const status = isCap ? "NAMESPACE_QUOTA_EXCEEDED" : "EXHAUSTED";
      return { status, message: violationText(outcome.violation) };
    }
    case "tooManyTokens":
      throw new Error(`there are ${outcome.tokensMax} tokens already`);
    case "heldOtherwise":
      throw new Error(`token ${token} of pool ${pool} is held by another, or with another amount`);
  }
}

function holderOf({ jobUid, admission }: TaskHolder): Holder {
  return { kind: "admission", jobUid, admission };
}
