import type { JsonObject } from "../../../runtime/json.ts";
import { servedKinds } from "../objects/custom-kinds.ts";
import type { ObjectStore } from "../objects/object-store.ts";
import type { ResourceKind } from "../objects/resource-kinds.ts";

const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/** Answers `/api`, `/apis`, `/api/v1`, `/apis/GROUP/VERSION` and `/version`. Undefined for other paths. */
export function discovery(path: string, address: string, store: ObjectStore): JsonObject | undefined {
  const group = /^\/apis\/([^/]+\/[^/]+)$/.exec(path)?.[1];
  const kinds = servedKinds(store);
  if (group !== undefined && kinds.some((kind) => kind.apiVersion === group)) return resourceList(group, kinds);
  switch (path) {
    case "/version":
      return {
        major: "1",
        minor: "34",
        gitVersion: "v1.34.0-sim",
        gitCommit: "",
        gitTreeState: "clean",
        buildDate: "1970-01-01T00:00:00Z",
        goVersion: "",
        compiler: "",
        platform: "linux/amd64",
      };
    case "/api":
      return {
        kind: "APIVersions",
        versions: ["v1"],
        serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: address }],
      };
    case "/apis":
      return { kind: "APIGroupList", apiVersion: "v1", groups: groups(kinds) };
    case "/api/v1":
      return resourceList("v1", kinds);
    default:
      return undefined;
  }
}

function groups(kinds: readonly ResourceKind[]): readonly JsonObject[] {
  const versions = new Set(kinds.map((kind) => kind.apiVersion).filter((version) => version !== "v1"));
  const names = new Set([...versions].map((version) => version.split("/")[0] ?? ""));
  return [...names].map((name) => {
    const own = [...versions]
      .filter((version) => version.startsWith(`${name}/`))
      .map((groupVersion) => ({ groupVersion, version: groupVersion.slice(name.length + 1) }));
    return { name, versions: own, preferredVersion: own[0] };
  });
}

function resourceList(groupVersion: string, kinds: readonly ResourceKind[]): JsonObject {
  const resources = resourcesOf(kinds.filter((kind) => kind.apiVersion === groupVersion));
  return { kind: "APIResourceList", groupVersion, resources };
}

function resourcesOf(kinds: readonly ResourceKind[]): readonly JsonObject[] {
  return kinds.flatMap(({ plural: resource, kind, namespaced, shortNames, hasStatus }) => {
    const singularName = kind.toLowerCase();
    const main = { name: resource, singularName, namespaced, kind, verbs: VERBS, shortNames };
    const status = {
      name: `${resource}/status`,
      singularName: "",
      namespaced,
      kind,
      verbs: ["get", "patch", "update"],
    };
    const log = { name: "pods/log", singularName: "", namespaced, kind, verbs: ["get"] };
    return [main, ...(hasStatus ? [status] : []), ...(resource === "pods" ? [log] : [])];
  });
}
