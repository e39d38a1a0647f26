import {
  type ClusterCheck,
  type CredentialsRefusal,
  describeUidRefusal,
  type SentCluster,
  type SentCredentials,
  type UidRefusal,
} from "../../core/admin/cluster.ts";
import { withoutHiddenClusters } from "../../core/admin/hidden-clusters.ts";
import { gangsOfCluster } from "../../core/admin/placed-gangs.ts";
import type { ClusterFlavor } from "../../core/plan/model/snapshot.ts";
import { type Topology, topologyProblem } from "../../core/plan/model/topology.ts";
import type {
  Cluster,
  ClusterCredentials,
  ClusterService,
  ClusterFlavor as ProtoFlavor,
} from "../../gen/gangway/v1/cluster_service_pb.ts";
import type { Admin, ClusterAdmin } from "../ports.ts";
import { changedRecord, existingRecord } from "../rpc/admin-outcome.ts";
import type { CallAccess } from "../rpc/call-access.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";
import { alreadyExists, failedPrecondition, invalidFields, notFound } from "../rpc/rpc-error.ts";
import {
  clusterRef,
  gangSchedulerFromProto,
  toProtoCheck,
  toProtoCluster,
  topologyFromProto,
} from "./convert-cluster.ts";
import { clusterGangs } from "./dry-run.ts";

type Registration = Pick<
  ServiceHandlers<typeof ClusterService>,
  "registerCluster" | "updateCluster" | "checkCluster" | "deleteCluster"
>;

/** Registers, changes, checks and deletes clusters while the service runs. */
export function registration(ports: {
  readonly admin: Pick<Admin, "getCluster" | "placedGangs">;
  readonly clusters: ClusterAdmin;
  readonly limitsChanged: () => Promise<void>;
  readonly wakePlanner: () => void;
}): Registration {
  const { admin, clusters, limitsChanged, wakePlanner } = ports;
  return {
    registerCluster: async ({ cluster, credentials, validateOnly }, { access }) => {
      const sent = sentCluster(cluster);
      const by = sentCredentials(credentials);
      const words = wordsFor(access);
      if (validateOnly) return { check: shownCheck(accepted(await clusters.tryOut(sent, by), { sent, words }), words) };
      const outcome = accepted(await clusters.register(sent, by), { sent, words });
      const record = changedRecord(outcome, clusterRef(sent.name));
      await limitsChanged();
      return { cluster: toProtoCluster(record), ...checkOf(outcome, words), retired: [...(outcome.retired ?? [])] };
    },
    updateCluster: async ({ cluster, credentials }, { access }) => {
      const sent = { ...sentCluster(cluster), version: versionOf(cluster?.resourceVersion ?? "") };
      const by = credentials === undefined ? null : sentCredentials(credentials);
      const words = wordsFor(access);
      const outcome = accepted(await clusters.update(sent, by), { sent, words });
      const record = changedRecord(outcome, clusterRef(sent.name));
      await limitsChanged();
      return { cluster: toProtoCluster(record), ...checkOf(outcome, words) };
    },
    checkCluster: async ({ name }, { access }) => {
      const check = await clusters.check(name);
      if (check === "notFound") throw notFound(clusterRef(name));
      return { check: shownCheck(check, wordsFor(access)) };
    },
    deleteCluster: async ({ name, forget, confirm, dryRun }, { access }) => {
      if (dryRun && !forget) throw invalidFields([{ field: "dry_run", message: "is only for forget" }]);
      if (dryRun) {
        existingRecord(await admin.getCluster(name), clusterRef(name));
        return { gangs: clusterGangs(gangsOfCluster(await admin.placedGangs(name), "forgotten"), access) };
      }
      if (forget && confirm !== name) throw invalidFields([{ field: "confirm", message: UNCONFIRMED }]);
      const outcome = await clusters.remove(name, forget);
      const told = outcome.kind === "inUse" ? { ...outcome, by: wordsFor(access)(outcome.by) } : outcome;
      changedRecord(told, clusterRef(name));
      wakePlanner();
      return {};
    },
  };
}

const UNCONFIRMED =
  "must be the name of the cluster once more: its gangs run elsewhere then, also if their pods still run there";

/** The words of an error or a finding, without the other clusters that the caller may not see. */
type Words = (text: string) => string;

export function wordsFor(access: Pick<CallAccess, "may">): Words {
  return (text) => withoutHiddenClusters(text, (name) => access.may("clusters.get", { kind: "cluster", name }));
}

function shownCheck(check: ClusterCheck, words: Words) {
  const findings = check.findings.map((finding) => ({ ...finding, message: words(finding.message) }));
  return toProtoCheck({ ...check, findings });
}

