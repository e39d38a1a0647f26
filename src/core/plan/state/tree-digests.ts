import { canonicalJson } from "../../../runtime/json.ts";
import { liveAdmission } from "../../job/job.ts";
import type { PlanGang } from "../plan-gang.ts";
import type { PlanQueue } from "../snapshot.ts";
import type { Branch } from "./branches.ts";
import { type EntityHash, HashSum, hashText } from "./fact-hash.ts";
import type { QuotaState } from "./quota-state.ts";

type Queues = ReadonlyMap<string, PlanQueue>;

/**
 * Digests of trees: of the gangs that wait or run in them, with sizes and priorities, and of the queues' settings.
 * Equal digests: no gang was submitted, resized or ended, and no quota or policy has changed. What runs and what waits
 * does not matter. They cost nothing before the first question.
 */
export class TreeDigests {
  readonly #entries: ReadonlyMap<string, { readonly gang: PlanGang }>;
  /** The sums of the gangs' hashes, by queue. Null: nobody has asked. */
  #members: Map<string, HashSum> | null = null;
  readonly #settings = new WeakMap<PlanQueue, EntityHash>();
  /** The digests on which searches for victims have depended, by the roots' names. */
  readonly #used = new Map<string, string>();
  /** Those that are known since a gang came or went, or a queue changed. */
  #known = new WeakMap<Branch, string>();

  constructor(entries: ReadonlyMap<string, { readonly gang: PlanGang }>) {
    this.#entries = entries;
  }

  /** The digest of a root's tree. The branches are made anew when a queue changes. */
  of(root: Branch, queues: Queues): string {
    const known = this.#known.get(root) ?? this.#digest(root, queues);
    this.#known.set(root, known);
    return known;
  }

  /** Notes that searches for victims depend on the digest of a tree. */
  noteUsed(root: Branch, digest: string): void {
    this.#used.set(root.name, digest);
  }

  /** True if a tree has changed on whose digest searches have depended. Forgets that they have. */
  takeMoved({ branches, queues }: Pick<QuotaState, "branches" | "queues">): boolean {
    let isMoved = false;
    for (const [name, digest] of this.#used) {
      const root = branches.of(name);
      if (root !== null && this.of(root, queues) === digest) continue;
      this.#used.delete(name);
      isMoved = true;
    }
    return isMoved;
  }

  /** Notes that a gang comes, or goes. */
  note(gang: PlanGang, sign: 1 | -1): void {
    if (this.#members === null || !isMember(gang)) return;
    this.#known = new WeakMap();
    this.#add(this.#members, gang, sign);
  }

  #digest(root: Branch, queues: Queues): string {
    const members = this.#members ?? this.#collect();
    const sum = new HashSum();
    for (const { name } of root.leaves) {
      const queue = queues.get(name);
      if (queue !== undefined) sum.add(this.#settingsOf(queue), 1);
      const ofQueue = members.get(name);
      if (ofQueue !== undefined) sum.add(ofQueue.hash, 1);
    }
    return sum.text;
  }

  #collect(): Map<string, HashSum> {
    const members = new Map<string, HashSum>();
    for (const { gang } of this.#entries.values()) if (isMember(gang)) this.#add(members, gang, 1);
    this.#members = members;
    return members;
  }

  #add(members: Map<string, HashSum>, { uid, queue, askHash, priority }: PlanGang, sign: 1 | -1): void {
    const sum = members.get(queue) ?? new HashSum();
    members.set(queue, sum);
    sum.add(hashText(`${uid} ${askHash} ${priority}`), sign);
  }

  #settingsOf(queue: PlanQueue): EntityHash {
    // The budget's past preemptions are no settings.
    const { preempted: _, ...settings } = queue;
    const known = this.#settings.get(queue) ?? hashText(canonicalJson(settings));
    this.#settings.set(queue, known);
    return known;
  }
}

/** True for a gang that waits or runs, and is not about to end. */
function isMember(gang: PlanGang): boolean {
  return !gang.ends && !gang.suspended && (gang.waits || liveAdmission(gang) !== null);
}
