/**
 * Tells the objects of an admission from those of another one with the same number. There are some after a restore from
 * a dump: an admission that was recorded after the dump is not known any more, and a later one gets its number.
 */
import { LABEL } from "../../job/labels.ts";
import type { Admission } from "../../job/status.ts";
import type { ObservedCluster } from "../observed.ts";

/** An object of a job, by its labels. */
export type Labelled = { readonly admission: number; readonly labels: Readonly<Record<string, string>> };

/** True unless the object names the fence of another admission. Objects of older versions name none. */
export function hasFenceOf(
  { fence }: { readonly fence?: string | undefined },
  { labels }: Pick<Labelled, "labels">,
): boolean {
  const own = labels[LABEL.fence];
  return own === undefined || own === fence;
}

/** What is seen in a cluster without the objects of other admissions with this number. Their pods still have names. */
export function ofAdmission(seen: ObservedCluster, admission: Pick<Admission, "number" | "fence">): ObservedCluster {
  const isOther = (object: Labelled) => object.admission === admission.number && !hasFenceOf(admission, object);
  const without = <T extends Labelled>(objects: readonly T[]) => objects.filter((object) => !isOther(object));
  const { gang, lost } = seen;
  return {
    ...seen,
    pods: without(seen.pods),
    ...(lost === undefined ? {} : { lost: without(lost) }),
    services: without(seen.services),
    configMaps: without(seen.configMaps),
    ...(gang === undefined ? {} : { gang: { ...gang, groups: without(gang.groups) } }),
  };
}
