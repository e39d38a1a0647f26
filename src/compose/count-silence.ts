import type { LossRule } from "../core/admin/lost-clusters.ts";
import type { Base } from "./base.ts";

/**
 * Makes the function that adds to the silence of a cluster, and logs which clusters are lost by that. The function
 * returns false if the time was not counted.
 */
export function silenceCounter(
  { store, telemetry }: Pick<Base, "store" | "telemetry">,
  of: {
    readonly cluster: string;
    /** Of the lease as the cluster's observer. Null: another process has it. */
    readonly leaseEpoch: () => number | null;
    readonly lossRule: LossRule;
  },
): (ms: number) => Promise<boolean> {
  const { cluster, lossRule } = of;
  /** The clusters of the last line in the log. Another line comes only when they change. */
  let told = "";
  return async (ms) => {
    const leaseEpoch = of.leaseEpoch();
    if (leaseEpoch === null) return false;
    const { counted, lost, held } = await store.clusters.countSilence({ cluster, ms, leaseEpoch }, lossRule);
    for (const name of lost) telemetry.clusterLost({ cluster: name });
    if (held.length > 0 && told !== held.join()) telemetry.clustersHeld({ clusters: held });
    told = held.join();
    return counted;
  };
}
