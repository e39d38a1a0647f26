/** Labels and annotations that Gangway writes or reads, next to Kubeflow's. */
export const LABEL = {
  /** The uid of the job that an object belongs to. */
  jobUid: "gangway.dev/job-uid",
  /** The number of the admission that an object belongs to. */
  admission: "gangway.dev/admission",
  /** Which start of its replica index a pod is. */
  attempt: "gangway.dev/attempt",
  /** On a pod of a job that is interruptible: whether this attempt is. */
  interruptible: "gangway.dev/interruptible",
  /** The installation that made an object; whatever carries it is ours to clean up. */
  installation: "gangway.dev/installation",
  /** On an anchor: the gang scheduler that the admission's pods were made for. */
  gangScheduler: "gangway.dev/gang-scheduler",
  /** What an object is for that a kind made beside pods and services; anchors carry none. */
  part: "gangway.dev/part",
  /** Annotation: the version of the job's record that a part was last made from; an older record does not change it any more. */
  jobVersion: "gangway.dev/job-version",
  jobName: "training.kubeflow.org/job-name",
  jobRole: "training.kubeflow.org/job-role",
  operatorName: "training.kubeflow.org/operator-name",
  replicaType: "training.kubeflow.org/replica-type",
  replicaIndex: "training.kubeflow.org/replica-index",
} as const;

/** The label of a manifest that names the job's queue, as Kueue's users write it. */
export const QUEUE_LABEL = "kueue.x-k8s.io/queue-name";
