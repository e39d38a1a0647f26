/** How the names of a kind are checked: RFC 1123 subdomain, RFC 1123 label or RFC 1035 label. */
export type NameRule = "subdomain" | "label" | "label1035";

export type ResourceKind = {
  /** Plural, as in paths: `pods`. */
  readonly resource: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly nameRule: NameRule;
  readonly shortNames: readonly string[];
  /** A `/status` path exists, and the main path leaves the status alone. */
  readonly hasStatus: boolean;
  /** A delete answers with the object that went, instead of a Status. Source: `ReturnDeletedObject` in Kubernetes' registries. */
  readonly returnsDeleted: boolean;
};

type Flags = Partial<Omit<ResourceKind, "resource" | "kind">>;

function kindOf(resource: string, kind: string, flags: Flags = {}): ResourceKind {
  const common = { namespaced: true, nameRule: "subdomain", shortNames: [], hasStatus: false, returnsDeleted: false };
  return { resource, kind, ...common, ...flags } as ResourceKind;
}

const KINDS: readonly ResourceKind[] = [
  kindOf("namespaces", "Namespace", { namespaced: false, nameRule: "label", shortNames: ["ns"], hasStatus: true }),
  kindOf("nodes", "Node", { namespaced: false, shortNames: ["no"], hasStatus: true }),
  kindOf("pods", "Pod", { shortNames: ["po"], hasStatus: true, returnsDeleted: true }),
  kindOf("services", "Service", { nameRule: "label1035", shortNames: ["svc"], hasStatus: true, returnsDeleted: true }),
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
];

/** The kinds of the core group `v1` that the simulated cluster keeps, by the resource name of their paths. */
export const RESOURCE_KINDS: ReadonlyMap<string, ResourceKind> = new Map(KINDS.map((kind) => [kind.resource, kind]));