/** Returns the outcome, unless the credentials or the cluster that they lead to were refused: then throws. */
function accepted<T extends object>(
  outcome: T | CredentialsRefusal | UidRefusal,
  { sent: { name }, words }: { readonly sent: SentCluster; readonly words: Words },
): T {
  if (!("kind" in outcome)) return outcome;
  throwSecretRefusal(outcome as CredentialsRefusal, words);
  const refusal = outcome as CredentialsRefusal | UidRefusal;
  if (refusal.kind === "sameCluster") {
    throw alreadyExists("SAME_CLUSTER", words(`cluster ${name} ${describeUidRefusal(refusal)}`));
  }
  if (refusal.kind === "otherCluster") {
    const description = describeUidRefusal(refusal);
    throw failedPrecondition({ type: "OTHER_CLUSTER", subject: `cluster ${name}`, description });
  }
  if (refusal.kind === "refusedCredentials") {
    throw invalidFields(refusal.problems.map((message) => ({ field: "credentials.kubeconfig", message })));
  }
  if (refusal.kind === "noKey") {
    const description =
      "cannot be registered: the server needs a key to encrypt the credentials; set GANGWAY_CREDENTIALS_KEY or " +
      "GANGWAY_CREDENTIALS_KEYS_FILE";
    throw failedPrecondition({ type: "NO_CREDENTIALS_KEY", subject: `cluster ${name}`, description });
  }
  return outcome as T;
}

function throwSecretRefusal(refusal: CredentialsRefusal, words: Words): void {
  if (refusal.kind === "unknownSource") throw notFound(clusterRef(refusal.source));
  if (refusal.kind === "refusedSource") {
    const message = words(`cluster ${refusal.source} ${refusal.why}`);
    throw invalidFields([{ field: "credentials.secret.cluster", message }]);
  }
  if (refusal.kind === "unreadSecret") {
    throw invalidFields([{ field: "credentials.secret", message: refusal.problem }]);
  }
}

function checkOf({ check }: { readonly check?: ClusterCheck }, words: Words) {
  return check === undefined ? {} : { check: shownCheck(check, words) };
}

function sentCluster(cluster: Cluster | undefined): SentCluster {
  const { name = "", labels = {}, flavors = [] } = cluster ?? {};
  const gangScheduler = gangSchedulerFromProto(cluster?.gangScheduler);
  const topology = topologyFromProto(cluster?.topology);
  const sent = flavors.map(sentFlavor);
  const wrong = [
    ...topologyProblems("cluster.topology", topology),
    ...sent.flatMap((flavor, at) => topologyProblems(`cluster.flavors[${at}].topology`, flavor.topology)),
  ];
  if (wrong.length > 0) throw invalidFields(wrong);
  return {
    name,
    labels,
    flavors: sent,
    ...(topology === undefined ? {} : { topology }),
    ...(gangScheduler === undefined ? {} : { gangScheduler }),
  };
}

function topologyProblems(field: string, topology: Topology | undefined) {
  const problem = topology === undefined ? null : topologyProblem(topology);
  return problem === null ? [] : [{ field: `${field}.levels`, message: problem }];
}

function sentFlavor({ name, resource, nodeLabels, topology: sent }: ProtoFlavor): ClusterFlavor {
  const topology = topologyFromProto(sent);
  return { name, resource, nodeLabels, ...(topology === undefined ? {} : { topology }) };
}

/** The key of a Secret's data that holds a kubeconfig, unless the request names another one. */
const DEFAULT_SECRET_KEY = "kubeconfig";

function sentCredentials(credentials: ClusterCredentials | undefined): SentCredentials {
  const { kubeconfig, context = "" } = credentials ?? {};
  if (kubeconfig?.case === "secret") {
    const { cluster, namespace, name, key } = kubeconfig.value;
    return { kubeconfig: { kind: "secret", cluster, namespace, name, key: key || DEFAULT_SECRET_KEY }, context };
  }
  if (kubeconfig?.case === "path") return { kubeconfig: { kind: "path", path: kubeconfig.value }, context };
  return { kubeconfig: { kind: "text", text: kubeconfig?.value ?? "" }, context };
}

function versionOf(resourceVersion: string): number {
  if (resourceVersion === "") return 0;
  if (/^[1-9]\d{0,15}$/.test(resourceVersion)) return Number(resourceVersion);
  throw invalidFields([
    { field: "cluster.resource_version", message: "must be empty or a version that was read: at most 16 digits" },
  ]);
}
