import type { NodeObstacle } from "../../pods/node-match.ts";

/** One thing that keeps a pod off a node. Amounts are in thousandths of the resource's unit. */
export type PodObstacle =
  | {
      readonly kind: "resource";
      readonly resource: string;
      readonly need: number;
      /** The part of `allocatable` that is free for the pod. */
      readonly available: number;
      readonly allocatable: number;
    }
  | (Extract<NodeObstacle, { readonly kind: "label" }> & {
      /** The flavor whose nodes carry the label. Omitted: the pod's own node selector names it. */
      readonly flavor?: string;
    })
  | Exclude<NodeObstacle, { readonly kind: "label" }>;

/** A pod of a gang that no node of a cluster takes, and the node that is nearest to taking it. */
export type BlockedPod = {
  /** The replica type of the pod. */
  readonly role: string;
  /** How many pods like it do find a node. */
  readonly placed: number;
  /** True: no node could take such a pod even if the cluster were empty. */
  readonly never: boolean;
  /** The node with the fewest obstacles. Null: the cluster has no node. */
  readonly node: string | null;
  /** How many nodes have just these obstacles. */
  readonly nodes: number;
  readonly obstacles: readonly PodObstacle[];
};
