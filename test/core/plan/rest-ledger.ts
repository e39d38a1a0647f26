import type { Nomination } from "../../../src/core/job/preemption.ts";
import type { PlannedAdmission } from "../../../src/core/plan/model/plan-types.ts";

type Amounts = ReadonlyMap<string, number>;

/** What a nominee needs of each pool, what it holds, and the admissions whose tokens are turned over to it. */
type RestHeir = { readonly needs: Amounts; readonly held: Map<string, number>; readonly from: Set<string> };

/** All that a nominee holds now, and what it has got of a pool. */
export type TellHeld = (uid: string, held: Amounts, moved: { readonly pool: string; readonly amount: number }) => void;

type Ended = Pick<Nomination["victims"][number], "jobUid" | "admission">;

/** The holds of nominees, as the ledger moves them: what their victims give back is theirs, up to what they lack. */
export class RestLedger {
  /** The nominee that was named first comes first. */
  readonly #heirs = new Map<string, RestHeir>();
  readonly #tell: TellHeld;

  /** `tell` is called after each change of what a nominee holds. */
  constructor(tell: TellHeld) {
    this.#tell = tell;
  }

  /** Names a nominee: what these give back is turned over to it. */
  name({ jobUid, allocations }: Pick<PlannedAdmission, "jobUid" | "allocations">, from: readonly Ended[]): void {
    const needs = new Map(allocations.map(({ pool, amount }) => [pool, amount]));
    const { held, from: before } = this.#heirs.get(jobUid) ?? { held: new Map<string, number>(), from: [] };
    this.#heirs.set(jobUid, { needs, held, from: new Set([...before, ...from.map(keyOf)]) });
  }

  /** Turns over what an admission gives back. The rest is free. Returns it. */
  turnOver(ended: Ended, given: Amounts): Amounts {
    const left = new Map(given);
    for (const [uid, { needs, held, from }] of this.#heirs) {
      if (!from.has(keyOf(ended))) continue;
      for (const [pool, amount] of left) {
        const has = held.get(pool) ?? 0;
        const taken = Math.max(0, Math.min(amount, (needs.get(pool) ?? 0) - has));
        left.set(pool, amount - taken);
        this.#hold(uid, pool, has + taken);
      }
    }
    return left;
  }

  /** Lets a nominee give up what others that are named as its heirs lack. It stays a nominee. */
  cede(nominee: Ended): void {
    for (const [pool, amount] of this.turnOver(nominee, this.heldBy(nominee.jobUid)))
      this.#hold(nominee.jobUid, pool, amount);
  }

  /** Releases what a job holds. It is no nominee any more. */
  release(uid: string): void {
    for (const pool of this.heldBy(uid).keys()) this.#hold(uid, pool, 0);
    this.#heirs.delete(uid);
  }

  heldBy(uid: string): Amounts {
    return new Map(this.#heirs.get(uid)?.held);
  }

  #hold(uid: string, pool: string, amount: number): void {
    const { held } = this.#heirs.get(uid) as RestHeir;
    const moved = amount - (held.get(pool) ?? 0);
    if (moved === 0) return;
    held.set(pool, amount);
    this.#tell(uid, held, { pool, amount: moved });
  }
}

function keyOf({ jobUid, admission }: Ended): string {
  return `${jobUid} ${admission}`;
}
