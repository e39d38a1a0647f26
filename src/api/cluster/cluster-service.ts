import { type ClusterRecord, type ClusterStateName, clusterState } from "../../core/admin/cluster.ts";
import { gangsOfCluster } from "../../core/admin/placed-gangs.ts";
import type { Registry } from "../../core/kinds/registry.ts";
import type { ClusterService } from "../../gen/gangway/v1/cluster_service_pb.ts";
import type { Admin, ClusterAdmin } from "../ports.ts";
import { changedRecord, existingRecord } from "../rpc/admin-outcome.ts";
import type { CallContext } from "../rpc/call.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";
import { failedPrecondition, invalidFields, type RpcError, unavailable } from "../rpc/rpc-error.ts";
import { clusterRef, toProtoCluster } from "./convert-cluster.ts";
import { keyHandlers } from "./credential-keys.ts";
import { clusterGangs } from "./dry-run.ts";
import { getCapacity } from "./get-capacity.ts";
import { registration, wordsFor } from "./register-cluster.ts";

type ClusterPorts = {
  readonly admin: Admin;
  readonly kinds: Registry;
  readonly clusters: ClusterAdmin;
  /** Gives the counters the new limits and wakes the planner. A cluster's new flavors are new pools. */
  readonly limitsChanged: () => Promise<void>;
  readonly wakePlanner: () => void;
};

const UNCONFIRMED =
  "must be the name of the cluster once more: gangs that were not seen running go elsewhere, and do not come back";

const UNASKED = "nobody can tell what it has; adopt it without a dry run, or wait for it";

function answers(name: string, state: ClusterStateName): RpcError {
  const how = state === "UNUSABLE" ? "answers, although it cannot be used" : "answers";
  const description = `${how}, so it is not lost; cordon it to keep gangs away, or forget it if it is gone for good`;
  return failedPrecondition({ type: "CLUSTER_ANSWERS", subject: `cluster ${name}`, description });
}

export function clusterService(ports: ClusterPorts): ServiceHandlers<typeof ClusterService> {
  const { admin, wakePlanner } = ports;
  const shown = (record: ClusterRecord, { access }: Pick<CallContext, "access">) => ({
    ...toProtoCluster(record),
    problem: wordsFor(access)(record.silence?.unusable ?? ports.clusters.problemOf?.(record.name) ?? ""),
  });
  const setCordoned = async (name: string, cordoned: boolean, context: CallContext) => {
    const record = changedRecord(await admin.setCordoned(name, cordoned), clusterRef(name));
    wakePlanner();
    return { cluster: shown(record, context) };
  };
  const lossAhead = async (name: string, context: CallContext) => {
    const record = existingRecord(await admin.getCluster(name), clusterRef(name));
    const state = clusterState(record);
    if (state !== "UNREACHABLE" && state !== "LOST") throw answers(name, state);
    const gangs = clusterGangs(gangsOfCluster(await admin.placedGangs(name), "lost"), context.access);
    return { cluster: shown(record, context), gangs };
  };
  const adoptionAhead = async (name: string, context: CallContext) => {
    const record = existingRecord(await admin.getCluster(name), clusterRef(name));
    const gangs = (await ports.clusters.gangsIfAdopted?.(name, context.signal)) ?? null;
    if (gangs === null) throw unavailable("CLUSTER_UNREACHABLE", `cluster ${name} does not answer: ${UNASKED}`);
    return { cluster: shown(record, context), gangs: clusterGangs(gangs, context.access) };
  };
  return {
    ...registration(ports),
    ...keyHandlers(ports.clusters),
    getCluster: async ({ name }, context) => ({
      cluster: shown(existingRecord(await admin.getCluster(name), clusterRef(name)), context),
    }),
    listClusters: async (_request, context) => {
      const isSeen = ({ name }: ClusterRecord) => context.access.may("clusters.get", { kind: "cluster", name });
      const seen = (await admin.listClusters()).filter(isSeen);
      return { clusters: seen.map((record) => shown(record, context)) };
    },
    cordonCluster: ({ name }, context) => setCordoned(name, true, context),
    uncordonCluster: ({ name }, context) => setCordoned(name, false, context),
    declareClusterLost: async ({ name, confirm, dryRun }, context) => {
      if (dryRun) return lossAhead(name, context);
      if (confirm !== name) throw invalidFields([{ field: "confirm", message: UNCONFIRMED }]);
      const outcome = await admin.declareLost(name);
      if (outcome.kind === "answers") throw answers(name, outcome.state);
      const record = changedRecord(outcome, clusterRef(name));
      wakePlanner();
      return { cluster: shown(record, context) };
    },
    adoptCluster: async ({ name, dryRun }, context) => {
      if (dryRun) return adoptionAhead(name, context);
      const record = changedRecord(await admin.adoptCluster(name), clusterRef(name));
      wakePlanner();
      return { cluster: shown(record, context) };
    },
    getCapacity: (request, context) => getCapacity(ports, request, context),
  };
}
