import { arrayAt, type Json, type JsonObject, stringAt, stringMapAt } from "../../../runtime/json.ts";
import { requiredNodeTerms } from "../../pods/build-affinity.ts";
import { termMatches } from "../../pods/node-match.ts";
import type { PodClass } from "../model/ask.ts";
import type { NodeLabels } from "../model/node-labels.ts";

/**
 * True if pods select other nodes than those with any of some lists of labels. Only the labels of a list count: its
 * nodes may have further ones. False if there is no list.
 */
export function selectsOthers({ scheduling }: Pick<PodClass, "scheduling">, lists: readonly NodeLabels[]): boolean {
  return lists.length > 0 && lists.every((labels) => contradicts(scheduling, labels));
}

function contradicts(scheduling: JsonObject, labels: NodeLabels): boolean {
  const selected = Object.entries(stringMapAt(scheduling, "nodeSelector"));
  if (selected.some(([key, value]) => (labels[key] ?? value) !== value)) return true;
  const terms = requiredNodeTerms(scheduling);
  return (
    terms.length > 0 && terms.every((term) => arrayAt(term, "matchExpressions").some((one) => !holds(one, labels)))
  );
}

/** True if an expression is about another label, or holds for these. */
function holds(expression: Json, labels: NodeLabels): boolean {
  if (labels[stringAt(expression, "key") ?? ""] === undefined) return true;
  return termMatches({ matchExpressions: [expression] }, { name: "", labels, taints: [], unschedulable: false });
}
