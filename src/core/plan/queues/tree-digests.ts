import { type EntityHash, HashSum, hashText } from "../../../runtime/hash-text.ts";
import { canonicalJson } from "../../../runtime/json.ts";
import { liveAdmission } from "../../job/job.ts";
import type { PlanGang } from "../model/plan-gang.ts";
import type { PlanQueue } from "../model/snapshot.ts";
import type { Branch } from "../usage/branches.ts";
import type { QuotaState } from "../usage/quota-state.ts";

type Queues = ReadonlyMap<string, PlanQueue>;

/**
 * Digests of trees: of the gangs that wait or run in them, with sizes and priorities, and of the queues' settings.
 * Equal digests: no gang was submitted, resized or ended, and no quota or policy has changed. What runs and what waits
 * does not matter. They cost nothing before the first question.
 */
export class TreeDigests {
  readonly #gangs: ReadonlyMap<string, { readonly facts: PlanGang }>;
  /** The sums of the gangs' hashes, by queue. Null: nobody has asked. */
  #members: Map<string, HashSum> | null = null;
  readonly #settings = new WeakMap<PlanQueue, EntityHash>();
  /** The digests on which searches for victims have depended, by the roots' names. */
  readonly #used = new Map<string, string>();
  /** Those that are known since a gang came or went, or a queue changed. */
  #known = new WeakMap<Branch, string>();

  constructor(gangs: ReadonlyMap<string, { readonly facts: PlanGang }>) {
    this.#gangs = gangs;
  }

  /** The digest of a root's tree. The branches are made again when a queue changes. */
  of(root: Branch, queues: Queues): string {
    const known = this.#known.get(root) ?? this.#digest(root, queues);
    this.#known.set(root, known);
    return known;
  }

  /** Records that searches for victims depend on the digest of a tree. */
  noteUsed(root: Branch, digest: string): void {
    this.#used.set(root.name, digest);
  }

  /** The roots of the trees that have changed since searches have depended on their digests, by name. */
  movedTrees({ branches, queues }: Pick<QuotaState, "branches" | "queues">): readonly string[] {
    const moved: string[] = [];
    for (const [name, digest] of this.#used) {
      const root = branches.of(name);
      if (root === null || this.of(root, queues) !== digest) moved.push(name);
    }
    return moved;
  }

  /** Forgets that searches have depended on the digests of these trees. */
  forgetUsed(roots: readonly string[]): void {
    for (const name of roots) this.#used.delete(name);
  }

  /** Records that a gang comes, or goes. */
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
    for (const { facts } of this.#gangs.values()) if (isMember(facts)) this.#add(members, facts, 1);
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
