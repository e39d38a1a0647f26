/** Service accounts of a real cluster call by their tokens. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseAllDocuments } from "yaml";
import { createAuthenticate } from "../../src/access/authenticate.ts";
import { inClusterKubeconfig, tokenReviewer } from "../../src/adapters/cluster/token-review.ts";
import { NO_AUTHENTICATION } from "../../src/core/access/authentication-settings.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { objectAt, stringAt } from "../../src/runtime/json.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { controlPlaneBuilt } from "./build.ts";
import { startControlPlane } from "./control-plane.ts";

const MANIFEST = new URL("../../deploy/kubernetes/token-review.yaml", import.meta.url);

test("a service account is known by a token for this service, and by no other", {
  skip: !controlPlaneBuilt() && "needs the control plane of the tests: npm run kube:build",
}, async (t) => {
  const plane = await startControlPlane();
  let isStopped = false;
  t.after(async () => {
    if (!isStopped) await plane.stop();
  });
  const post = async (path: string, body: object) => {
    const answer = await plane.client.request({ method: "POST", path, body: body as never });
    assert.ok(answer.kind === "ok", JSON.stringify(answer));
    return answer.object;
  };
  await post("/api/v1/namespaces", { metadata: { name: "ml" } });
  await post("/api/v1/namespaces/ml/serviceaccounts", { metadata: { name: "bot" } });
  const tokenFor = async (...audiences: readonly string[]) => {
    const spec = { expirationSeconds: 600, ...(audiences.length === 0 ? {} : { audiences }) };
    const issued = await post("/api/v1/namespaces/ml/serviceaccounts/bot/token", { spec });
    return stringAt(objectAt(issued, "status"), "token") ?? "";
  };
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const none = () => Promise.reject(new Error("not in this test"));
  // As a process in the cluster: by an account of its own, which has the right that the manifests give it.
  await post("/api/v1/namespaces", { metadata: { name: "gangway" } });
  await post("/api/v1/namespaces/gangway/serviceaccounts", { metadata: { name: "gangway-api" } });
  for (const document of parseAllDocuments(readFileSync(MANIFEST, "utf8"))) {
    const { kind, ...rest } = document.toJS() as { readonly kind: string };
    await post(`/apis/rbac.authorization.k8s.io/v1/${kind.toLowerCase()}s`, { kind, ...rest });
  }
  const folder = mkdtempSync(join(tmpdir(), "gangway-account-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const ownPath = "/api/v1/namespaces/gangway/serviceaccounts/gangway-api/token";
  const own = stringAt(objectAt(await post(ownPath, { spec: { expirationSeconds: 600 } }), "status"), "token") ?? "";
  writeFileSync(join(folder, "token"), own);
  writeFileSync(join(folder, "ca.crt"), plane.certificate);
  const kubeconfig = inClusterKubeconfig({ server: plane.url, folder });
  const reviewToken = await tokenReviewer(kubeconfig, { audience: "gangway", onError });
  const authenticate = createAuthenticate(
    { clock: systemClock(), verifyToken: none, verifyRobot: none, reviewToken },
    { ...NO_AUTHENTICATION, kubernetes: { kubeconfig: null, audience: "gangway" }, certificates: false },
  );
  const show = (token: string) => authenticate({ authorization: [`Bearer ${token}`], certificate: null });
  const token = await tokenFor("gangway");
  const answer = await show(token);
  assert.ok(answer.kind === "identity", JSON.stringify(answer));
  const { subject, groups, method, expiresAtMs } = answer.identity;
  assert.deepEqual([subject, method], ["system:serviceaccount:ml:bot", "kubernetes"]);
  assert.deepEqual([...groups].sort(), ["system:serviceaccounts", "system:serviceaccounts:ml"]);
  assert.ok(expiresAtMs !== null && Math.abs(expiresAtMs - Date.now() - 600_000) < 60_000);
  assert.equal((await show(await tokenFor())).kind, "refused", "a token for the API server itself");
  assert.equal((await show(await tokenFor("vault"))).kind, "refused");
  const [header, payload] = token.split(".");
  assert.deepEqual(await show(`${header}.${payload}.${Buffer.alloc(256).toString("base64url")}`), {
    kind: "refused",
    why: "the cluster does not know the token, or it has expired",
  });
  assert.deepEqual(errors, []);
  const other = await tokenFor("gangway", "other");
  isStopped = true;
  await plane.stop();
  assert.equal((await show(token)).kind, "identity", "the answer of the last minute counts");
  await assert.rejects(async () => show(other), UnavailableError);
  assert.equal(errors.length, 1);
  assert.ok(!String(errors[0]).includes(other.slice(0, 30)));
});
