/** Takes clusters that a caller may not see out of the words for why a gang waits. `refuse` makes these words. */
import { clusterName } from "../job/cluster-text.ts";
import type { ClusterRefusal } from "./plan-types.ts";

/** Decides which clusters a caller may see. */
export type MaySeeCluster = (name: string) => boolean;

/** Where a message names the cluster of another gang's reservation. */
const RESERVED_ON = /(is kept for the reservation of .* on )cluster (\S+)(?=; )/s;
const REPEATED = /(another cluster cannot be used)(?:; \1)+/g;

/**
 * The message without the clusters of these refusals that the caller may not see, their nodes, labels and taints. How
 * many pods fit stays.
 */
export function messageWithoutClusters(
  message: string,
  refusals: readonly ClusterRefusal[],
  maySee: MaySeeCluster,
): string {
  const hidden = refusals.filter(({ cluster }) => !maySee(cluster));
  // A text may be a part of another one.
  const told = hidden
    .flatMap((one) => [
      [`${clusterName({ ...one, name: one.cluster })}: ${one.message}`, wordsFor(one)] as const,
      [one.message, wordsFor(one)] as const,
    ])
    .sort(([one], [other]) => other.length - one.length);
  return told
    .reduce((text, [words, instead]) => text.replaceAll(words, instead), message)
    .replace(REPEATED, "$1")
    .replace(RESERVED_ON, (all, before: string, name: string) => (maySee(name) ? all : `${before}another cluster`));
}

function wordsFor({ reason, need, have }: ClusterRefusal): string {
  switch (reason) {
    case "NoCapacity":
      return `${have} of ${need} pods fit now on another cluster`;
    case "TooLarge":
      return "another cluster cannot take it even when it is empty";
    default:
      return "another cluster cannot be used";
  }
}
