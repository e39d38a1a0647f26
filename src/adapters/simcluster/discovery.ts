import type { JsonObject } from "../../runtime/json.ts";
import { RESOURCE_KINDS } from "./resource-kinds.ts";

const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/** The answers of `/api`, `/apis`, `/api/v1` and `/version`; undefined for other paths. */
export function discovery(path: string, address: string): JsonObject | undefined {
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
      return { kind: "APIGroupList", apiVersion: "v1", groups: [] };
    case "/api/v1":
      return { kind: "APIResourceList", groupVersion: "v1", resources: resources() };
    default:
      return undefined;
  }
}

function resources(): readonly JsonObject[] {
  return [...RESOURCE_KINDS.values()].flatMap(({ resource, kind, namespaced, shortNames, hasStatus }) => {
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
