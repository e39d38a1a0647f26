import type { Cluster, ClusterCredentials, ClusterService } from "../gen/gangway/v1/cluster_service_pb.ts";
import { changed } from "./change-outcome.ts";
import { gangSchedulerFromProto, named, toProtoCheck, toProtoCluster } from "./convert-cluster.ts";
import type { ServiceHandlers } from "./handler.ts";
import type { ClusterAdmin, CredentialsRefusal, SentCluster, SentCredentials } from "./ports.ts";
import { failedPrecondition, invalidFields, notFound } from "./rpc-error.ts";

type Registration = Pick<
  ServiceHandlers<typeof ClusterService>,
  "registerCluster" | "updateCluster" | "checkCluster" | "deleteCluster"
>;

/** Name of a cluster: it becomes part of messages and of nothing else. */
const NAME = /^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/;

/** Makes clusters known while the service runs, and asks them what they would refuse. */
export function registration(ports: {
  readonly clusters: ClusterAdmin;
  readonly wakePlanner: () => void;
}): Registration {
  const { clusters, wakePlanner } = ports;
  return {
    registerCluster: async ({ cluster, credentials, validateOnly }) => {
      const sent = sentCluster(cluster);
      const by = sentCredentials(credentials);
      if (validateOnly) return { check: toProtoCheck(accepted(await clusters.tryOut(sent, by), sent)) };
      const outcome = accepted(await clusters.register(sent, by), sent);
      const record = changed(outcome, named(sent.name));
      wakePlanner();
      const check = "check" in outcome && outcome.check !== undefined ? { check: toProtoCheck(outcome.check) } : {};
      return { cluster: toProtoCluster(record), ...check };
    },
    updateCluster: async ({ cluster, credentials }) => {
      const sent = { ...sentCluster(cluster), version: versionOf(cluster?.resourceVersion ?? "") };
      const by = credentials === undefined ? null : sentCredentials(credentials);
      const record = changed(accepted(await clusters.update(sent, by), sent), named(sent.name));
      wakePlanner();
      return { cluster: toProtoCluster(record) };
    },
    checkCluster: async ({ name }) => {
      const check = await clusters.check(name);
      if (check === "notFound") throw notFound(named(name));
      return { check: toProtoCheck(check) };
    },
    deleteCluster: async ({ name, forget }) => {
      changed(await clusters.remove(name, forget), named(name));
      wakePlanner();
      return {};
    },
  };
}

/** What was not refused for its credentials. */
function accepted<T extends object>(outcome: T | CredentialsRefusal, { name }: SentCluster): T {
  if (!("kind" in outcome)) return outcome;
  const refusal = outcome as CredentialsRefusal;
  if (refusal.kind === "refusedCredentials") {
    throw invalidFields(refusal.problems.map((message) => ({ field: "credentials.kubeconfig", message })));
  }
  if (refusal.kind === "noKey") {
    const description =
      "cannot be registered: the server has no GANGWAY_CREDENTIALS_KEY to encrypt its credentials with";
    throw failedPrecondition({ type: "NO_CREDENTIALS_KEY", subject: `cluster ${name}`, description });
  }
  return outcome as T;
}

function sentCluster(cluster: Cluster | undefined): SentCluster {
  const { name = "", labels = {}, flavors = [] } = cluster ?? {};
  const notes = [
    ...(NAME.test(name)
      ? []
      : [{ field: "cluster.name", message: "must be a lower case DNS name of at most 63 characters" }]),
    ...flavors.flatMap((flavor, index) => flavorNotes(flavor, index)),
    ...duplicates(flavors.map((flavor) => flavor.name)),
  ];
  if (notes.length > 0) throw invalidFields(notes);
  const gangScheduler = gangSchedulerFromProto(cluster?.gangScheduler);
  return {
    name,
    labels,
    flavors: flavors.map((flavor) => ({ name: flavor.name, resource: flavor.resource, nodeLabels: flavor.nodeLabels })),
    ...(gangScheduler === undefined ? {} : { gangScheduler }),
  };
}

function flavorNotes({ name, resource }: { readonly name: string; readonly resource: string }, index: number) {
  return [
    ...(name === "" ? [{ field: `cluster.flavors[${index}].name`, message: "is required, e.g. gpu/h100" }] : []),
    ...(resource === ""
      ? [{ field: `cluster.flavors[${index}].resource`, message: "is required, e.g. nvidia.com/gpu" }]
      : []),
  ];
}

function duplicates(names: readonly string[]) {
  const twice = new Set(names.filter((name, index) => names.indexOf(name) !== index));
  return [...twice].map((name) => ({ field: "cluster.flavors", message: `name ${name} more than once` }));
}

function sentCredentials(credentials: ClusterCredentials | undefined): SentCredentials {
  const { kubeconfig, context = "" } = credentials ?? {};
  if (kubeconfig?.case === "path") return { kubeconfig: { kind: "path", path: kubeconfig.value }, context };
  return { kubeconfig: { kind: "text", text: kubeconfig?.value ?? "" }, context };
}

function versionOf(resourceVersion: string): number {
  if (resourceVersion === "") return 0;
  if (/^[1-9]\d{0,15}$/.test(resourceVersion)) return Number(resourceVersion);
  throw invalidFields([{ field: "cluster.resource_version", message: "must be one that was read" }]);
}
