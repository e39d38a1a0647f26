import { arrayAt, type JsonObject, objectAt, stringAt, stringMapAt } from "../../../runtime/json.ts";

/** The properties of nodes that a pod's selectors depend on. */
type SelectorKeys = { readonly labels: ReadonlySet<string>; readonly byName: boolean };

/**
 * The label keys in the node selector and the required node affinity of a pod, and those that are demanded otherwise;
 * and whether the affinity may name a node.
 */
export function selectorKeys(scheduling: JsonObject, demanded: Iterable<string>): SelectorKeys {
  const labels = new Set(demanded);
  for (const key of Object.keys(stringMapAt(scheduling, "nodeSelector"))) labels.add(key);
  const nodeAffinity = objectAt(objectAt(scheduling, "affinity"), "nodeAffinity");
  const terms = arrayAt(nodeAffinity["requiredDuringSchedulingIgnoredDuringExecution"], "nodeSelectorTerms");
  for (const expression of terms.flatMap((term) => arrayAt(term, "matchExpressions"))) {
    labels.add(stringAt(expression, "key") ?? "");
  }
  return { labels, byName: terms.some((term) => arrayAt(term, "matchFields").length > 0) };
}
