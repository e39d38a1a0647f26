/** Child jobs of which each has a topology domain, such as a rack, for itself. Source: the pod webhook of JobSet. */

import { sha1Hex } from "../../../runtime/content-hash.ts";
import type { JsonObject } from "../../../runtime/json.ts";
import type { PodPlacing } from "../../pods/build/pod-placing.ts";
import type { ChildGroup } from "./jobset-spec.ts";

const PREFIX = "alpha.jobset.sigs.k8s.io/";
/** The annotation that names the label by which nodes belong to a topology domain. */
const EXCLUSIVE = `${PREFIX}exclusive-topology`;
/** The annotation that says that an operator has labelled and tainted the nodes of each child job. */
const NODE_SELECTOR = `${PREFIX}node-selector`;
const NAMESPACED_JOB = `${PREFIX}namespaced-job`;
const NO_SCHEDULE = `${PREFIX}no-schedule`;
const JOB_KEY = "jobset.sigs.k8s.io/job-key";
const PRIORITY = "jobset.sigs.k8s.io/priority";

/** The label of the topology domains that the scheduler chooses for child jobs. Null: it chooses none. */
export function ownTopology({ annotations }: Pick<ChildGroup, "annotations">): string | null {
  return annotations[NODE_SELECTOR] === undefined ? (annotations[EXCLUSIVE] ?? null) : null;
}

/** The name of a child job among all of the cluster. */
export function jobKey(namespace: string, childJob: string): string {
  return sha1Hex(`${namespace}/${childJob}`);
}

/** Those annotations that JobSet passes on: from a set to its child jobs, and from these to their pods. */
export function exclusiveAnnotations({
  annotations = {},
}: Partial<Pick<ChildGroup, "annotations">>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => key === EXCLUSIVE || key === NODE_SELECTOR));
}

/**
 * Which nodes may take a pod. The first pod of a child job chooses the domain: it shares it with its own job alone. The
 * others go to the domain of its node.
 */
export function exclusivePlacing(
  group: ChildGroup,
  of: {
    readonly namespace: string;
    readonly childJob: string;
    readonly priority: string;
    /** Of the first pod of the child job. Null: this is the first one, or its node is not known. */
    readonly leaderLabels: Readonly<Record<string, string>> | null;
  },
): PodPlacing {
  const { namespace, childJob, priority, leaderLabels } = of;
  const topologyKey = group.annotations[EXCLUSIVE];
  if (topologyKey === undefined) return {};
  if (ownTopology(group) === null) {
    return {
      nodeSelector: { [NAMESPACED_JOB]: `${namespace}_${childJob}` },
      tolerations: [{ key: NO_SCHEDULE, operator: "Exists", effect: "NoSchedule" }],
    };
  }
  const domain = leaderLabels?.[topologyKey];
  if (domain !== undefined) return { nodeSelector: { [topologyKey]: domain } };
  const own = [jobKey(namespace, childJob)];
  const term = (matchExpressions: readonly JsonObject[]): JsonObject => {
    return { labelSelector: { matchExpressions }, topologyKey, namespaceSelector: {} };
  };
  return {
    podAffinity: [term([{ key: JOB_KEY, operator: "In", values: own }])],
    podAntiAffinity: [
      term([
        { key: JOB_KEY, operator: "Exists" },
        { key: JOB_KEY, operator: "NotIn", values: own },
        { key: PRIORITY, operator: "In", values: [priority] },
      ]),
    ],
  };
}
