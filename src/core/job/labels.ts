/** Labels and annotations that Gangway writes or reads, next to Kubeflow's. */
export const LABEL = {
  /** The uid of the job that an object belongs to. */
  jobUid: "gangway.dev/job-uid",
  /** The number of the admission that an object belongs to. */
  admission: "gangway.dev/admission",
  /** The attempt of a pod: how often its replica index was started. */
  attempt: "gangway.dev/attempt",
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
  jobName: "training.kubeflow.org/job-name",
  jobRole: "training.kubeflow.org/job-role",
  operatorName: "training.kubeflow.org/operator-name",
  replicaType: "training.kubeflow.org/replica-type",
  replicaIndex: "training.kubeflow.org/replica-index",
} as const;

/** The label of a manifest that names the job's queue, as Kueue's users write it. */
export const QUEUE_LABEL = "kueue.x-k8s.io/queue-name";
/** The label that names the job's priority class, as Kueue's users write it. */
export const PRIORITY_CLASS_LABEL = "kueue.x-k8s.io/priority-class";
