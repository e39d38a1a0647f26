import type { Job } from "../job/job.ts";
import { memberGroups, wholeUnits } from "./gang.ts";
import type { QuotaRefusal } from "./plan-types.ts";
import type { FlavorQuota, PlanQueue, PlanSnapshot } from "./snapshot.ts";

type Held = { readonly job: string; readonly amount: number };

const HOLDERS_SHOWN = 5;

/** What each queue uses of each flavor while a plan is made: the ledger's sums and what the plan adds. */
export class QuotaBook {
  readonly #queues: ReadonlyMap<string, PlanQueue>;
  readonly #used = new Map<string, number>();
  readonly #held = new Map<string, Held[]>();

  constructor(snapshot: PlanSnapshot) {
    this.#queues = new Map(snapshot.queues.map((queue) => [queue.name, queue]));
    for (const queue of snapshot.queues) {
      for (const [flavor, used] of Object.entries(queue.used)) this.#used.set(keyOf(queue.name, flavor), used);
    }
    for (const job of [...snapshot.admitted, ...snapshot.waiting]) this.#noteHeld(job);
  }

  queue(name: string): PlanQueue | undefined {
    return this.#queues.get(name);
  }

  /** Null if the queue may take so much more of the flavor now. */
  refusal(queue: string, quota: FlavorQuota, need: number): QuotaRefusal | null {
    const used = this.#used.get(keyOf(queue, quota.flavor)) ?? 0;
    const limit = quota.nominal;
    if (need === 0 || need <= limit - used) return null;
    const reason = need > limit ? "AboveQuota" : "QuotaExhausted";
    return { queue, flavor: quota.flavor, reason, need, used, limit, heldBy: this.#heldBy(queue, quota.flavor) };
  }

  charge(job: Job, flavor: string, amount: number): void {
    const key = keyOf(queueOf(job), flavor);
    this.#used.set(key, (this.#used.get(key) ?? 0) + amount);
    this.#addHeld(key, { job: `${job.namespace}/${job.name}`, amount });
  }

  /** How much of its quota a queue uses, of the flavor that it uses most of: 0 is nothing, 1 all of it. */
  share(name: string): number {
    const quotas = this.#queues.get(name)?.quotas ?? [];
    return quotas.reduce((most, { flavor, nominal }) => {
      const used = this.#used.get(keyOf(name, flavor)) ?? 0;
      return Math.max(most, used === 0 ? 0 : used / nominal);
    }, 0);
  }

  #heldBy(queue: string, flavor: string): readonly string[] {
    const held = this.#held.get(keyOf(queue, flavor)) ?? [];
    const largestFirst = [...held].sort((a, b) => b.amount - a.amount || (a.job < b.job ? -1 : 1));
    return [...new Set(largestFirst.map((holder) => holder.job))].slice(0, HOLDERS_SHOWN);
  }

  #noteHeld(job: Job): void {
    for (const admission of job.admissions) {
      if (admission.tokensReleasedMs !== null) continue;
      const groups = memberGroups(job.spec, admission.members);
      for (const [resource, flavor] of Object.entries(admission.flavors)) {
        const amount = wholeUnits(groups, resource);
        if (amount > 0) this.#addHeld(keyOf(queueOf(job), flavor), { job: `${job.namespace}/${job.name}`, amount });
      }
    }
  }

  #addHeld(key: string, held: Held): void {
    const known = this.#held.get(key);
    if (known === undefined) this.#held.set(key, [held]);
    else known.push(held);
  }
}

/** The queue that a job is charged to. */
export function queueOf(job: Job): string {
  return job.spec.runPolicy.schedulingPolicy.queue;
}

function keyOf(queue: string, flavor: string): string {
  return JSON.stringify([queue, flavor]);
}
