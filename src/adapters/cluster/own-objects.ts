import { LABEL } from "../../core/job/labels.ts";
import type { PodPhase } from "../../core/pods/read/pod-view.ts";

/** An object that belongs to an admission of a job of this installation. */
export type OwnObject = {
  readonly jobUid: string;
  readonly admission: number;
  /** The fence of that admission. Null: an older version has made the object. */
  readonly fence: string | null;
  /** True: a pod that has not ended. A PodGroup that says a phase of such a pod counts as well. */
  readonly runs: boolean;
};

type Kept = {
  readonly jobUid: string | null;
  readonly view: {
    readonly admission: number;
    readonly labels: Readonly<Record<string, string>>;
    readonly deleting: boolean;
    readonly released?: boolean;
    /** Of a pod, or of a PodGroup, whose phases partly have the same names. */
    readonly phase?: string;
  } | null;
};

/** The objects of jobs that are not being deleted. What Gangway has released belongs to no job. */
export function* ownObjects(stores: readonly Iterable<Kept>[]): Iterable<OwnObject> {
  for (const objects of stores) {
    for (const { jobUid, view } of objects) {
      if (jobUid === null || view === null || view.deleting || view.released === true) continue;
      const { admission, labels, phase } = view;
      yield { jobUid, admission, fence: labels[LABEL.fence] ?? null, runs: RUNS.includes(phase) };
    }
  }
}

/** The phases of a pod that has not ended. */
const RUNS: readonly (string | undefined)[] = ["Pending", "Running", "Unknown"] satisfies PodPhase[];
