/** A kubeconfig in a Secret of a real cluster, which Gangway reads by the rights that the documentation gives it. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseAllDocuments } from "yaml";
import { KubeconfigSecrets } from "../../src/adapters/cluster/kubeconfig-secrets.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { objectAt, stringAt } from "../../src/runtime/json.ts";
import { clientOf } from "../cluster/harness.ts";
import { controlPlaneBuilt } from "./build.ts";
import { startControlPlane } from "./control-plane.ts";

const MANIFEST = new URL("../../deploy/kubeconfig-secret.yaml", import.meta.url);

test("Gangway's account reads the one Secret that it is let, by a kubeconfig and as a pod, and no other", {
  skip: !controlPlaneBuilt() && "needs the control plane of the tests: npm run kube:build",
}, async (t) => {
  const plane = await startControlPlane();
  t.after(() => plane.stop());
  const post = async (path: string, body: object) => {
    const answer = await plane.client.request({ method: "POST", path, body: body as never });
    assert.ok(answer.kind === "ok", JSON.stringify(answer));
    return answer.object;
  };
  const inGangway = "/api/v1/namespaces/gangway";
  await post("/api/v1/namespaces", { metadata: { name: "gangway" } });
  for (const name of ["gangway-api", "gangway-worker"])
    await post(`${inGangway}/serviceaccounts`, { metadata: { name } });
  const value = Buffer.from("kind: Config").toString("base64");
  for (const name of ["east-kubeconfig", "other"]) {
    await post(`${inGangway}/secrets`, { metadata: { name }, data: { kubeconfig: value } });
  }
  const issued = await post(`${inGangway}/serviceaccounts/gangway-worker/token`, { spec: { expirationSeconds: 600 } });
  const token = stringAt(objectAt(issued, "status"), "token") ?? "";
  const folder = mkdtempSync(join(tmpdir(), "gangway-account-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "token"), token);
  writeFileSync(join(folder, "ca.crt"), plane.certificate);
  const client = clientOf(plane.kubeconfig(token));
  t.after(() => client.close());
  const secrets = new KubeconfigSecrets({
    clock: systemClock(),
    allowLocal: false,
    ownAccount: { server: plane.url, folder },
    readObject: (_cluster, path, signal) => client.request({ method: "GET", path }, signal),
    onChanged: () => undefined,
    onError: (error) => assert.fail(String(error)),
  });
  const read = (cluster: string, name: string) =>
    secrets.read({ cluster, namespace: "gangway", name, key: "kubeconfig" });
  const forbidden = (of: string) =>
    new RegExp(`${of} .*may not be read: Gangway's account there needs the verb get for`);
  await assert.rejects(read("hub", "east-kubeconfig"), forbidden("the Secret gangway/east-kubeconfig of"));
  for (const document of parseAllDocuments(readFileSync(MANIFEST, "utf8"))) {
    const { kind, ...rest } = document.toJS() as { readonly kind: string };
    await post(`/apis/rbac.authorization.k8s.io/v1/namespaces/gangway/${kind.toLowerCase()}s`, { kind, ...rest });
  }
  for (const cluster of ["hub", ""]) {
    // The API server hears of a new role a moment later.
    const isLet = () =>
      read(cluster, "east-kubeconfig").then(
        (text) => text === "kind: Config",
        () => false,
      );
    while (!(await isLet())) await systemClock().sleep(20, t.signal);
    await assert.rejects(read(cluster, "other"), forbidden("the Secret gangway/other of"));
  }
  writeFileSync(join(folder, "token"), "none");
  await assert.rejects(read("", "east-kubeconfig"), /does not accept Gangway's credentials$/);
});
