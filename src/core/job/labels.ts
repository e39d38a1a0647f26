/** Labels and annotations that Gangway writes or reads, next to Kubeflow's. */
export const LABEL = {
  /** The uid of the job that an object belongs to. */
  jobUid: "gangway.dev/job-uid",
  /** The number of the admission that an object belongs to. */
  admission: "gangway.dev/admission",
  /** The fence of that admission: two admissions never have the same. Objects of older versions have none. */
  fence: "gangway.dev/fence",
  /** The attempt of a pod: how often its replica index was started. */
  attempt: "gangway.dev/attempt",
  /** On a pod that is steered to a node: the version of the placement that planned it. */
  placement: "gangway.dev/placement",
  /** On a pod of an interruptible job: whether this attempt is interruptible. */
  interruptible: "gangway.dev/interruptible",
  /** The installation that created an object, and that cleans it up. */
  installation: "gangway.dev/installation",
  /** On an anchor: the gang scheduler of the admission's pods. */
  gangScheduler: "gangway.dev/gang-scheduler",
  /** The purpose of an object that a kind created beside pods and services. Anchors have none. */
  part: "gangway.dev/part",
  /** Annotation: the version of the record that an object was last made from. Older records do not change it. */
  jobVersion: "gangway.dev/job-version",
  /** Annotation of a volume claim that outlives its job: nothing owns it. */
  retained: "gangway.dev/retained",
  /** Annotation of a pod or service that Gangway has released: its labels were changed to take it out of its job. */
  released: "gangway.dev/released",
  jobName: "training.kubeflow.org/job-name",
  jobRole: "training.kubeflow.org/job-role",
  operatorName: "training.kubeflow.org/operator-name",
  replicaType: "training.kubeflow.org/replica-type",
  replicaIndex: "training.kubeflow.org/replica-index",
} as const;

/** True unless the labels name two admissions. A label of a fence that one of them lacks says nothing. */
export function isOneAdmission(
  one: Readonly<Record<string, string>>,
  other: Readonly<Record<string, string>>,
): boolean {
  const [fence, otherFence] = [one[LABEL.fence], other[LABEL.fence]];
  const isOneFence = fence === undefined || otherFence === undefined || fence === otherFence;
  return one[LABEL.admission] === other[LABEL.admission] && isOneFence;
}

/** The label of a manifest that names the job's queue, as Kueue's users write it. */
export const QUEUE_LABEL = "kueue.x-k8s.io/queue-name";
/** The label that names the job's priority class, as Kueue's users write it. */
export const PRIORITY_CLASS_LABEL = "kueue.x-k8s.io/priority-class";

/** The prefix of Gangway's own labels and annotations. */
export const OWN_PREFIX = "gangway.dev/";

/** True if an object's labels have all of the required ones, with the same values. */
export function hasLabels(
  labels: Readonly<Record<string, string>>,
  required: Readonly<Record<string, string>>,
): boolean {
  // The planner asks this of many nodes, so it makes no list of the labels.
  for (const key in required) if (labels[key] !== required[key]) return false;
  return true;
}
