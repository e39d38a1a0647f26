/** An object that belongs to an admission of a job of this installation. */
export type OwnObject = { readonly jobUid: string; readonly admission: number };

type Kept = {
  readonly jobUid: string | null;
  readonly view: { readonly admission: number; readonly deleting: boolean; readonly released?: boolean } | null;
};

/** The objects of jobs that are not being deleted. What Gangway has released belongs to no job. */
export function* ownObjects(stores: readonly Iterable<Kept>[]): Iterable<OwnObject> {
  for (const objects of stores) {
    for (const { jobUid, view } of objects) {
      if (jobUid !== null && view !== null && !view.deleting && view.released !== true)
        yield { jobUid, admission: view.admission };
    }
  }
}
