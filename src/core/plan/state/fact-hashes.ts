import { type Change, factsOf } from "./changes.ts";
import type { HashedEntities } from "./compare-states.ts";
import { type EntityHash, hashText } from "./fact-hash.ts";
import { type Fact, factKey, factText, isNothing } from "./facts.ts";

/** The hashes of the facts that changes lead to. It is much smaller than the state that they lead to. */
export class FactHashes implements HashedEntities {
  readonly #hashes = new Map<string, EntityHash>();

  /** Applies a change, which must be newer than those before it. */
  apply(change: Change): void {
    for (const fact of factsOf(change)) {
      if (isNothing(fact)) this.#hashes.delete(factKey(fact));
      else if (isCompared(fact)) this.#hashes.set(factKey(fact), hashOf(fact));
    }
  }

  eachEntity(visit: (key: string, of: { readonly hash: EntityHash }) => void): void {
    for (const [key, hash] of this.#hashes) visit(key, { hash });
  }
}

/** The hash of a fact. Equal facts have equal hashes. */
export function hashOf(fact: Fact): EntityHash {
  return hashText(`${factKey(fact)} ${factText(fact)}`);
}

/** Another place in an observer's numbering, with the same nodes, is the same state. */
export function isCompared({ kind }: Fact): boolean {
  return kind !== "cursor";
}
