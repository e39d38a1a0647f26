import type { FleetState } from "./fleet-state.ts";

/** How a state that follows changes differs from one that was loaded afterwards. */
export type StateDifference = {
  /** Entities that differ although both states have the same version of them: an error of this program. */
  readonly wrong: readonly string[];
  /** Entities of which one state has another version, or none. They may only be on their way: compare them again. */
  readonly moved: readonly string[];
};

/** Names the entities in which two states differ. Both lists are empty if the states' hashes are equal. */
export function compareStates(followed: FleetState, loaded: FleetState): StateDifference {
  const wrong: string[] = [];
  const moved: string[] = [];
  const others = new Map<string, EntityState>();
  loaded.eachEntity((key, entity) => others.set(key, entity));
  followed.eachEntity((key, entity) => {
    const other = others.get(key);
    others.delete(key);
    if (other === undefined || other.version !== entity.version) moved.push(key);
    else if (other.hash.low !== entity.hash.low || other.hash.high !== entity.hash.high) wrong.push(key);
  });
  moved.push(...others.keys());
  return { wrong: wrong.sort(), moved: moved.sort() };
}

type EntityState = Parameters<Parameters<FleetState["eachEntity"]>[0]>[1];
