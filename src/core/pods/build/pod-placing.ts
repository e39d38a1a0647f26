import { arrayAt, type JsonObject, objectAt } from "../../../runtime/json.ts";
import { REQUIRED_TERMS } from "../build-affinity.ts";

/** Which nodes may take a pod, as its kind says beside its template. */
export type PodPlacing = {
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly JsonObject[];
  /** Required terms that join those of the template. */
  readonly podAffinity?: readonly JsonObject[];
  readonly podAntiAffinity?: readonly JsonObject[];
};

/** The pod spec with what its kind says about nodes. */
export function placedSpec(podSpec: JsonObject, placing: PodPlacing): JsonObject {
  const { nodeSelector, tolerations, podAffinity, podAntiAffinity } = placing;
  const affinity = objectAt(podSpec, "affinity");
  const terms = { podAffinity, podAntiAffinity };
  const joined = Object.entries(terms).flatMap(([member, added]) => {
    return added === undefined ? [] : [[member, withTerms(objectAt(affinity, member), added)] as const];
  });
  return {
    ...podSpec,
    ...(nodeSelector === undefined ? {} : { nodeSelector: { ...objectAt(podSpec, "nodeSelector"), ...nodeSelector } }),
    ...(tolerations === undefined ? {} : { tolerations: [...arrayAt(podSpec, "tolerations"), ...tolerations] }),
    ...(joined.length === 0 ? {} : { affinity: { ...affinity, ...Object.fromEntries(joined) } }),
  };
}

function withTerms(affinity: JsonObject, added: readonly JsonObject[]): JsonObject {
  return { ...affinity, [REQUIRED_TERMS]: [...arrayAt(affinity, REQUIRED_TERMS), ...added] };
}
