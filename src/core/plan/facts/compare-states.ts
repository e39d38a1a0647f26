import { type EntityHash, hashText } from "../../../runtime/hash-text.ts";
import { type Change, factsOf } from "./changes.ts";
import { type Fact, factKey, factText, isNothing } from "./facts.ts";

/** Anything that can name each entity that it knows, with the hash of the entity's facts. */
export type HashedEntities = {
  readonly eachEntity: (visit: (key: string, of: { readonly hash: EntityHash }) => void) => void;
};

/** The entities in which two states differ, by key, each with the hashes that the two have of it. */
export type StateDifference = ReadonlyMap<string, string>;

/** Names the entities in which a state that follows changes differs from one that was loaded afterwards. */
export function compareStates(followed: HashedEntities, loaded: HashedEntities): StateDifference {
  const others = new Map<string, string>();
  loaded.eachEntity((key, { hash }) => others.set(key, hashWords(hash)));
  const differing = new Map<string, string>();
  followed.eachEntity((key, { hash }) => {
    const [mine, other] = [hashWords(hash), others.get(key)];
    others.delete(key);
    if (mine !== other) differing.set(key, `${mine}, ${other ?? NONE}`);
  });
  for (const [key, other] of others) differing.set(key, `${NONE}, ${other}`);
  return differing;
}

/** The part of a difference that was the same before. The rest was on its way. */
export function lastingDifference(before: StateDifference, now: StateDifference): StateDifference {
  return new Map([...now].filter(([key, hashes]) => before.get(key) === hashes));
}

const NONE = "none";

function hashWords({ low, high }: EntityHash): string {
  return `${high} ${low}`;
}

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
