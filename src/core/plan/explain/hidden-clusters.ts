/** Takes clusters that a caller may not see out of the messages for why a gang waits. `refuse` makes these messages. */
import { clusterName } from "../../job/cluster-text.ts";
import type { ClusterRefusal } from "../model/plan-types.ts";

/** Decides which clusters a caller may see. */
export type MaySeeCluster = (name: string) => boolean;

/** Where a message names the cluster of another gang's reservation: the last one after these words. */
const RESERVED = "is kept for the reservation of ";
const ON_CLUSTER = / on cluster (\S+); /g;
const REPEATED = /another cluster cannot be used(?:; another cluster cannot be used)+/g;

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
      [`${clusterName({ ...one, name: one.cluster })}: ${one.message}`, messageFor(one)] as const,
      [one.message, messageFor(one)] as const,
    ])
    .sort(([one], [other]) => other.length - one.length);
  const shown = told
    .reduce((text, [words, instead]) => text.replaceAll(words, instead), message)
    .replace(REPEATED, "another cluster cannot be used");
  return withoutReserved(shown, maySee);
}

function withoutReserved(message: string, maySee: MaySeeCluster): string {
  const from = message.indexOf(RESERVED);
  const last = from < 0 ? undefined : [...message.slice(from).matchAll(ON_CLUSTER)].at(-1);
  if (last === undefined || maySee(last[1] ?? "")) return message;
  const at = from + last.index;
  return `${message.slice(0, at)} on another cluster; ${message.slice(at + last[0].length)}`;
}

function messageFor({ reason, need, have }: ClusterRefusal): string {
  switch (reason) {
    case "NoCapacity":
      return `${have} of ${need} pods fit now on another cluster`;
    case "DomainFull":
      return "no domain of another cluster takes all pods now";
    case "TooLarge":
      return "another cluster cannot take it even when it is empty";
    default:
      return "another cluster cannot be used";
  }
}

/** Where `refuse` and `blocked-messages` name clusters, and what is said instead. What follows is about the cluster. */
const RECORDED: readonly (readonly [words: RegExp, instead: string])[] = [
  [/( fit now on )(\S+?)(?: \(simulated\))?(;.*)?$/s, "$1another cluster"],
  [/(; )(\S+?)(?: \(simulated\))?( takes \d+ even when it is empty)(; .*)?$/s, "$1another cluster$3"],
  [/(; )cluster (\S+?)(?: \(simulated\))?( has no nodes)/, "$1another cluster$3"],
];
/** Each of the clusters follows, with words of any kind. */
const EACH = /(no cluster can be used): .*$/s;

/** Recorded messages, which come without refusals. If some clusters may not be seen, a list of all of them goes. */
export function recordedWithoutClusters(message: string, maySee: MaySeeCluster): string {
  const told = RECORDED.reduce(
    (text, [words, instead]) => (maySee(words.exec(text)?.[2] ?? "") ? text : text.replace(words, instead)),
    message,
  );
  return messageWithoutClusters(withoutNodes(told, maySee).replace(EACH, "$1"), [], maySee);
}

const NO_NODE = /no node of cluster (\S+?)(?: \(simulated\))?( can ever take an? )/;

/** Where `blocked-messages` says which nodes of a cluster do not take a pod. Up to the first colon, the words stay. */
function withoutNodes(message: string, maySee: MaySeeCluster): string {
  const found = NO_NODE.exec(message);
  if (found === null || maySee(found[1] ?? "")) return message;
  const rest = found.index + found[0].length;
  const colon = message.indexOf(":", rest);
  if (colon < 0 || message[colon + 1] !== " ") return message;
  return `${message.slice(0, found.index)}no node of another cluster${found[2]}${message.slice(rest, colon)}`;
}
