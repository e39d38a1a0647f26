/** The service account of `deploy/cluster-rbac.yaml` on a control plane of the tests. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import type { JsonObject } from "../../src/runtime/json.ts";
import { objectAt, stringAt } from "../../src/runtime/json.ts";
import type { ControlPlane } from "./control-plane.ts";

/** The objects of the manifest. */
export const ACCOUNT_OBJECTS = parseAllDocuments(
  readFileSync(new URL("../../deploy/cluster-rbac.yaml", import.meta.url), "utf8"),
).map((document) => document.toJS() as JsonObject);

const PATHS: Readonly<Record<string, string>> = {
  Namespace: "/api/v1/namespaces",
  ServiceAccount: "/api/v1/namespaces/gangway-system/serviceaccounts",
  ClusterRole: "/apis/rbac.authorization.k8s.io/v1/clusterroles",
  ClusterRoleBinding: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
};
export const ROLE_PATH = `${PATHS["ClusterRole"]}/gangway`;

/** Applies the manifest without these kinds of objects, and returns a token of its account. */
export async function tokenOf({ client }: ControlPlane, without: readonly string[] = []): Promise<string> {
  for (const body of ACCOUNT_OBJECTS) {
    const kind = stringAt(body, "kind") ?? "";
    if (without.includes(kind)) continue;
    const applied = await client.request({ method: "POST", path: PATHS[kind] ?? "", body });
    assert.equal(applied.kind, "ok", applied.kind === "failed" ? applied.message : kind);
  }
  const path = `${PATHS["ServiceAccount"]}/gangway/token`;
  const issued = await client.request({ method: "POST", path, body: { spec: { expirationSeconds: 3600 } } });
  assert.ok(issued.kind === "ok", issued.kind === "failed" ? issued.message : "");
  return stringAt(objectAt(issued.object, "status"), "token") ?? "";
}
