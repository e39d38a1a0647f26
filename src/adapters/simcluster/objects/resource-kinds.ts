/** The syntax of a kind's names: RFC 1123 subdomain or label. */
export type NameRule = "subdomain" | "label";

export type ResourceKind = {
  /** The name in storage and messages: `pods`, or with the group outside the core: `podgroups.scheduling.k8s.io`. */
  readonly resource: string;
  /** The name in paths: `pods`. */
  readonly plural: string;
  /** `v1`, or group and version. */
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly nameRule: NameRule;
  readonly shortNames: readonly string[];
  /** True: there is a `/status` path, and the main path does not change the status. */
  readonly hasStatus: boolean;
  /** True: a delete returns the object instead of a Status. Source: `ReturnDeletedObject` in Kubernetes' registries. */
  readonly returnsDeleted: boolean;
};

type ResourceKindOptions = Partial<Omit<ResourceKind, "resource" | "kind">>;

function kindOf(resource: string, kind: string, flags: ResourceKindOptions = {}): ResourceKind {
  const common = {
    plural: resource,
    apiVersion: "v1",
    namespaced: true,
    nameRule: "subdomain",
    shortNames: [],
    hasStatus: false,
    returnsDeleted: false,
  };
  return { resource, kind, ...common, ...flags } as ResourceKind;
}

/** These can be stored and read, but no webhook is called. */
function webhookKind(which: "Mutating" | "Validating"): ResourceKind {
  const plural = `${which.toLowerCase()}webhookconfigurations`;
  const apiVersion = "admissionregistration.k8s.io/v1";
  const resource = `${plural}.admissionregistration.k8s.io`;
  return kindOf(resource, `${which}WebhookConfiguration`, { plural, apiVersion, namespaced: false });
}

/** These can be stored and read, but have no effect on permissions. */
function rbacKind(plural: string, kind: string): ResourceKind {
  const resource = `${plural}.rbac.authorization.k8s.io`;
  return kindOf(resource, kind, { plural, apiVersion: "rbac.authorization.k8s.io/v1" });
}

/** The resource of custom kinds' definitions. */
export const CRD_RESOURCE = "customresourcedefinitions.apiextensions.k8s.io";

const KINDS: readonly ResourceKind[] = [
  kindOf("namespaces", "Namespace", { namespaced: false, nameRule: "label", shortNames: ["ns"], hasStatus: true }),
  kindOf("nodes", "Node", { namespaced: false, shortNames: ["no"], hasStatus: true }),
  kindOf("pods", "Pod", { shortNames: ["po"], hasStatus: true, returnsDeleted: true }),
  kindOf("services", "Service", { nameRule: "label", shortNames: ["svc"], hasStatus: true, returnsDeleted: true }),
  kindOf("configmaps", "ConfigMap", { shortNames: ["cm"] }),
  kindOf("resourcequotas", "ResourceQuota", { shortNames: ["quota"], hasStatus: true, returnsDeleted: true }),
  kindOf("events", "Event", { shortNames: ["ev"] }),
  kindOf("secrets", "Secret"),
  kindOf("serviceaccounts", "ServiceAccount", { shortNames: ["sa"], returnsDeleted: true }),
  kindOf("endpoints", "Endpoints", { shortNames: ["ep"] }),
  kindOf("limitranges", "LimitRange", { shortNames: ["limits"] }),
  kindOf("persistentvolumeclaims", "PersistentVolumeClaim", {
    shortNames: ["pvc"],
    hasStatus: true,
    returnsDeleted: true,
  }),
  kindOf("persistentvolumes", "PersistentVolume", {
    namespaced: false,
    shortNames: ["pv"],
    hasStatus: true,
    returnsDeleted: true,
  }),
  kindOf("podtemplates", "PodTemplate", { returnsDeleted: true }),
  kindOf("replicationcontrollers", "ReplicationController", { shortNames: ["rc"], hasStatus: true }),
  kindOf(CRD_RESOURCE, "CustomResourceDefinition", {
    plural: "customresourcedefinitions",
    apiVersion: "apiextensions.k8s.io/v1",
    namespaced: false,
    shortNames: ["crd", "crds"],
    hasStatus: true,
  }),
  rbacKind("roles", "Role"),
  rbacKind("rolebindings", "RoleBinding"),
  webhookKind("Mutating"),
  webhookKind("Validating"),
];

/** The kinds that every simulated cluster serves. */
export const RESOURCE_KINDS: ReadonlyMap<string, ResourceKind> = new Map(KINDS.map((kind) => [kind.resource, kind]));
