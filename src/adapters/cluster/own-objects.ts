/** An object that belongs to an admission of a job of this installation. */
export type OwnObject = {
  readonly jobUid: string;
  readonly admission: number;
  /** True: a pod that has not ended. */
  readonly runs: boolean;
};

type Kept = {
  readonly jobUid: string | null;
  readonly view: {
    readonly admission: number;
    readonly deleting: boolean;
    readonly released?: boolean;
    /** Of a pod. */
    readonly phase?: string;
  } | null;
};

/** The objects of jobs that are not being deleted. What Gangway has released belongs to no job. */
export function* ownObjects(stores: readonly Iterable<Kept>[]): Iterable<OwnObject> {
  for (const objects of stores) {
    for (const { jobUid, view } of objects) {
      if (jobUid !== null && view !== null && !view.deleting && view.released !== true)
        yield { jobUid, admission: view.admission, runs: hasPhase(view) && !ENDED.includes(view.phase) };
    }
  }
}

const ENDED: readonly string[] = ["Succeeded", "Failed"];

/** PodGroups have phases of their own, which are no pod's. */
function hasPhase<V extends { readonly phase?: string }>(view: V): view is V & { readonly phase: string } {
  return typeof view.phase === "string" && PHASES.includes(view.phase);
}

const PHASES: readonly string[] = ["Pending", "Running", "Unknown", ...ENDED];
