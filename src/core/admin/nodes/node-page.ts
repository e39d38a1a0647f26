/** One page of nodes, as a list asks for it and the API shows it. */
import type { JsonObject } from "../../../runtime/json.ts";
import type { AskMembers } from "../../plan/model/ask.ts";
import type { BoundMember, ClusterFlavor, NodeCapacity } from "../../plan/model/snapshot.ts";
import type { Resources } from "../../pods/resources.ts";
import type { ListedCluster } from "./node-book.ts";
import type { NodeFilter, NodeOrder } from "./node-query.ts";

export type NodeQuery = {
  /** The name of a cluster. Null: all clusters that `maySee` lets pass. */
  readonly cluster: string | null;
  readonly maySee: (cluster: string) => boolean;
  readonly filter: NodeFilter;
  readonly order: NodeOrder;
  readonly pageSize: number;
  /** The cursor that the previous page returned. Null: the first page. */
  readonly after: string | null;
  /** The version of an earlier page. Null: all nodes. */
  readonly newerThan: string | null;
  /** Versions of another scope do not count: its caller was shown other nodes, or other names. */
  readonly scope: string;
};

/** A node with what it has, and the cursor of the page that begins after it. */
export type ListedNode = {
  readonly cluster: string;
  readonly node: NodeCapacity;
  readonly clusterFlavors: readonly ClusterFlavor[];
  readonly members: readonly BoundMember[];
  readonly cursor: string;
};

/** A job with pods on nodes. */
export type HoldingJob = {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly kind: string;
  readonly queue: string;
  readonly createdBy: string;
  readonly kindSpec: JsonObject;
  /** The replica types by their names in lower case, as pods carry them. Empty: not known. */
  readonly roles: Readonly<Record<string, { readonly role: string; readonly requests: Resources }>>;
};

/** The replica types of a job, as its ask has them. */
export function rolesOf({ roles, podClasses }: AskMembers): HoldingJob["roles"] {
  return Object.fromEntries(
    roles.map(({ role, podClass }) => [role.toLowerCase(), { role, requests: podClasses[podClass]?.requests ?? {} }]),
  );
}

export type NodePage = {
  readonly nodes: readonly ListedNode[];
  /** Those of the jobs on these nodes that have a record. */
  readonly jobs: ReadonlyMap<string, HoldingJob>;
  /** Null on the last page. */
  readonly next: string | null;
  /** How many nodes all pages have together. */
  readonly total: number;
  /** Empty: it would be too long. */
  readonly version: string;
  readonly clusters: readonly (ListedCluster & {
    readonly complete: boolean;
    readonly removed: readonly string[];
  })[];
};
