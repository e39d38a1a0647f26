/** Asks a cluster whose service account a token is of: the API TokenReview of Kubernetes. */
import type { ReviewedToken } from "../../core/access/service-account.ts";
import { arrayAt, objectAt, stringAt } from "../../runtime/json.ts";
import { UnavailableError } from "../../runtime/unavailable-error.ts";
import { createKubeClient } from "./client.ts";
import { withFiles } from "./kubeconfig-files.ts";

const CONNECTIONS_MAX = 4;
const REQUEST_MS_MAX = 5_000;
const PATH = "/apis/authentication.k8s.io/v1/tokenreviews";

/** Where a pod finds the API server, and what the kubelet mounts for its service account. */
const OWN_ACCOUNT = {
  server: "https://kubernetes.default.svc",
  folder: "/var/run/secrets/kubernetes.io/serviceaccount",
};

/** The kubeconfig of a process that runs in the cluster, by its own service account. */
export function inClusterKubeconfig({ server, folder } = OWN_ACCOUNT): string {
  const name = "in-cluster";
  return JSON.stringify({
    clusters: [{ name, cluster: { server, "certificate-authority": `${folder}/ca.crt` } }],
    users: [{ name, user: { tokenFile: `${folder}/token` } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    "current-context": name,
  });
}

/**
 * Reviews tokens for an audience. Throws an `UnavailableError` if the cluster does not answer. `onError` gets the
 * reason, which never shows a token.
 */
export async function tokenReviewer(
  kubeconfig: string,
  { audience, onError }: { readonly audience: string; readonly onError: (error: unknown) => void },
): Promise<(token: string) => Promise<ReviewedToken>> {
  const client = createKubeClient({
    kubeconfig: await withFiles(kubeconfig),
    connectionsMax: CONNECTIONS_MAX,
    requestTimeoutMs: REQUEST_MS_MAX,
  });
  return async (token) => {
    const body = {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenReview",
      spec: { token, audiences: [audience] },
    };
    const answer = await client.request({ method: "POST", path: PATH, body });
    if (answer.kind === "failed") {
      onError(new Error(`the cluster does not review tokens: ${answer.status} ${answer.reason}`));
      throw new UnavailableError("the cluster that reviews tokens does not answer; try again later");
    }
    const status = objectAt(answer.object, "status");
    if (status["authenticated"] !== true) return { kind: "unknown" };
    const user = objectAt(status, "user");
    return {
      kind: "known",
      username: stringAt(user, "username") ?? "",
      groups: arrayAt(user, "groups").filter((one) => typeof one === "string"),
      audiences: arrayAt(status, "audiences").filter((one) => typeof one === "string"),
    };
  };
}
