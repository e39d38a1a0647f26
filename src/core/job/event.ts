/** An event of a job, in the form of a Kubernetes event. */
export type JobEvent = {
  readonly type: "Normal" | "Warning";
  /** CamelCase, e.g. `PyTorchJobRunning`, `SuccessfulCreatePod`. */
  readonly reason: string;
  readonly message: string;
};

/** An event in the store. `version`: that of the job's record when the event was recorded. */
export type ShownEvent = JobEvent & { readonly atMs: number; readonly version: number; readonly jobUid: string };

/** Asks for one page of the events of all jobs that ever had this name. */
export type EventQuery = {
  readonly namespace: string;
  readonly name: string;
  readonly pageSize: number;
  /** The cursor that the previous page returned. Null: the first page. */
  readonly after: string | null;
};

/** One page of events, oldest first; `next` is null on the last page. */
export type EventPage = { readonly events: readonly ShownEvent[]; readonly next: string | null };
