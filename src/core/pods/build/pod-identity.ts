import { isJsonObject, type JsonObject, stringMapAt } from "../../../runtime/json.ts";

/** How a pod is found by others in its cluster, as its kind says. Omitted members: as the template says. */
export type PodIdentity = {
  /** They replace those of the template of the same names. Those of Gangway cannot be replaced. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly hostname?: string;
  readonly subdomain?: string;
};

/**
 * The labels and annotations of a template and of its kind. Other metadata of a template stays behind: a finalizer
 * would keep the pod for ever, an owner would take it away, and a resource version would make its creation fail.
 */
export function describedPod(
  metadata: JsonObject,
  { labels, annotations: ofKind }: PodIdentity,
): { readonly labels: Readonly<Record<string, string>>; readonly annotations?: JsonObject } {
  const { annotations } = metadata;
  const own = isJsonObject(annotations) ? annotations : undefined;
  return {
    labels: { ...stringMapAt(metadata, "labels"), ...labels },
    ...(own === undefined && ofKind === undefined ? {} : { annotations: { ...own, ...ofKind } }),
  };
}

/** The members of a pod spec by which the pod is found. */
export function hostOf({ hostname, subdomain }: PodIdentity): JsonObject {
  return { ...(hostname === undefined ? {} : { hostname }), ...(subdomain === undefined ? {} : { subdomain }) };
}
