/** The flag by which namespaces and queues say whether gangs wait for a lost cluster. */
import { Option } from "commander";
import { OnClusterLost } from "../../gen/gangway/v1/namespace_service_pb.ts";

/** Each word of the flag, with the value that the service knows. `inherit` is for queues alone. */
export const ON_CLUSTER_LOST = {
  wait: OnClusterLost.WAIT,
  move: OnClusterLost.MOVE,
  inherit: OnClusterLost.UNSPECIFIED,
} as const;

export type OnClusterLostWord = keyof typeof ON_CLUSTER_LOST;

/** `more` is added to the help. */
export function onClusterLostOption(words: readonly OnClusterLostWord[], more: string): Option {
  return new Option(
    `--on-cluster-lost <${words.join("|")}>`,
    `whether gangs that ran in a cluster which counts as lost wait for it, or run elsewhere after a while${more}`,
  ).choices(words);
}
