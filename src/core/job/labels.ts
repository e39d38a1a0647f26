/** Labels and annotations that Gangway writes or reads, next to Kubeflow's. */
export const LABEL = {
  /** The uid of the job that an object belongs to. */
  jobUid: "gangway.dev/job-uid",
  /** The number of the admission that an object belongs to. */
  admission: "gangway.dev/admission",
  /** Which start of its replica index a pod is. */
  attempt: "gangway.dev/attempt",
  /** The installation that made an object; whatever carries it is ours to clean up. */
  installation: "gangway.dev/installation",
  jobName: "training.kubeflow.org/job-name",
  jobRole: "training.kubeflow.org/job-role",
  operatorName: "training.kubeflow.org/operator-name",
  replicaType: "training.kubeflow.org/replica-type",
  replicaIndex: "training.kubeflow.org/replica-index",
} as const;

/** The label of a manifest that names the job's queue, as Kueue's users write it. */
export const QUEUE_LABEL = "kueue.x-k8s.io/queue-name";
