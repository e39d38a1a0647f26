import type { OnClusterLost } from "../job/spec.ts";
import type { GangScheduler } from "../pods/build/pod-group.ts";
import type { PodView } from "../pods/read/pod-view.ts";

/** An object of a job other than a pod, with the fields that decisions need. */
export type ObjectView = {
  readonly name: string;
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly controllerUid: string | null;
  readonly admission: number;
  readonly deleting: boolean;
};

/** A config map of a job, and its `data` as canonical JSON. */
export type ConfigMapView = ObjectView & { readonly data: string };

/** A PodGroup of a job: the phase that its scheduler reports, and the spec that we requested, as canonical JSON. */
export type PodGroupView = ObjectView & { readonly phase: string; readonly requestedSpec: string };

/** What a job needs to know of a cluster that counts as lost. */
export type Loss = {
  /** The fence of the last admission before that; later ones were made after its return. */
  readonly fence: string;
  /** Since when it counts as lost. */
  readonly sinceMs: number;
  /** For how long its observer has asked it in vain, in milliseconds. */
  readonly silenceMs: number;
  /** What the job's queues or its namespace say of gangs that ran there. */
  readonly policy: OnClusterLost;
};

/** The objects of one job in one cluster, as a worker's reflectors have them; as stale as the cluster's watch. */
export type ObservedCluster = {
  readonly cluster: string;
  /** True: the cluster was given up, so nothing of it will be seen any more. Omitted: false. */
  readonly forgotten?: true;
  /** The cluster counts as lost: nothing is known of its objects, and they may exist. Omitted: it is not lost. */
  readonly loss?: Loss;
  /** True: the records may be older than what is there, so nothing that they do not know is deleted. Omitted: false. */
  readonly unadopted?: true;
  /** Pods with the job's uid, and foreign pods that have the name of one of its pods. */
  readonly pods: readonly PodView[];
  /** The last state of pods that the platform has just removed. Omitted: none. */
  readonly lost?: readonly PodView[];
  readonly services: readonly ObjectView[];
  /** Config maps of this job: anchors of its admissions, and those that its kind made (see `anchoredMaps`). */
  readonly configMaps: readonly ConfigMapView[];
  /** The cluster's gang scheduler and the PodGroups of this job. Omitted: the cluster has no gang scheduler. */
  readonly gang?: { readonly scheduler: GangScheduler; readonly groups: readonly PodGroupView[] };
};

/**
 * All objects of a job, with one entry for each cluster that its admissions name or that has an object of it. A cluster
 * whose reflectors have not completed a list has no entry, and nothing is decided about its objects.
 */
export type Observed = readonly ObservedCluster[];

/** The job to observe, and where to look for its objects. */
export type JobToObserve = {
  readonly uid: string;
  /** The settings of these decide about its gang if its cluster is lost. Omitted: the gang does not move. */
  readonly of?: { readonly namespace: string; readonly queue: string };
  /** The clusters that its admissions name. */
  readonly clusters: readonly string[];
  /**
   * Names of the job's pods. A foreign pod that holds one of them is reported too, without a job's uid. Omitted:
   * foreign pods are not looked for.
   */
  readonly names?: { readonly namespace: string; readonly pods: readonly string[] };
};
