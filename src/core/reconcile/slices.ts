import type { PodView } from "../pods/pod-view.ts";

/** No gang is this large; an index beyond it is a label that somebody made up, and a slice for each one below it would cost memory. */
const INDEX_MAX = 100_000;

/**
 * Sorts the pods of one replica type by index: at least `replicas` slices, more if an index lies beyond. Pods without a usable index are
 * in none. Source: Kubeflow's GetPodSlices.
 */
export function podSlices(pods: readonly PodView[], replicas: number): readonly (readonly PodView[])[] {
  const slices: PodView[][] = Array.from({ length: replicas }, () => []);
  for (const pod of pods) {
    if (pod.index === null || pod.index > INDEX_MAX) continue;
    while (slices.length <= pod.index) slices.push([]);
    slices[pod.index]?.push(pod);
  }
  return slices;
}
