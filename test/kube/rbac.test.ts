import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Actions } from "../../src/adapters/cluster/actions.ts";
import { PERMISSIONS } from "../../src/adapters/cluster/permissions.ts";
import { WriteQueue } from "../../src/adapters/cluster/write-queue.ts";
import { arrayAt } from "../../src/runtime/json.ts";
import { gang } from "../cluster/gang.ts";
import { clientOf, clock, INSTALLATION } from "../cluster/harness.ts";
import { adapterSuite } from "./adapter-suite.ts";
import { controlPlaneBuilt } from "./build.ts";
import { ACCOUNT_OBJECTS, tokenOf } from "./service-account.ts";
import { realSubject, type Subject } from "./subject.ts";

/** The permission that some clusters require for setting an owner. */
const STRICT = { admission: ["OwnerReferencesPermissionEnforcement"] };

async function boundSubject(without: readonly string[] = []): Promise<Subject> {
  const subject = await realSubject(STRICT);
  const token = await tokenOf(subject.plane, without);
  return { ...subject, token, adapterKubeconfig: subject.plane.kubeconfig(token) };
}

test("the role grants exactly the permissions of the adapter, verb by verb", () => {
  const role = ACCOUNT_OBJECTS.find((document) => document["kind"] === "ClusterRole");
  const paths = arrayAt(role, "rules").flatMap((rule) =>
    arrayAt(rule, "nonResourceURLs").flatMap((path) => arrayAt(rule, "verbs").map((verb) => `${verb} ${path}  `)),
  );
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
  assert.deepEqual([...paths, ...granted].sort(), asked.sort());
});

suite("with deploy/cluster-rbac.yaml", { skip: !controlPlaneBuilt() }, () => {
  adapterSuite("a real API server, as the service account of the manifest", () => boundSubject());

  test("without the binding every call is refused", async () => {
    const subject = await boundSubject(["ClusterRoleBinding"]);
    const client = clientOf(subject.adapterKubeconfig);
    const options = {
      client,
      clock,
      installation: INSTALLATION,
      writes: new WriteQueue({ clock, writesMax: 1 }),
      seen: () => undefined,
    };
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
