/** A cluster in a list: `h100-east`, or `h100-east (simulated)`. */
export function clusterName({ name, simulated = false }: ClusterMention): string {
  return simulated ? `${name} (simulated)` : name;
}

/** A cluster in a sentence: `cluster h100-east`, or `simulated cluster h100-east`. */
export function clusterWords({ name, simulated = false }: ClusterMention): string {
  return simulated ? `simulated cluster ${name}` : `cluster ${name}`;
}

type ClusterMention = {
  readonly name: string;
  /** Omitted: the cluster is a real one. */
  readonly simulated?: boolean;
};
