import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import { parseAllDocuments } from "yaml";
import { Actions } from "../../src/adapters/cluster/actions.ts";
import { PERMISSIONS } from "../../src/adapters/cluster/permissions.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { arrayAt, objectAt, stringAt } from "../../src/runtime/json.ts";
import { gang } from "../cluster/gang.ts";
import { clientOf, clock, INSTALLATION } from "../cluster/harness.ts";
import { adapterSuite } from "./adapter-suite.ts";
import { controlPlaneBuilt } from "./build.ts";
import type { ControlPlane } from "./control-plane.ts";
import { realSubject, type Subject } from "./subject.ts";

const documents = parseAllDocuments(
  readFileSync(new URL("../../deploy/cluster-rbac.yaml", import.meta.url), "utf8"),
).map((document) => document.toJS() as JsonObject);
const PATHS: Readonly<Record<string, string>> = {
  Namespace: "/api/v1/namespaces",
  ServiceAccount: "/api/v1/namespaces/gangway-system/serviceaccounts",
  ClusterRole: "/apis/rbac.authorization.k8s.io/v1/clusterroles",
  ClusterRoleBinding: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
};
/** The permission that some clusters require for setting an owner. */
const STRICT = { admission: ["OwnerReferencesPermissionEnforcement"] };

/** Applies the manifest, all of it but some kinds, and returns a token of its account. */
async function tokenOf({ client }: ControlPlane, without: readonly string[] = []): Promise<string> {
  for (const body of documents) {
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

async function boundSubject(without: readonly string[] = []): Promise<Subject> {
  const subject = await realSubject(STRICT);
  const token = await tokenOf(subject.plane, without);
  return { ...subject, token, adapterKubeconfig: subject.plane.kubeconfig(token) };
}

test("the role grants exactly the permissions of the adapter, verb by verb", () => {
  const role = documents.find((document) => document["kind"] === "ClusterRole");
  const granted = arrayAt(role, "rules").flatMap((rule) =>
    arrayAt(rule, "apiGroups").flatMap((group) =>
      arrayAt(rule, "resources").flatMap((resource) =>
        arrayAt(rule, "verbs").map((verb) => `${verb} ${resource} ${group} ${arrayAt(rule, "resourceNames")}`),
      ),
    ),
  );
  const asked = PERMISSIONS.map(({ verb, resource, subresource, group, name = "" }) => {
    return `${verb} ${subresource === "" ? resource : `${resource}/${subresource}`} ${group} ${name}`;
  });
  assert.deepEqual(granted.sort(), asked.sort());
});

suite("with deploy/cluster-rbac.yaml", { skip: !controlPlaneBuilt() }, () => {
  adapterSuite("a real API server, as the service account of the manifest", () => boundSubject());

  test("without the binding every call is refused", async () => {
    const subject = await boundSubject(["ClusterRoleBinding"]);
    const client = clientOf(subject.adapterKubeconfig);
    const options = { client, clock, installation: INSTALLATION, writeBudget: 1, seen: () => undefined };
    const actions = new Actions({ ...options, createNamespaces: true });
    const outcome = await actions.act(gang().createAnchor, new AbortController().signal);
    assert.equal(outcome.kind === "failed" && outcome.reason, "Forbidden");
    for (const resource of ["nodes", "pods", "services", "configmaps"]) {
      const listed = await client.request({ method: "GET", path: `/api/v1/${resource}` });
      assert.equal(listed.kind === "failed" && listed.reason, "Forbidden", resource);
    }
    await client.close();
    await subject.stop();
  });
});
