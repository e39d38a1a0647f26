/** What is left of admissions in a cluster. */
import { hasLabels, LABEL } from "../../job/labels.ts";
import type { Admission } from "../../job/status.ts";
import { jobLabels } from "../../pods/build/build-labels.ts";
import { GANG_SCHEDULERS } from "../../pods/build/pod-group.ts";
import type { PodView } from "../../pods/read/pod-view.ts";
import type { Inputs } from "../decision-draft.ts";
import type { ObjectView, ObservedCluster } from "../observed.ts";
import { anchoredMaps, belongsTo } from "./anchored-objects.ts";
import { hasFenceOf, type Labelled } from "./object-fences.ts";

/** All objects of one admission that are seen in one cluster. */
export type Remains = {
  readonly cluster: string;
  readonly number: number;
  /** True: the record names this admission. It may name another one with the same number. */
  readonly isRecorded: boolean;
  readonly pods: readonly PodView[];
  readonly services: readonly ObjectView[];
  /** Config maps that the kind made. */
  readonly configMaps: readonly ObjectView[];
  readonly anchor: ObjectView | null;
  readonly groups: readonly ObjectView[];
  /** The API version of the groups; empty if the cluster has no gang scheduler. */
  readonly groupVersion: string;
};

/**
 * All objects of the job that are seen in a cluster, by admission. A pod without an owner whose labels were changed is
 * none of them: somebody has taken it out of the job.
 */
export function remainsOf(seen: ObservedCluster, { job, kind, config }: Inputs): readonly Remains[] {
  const labels = jobLabels({ job, operatorName: kind.operatorName, config: config.build });
  const isOwn = (pod: PodView) => pod.controllerUid !== null || hasLabels(pod.labels, labels);
  return remainsIn({ ...seen, pods: seen.pods.filter(isOwn) }, job);
}

/** `admissions`: those that the record names; none of a job whose record is gone. */
type Recorded = { readonly uid: string; readonly admissions: readonly Admission[] };

/** The same of a job by its uid alone. What Gangway has released belongs to no job. */
export function remainsIn(seen: ObservedCluster, { uid, admissions }: Recorded): readonly Remains[] {
  const pods = seen.pods.filter((pod) => pod.jobUid === uid && !pod.released);
  const objects: readonly Labelled[] = [...pods, ...seen.services, ...seen.configMaps, ...(seen.gang?.groups ?? [])];
  const isRecorded = (object: Labelled) =>
    admissions.some(({ number, cluster, fence }) => {
      return number === object.admission && cluster === seen.cluster && hasFenceOf({ fence }, object);
    });
  // Admissions that the record does not name may have one number.
  const keyOf = (object: Labelled) =>
    `${object.admission} ${isRecorded(object) ? "recorded" : (object.labels[LABEL.fence] ?? "")}`;
  const keys = new Map(objects.map((object) => [object, keyOf(object)]));
  const byKey = new Map(objects.map((object) => [keys.get(object), object]));
  return [...byKey]
    .sort(([, a], [, b]) => a.admission - b.admission)
    .map(([key, object]) => {
      const of = (one: Labelled) => keys.get(one) === key;
      return remainsOfOne({ ...seen, pods }, of, { number: object.admission, isRecorded: isRecorded(object) });
    });
}

/** The objects that are of one admission and do not belong to another anchor. */
function remainsOfOne(
  seen: ObservedCluster,
  of: (object: Labelled) => boolean,
  admission: Pick<Remains, "number" | "isRecorded">,
): Remains {
  const { anchor, parts: configMaps } = anchoredMaps(
    { ...seen, configMaps: seen.configMaps.filter(of) },
    admission.number,
  );
  const { groups = [], scheduler } = seen.gang ?? {};
  return {
    ...admission,
    cluster: seen.cluster,
    anchor,
    configMaps,
    pods: seen.pods.filter((pod) => of(pod) && belongsTo(pod, anchor)),
    services: seen.services.filter((service) => of(service) && belongsTo(service, anchor)),
    groups: groups.filter((group) => of(group) && belongsTo(group, anchor)),
    groupVersion: scheduler === undefined ? "" : GANG_SCHEDULERS[scheduler].apiVersion,
  };
}
