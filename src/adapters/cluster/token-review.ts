/** Asks a cluster whose service account a token is of: the API TokenReview of Kubernetes. */
import type { ReviewedToken } from "../../core/access/service-account.ts";
import type { Clock } from "../../runtime/clock.ts";
import { arrayAt, objectAt, stringAt } from "../../runtime/json.ts";
import { UnavailableError } from "../../runtime/unavailable-error.ts";
import { createKubeClient } from "./client.ts";
import { withFiles } from "./kubeconfig-files.ts";

const CONNECTIONS_MAX = 4;
const REQUEST_MS_MAX = 5_000;
/** The kubeconfig is read again at most this often. */
const READ_AGAIN_MS = 30_000;
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

export type ReviewOptions = {
  readonly audience: string;
  /** Gets the reason why the cluster did not review. The reason never shows a token. */
  readonly onError: (error: unknown) => void;
};

export type ReviewToken = (token: string) => Promise<ReviewedToken>;

/** Reviews tokens for an audience. Throws an `UnavailableError` if the cluster does not answer. */
export async function tokenReviewer(kubeconfig: string, options: ReviewOptions): Promise<ReviewToken> {
  return reviewerAt(await withFiles(kubeconfig), options).review;
}

/**
 * The same for a kubeconfig whose text and files may change while the service runs. A review that fails reads them
 * again, at most once in 30 seconds, and is repeated if they are other ones.
 */
export async function followedReviewer(
  readKubeconfig: () => Promise<string>,
  { clock, ...options }: ReviewOptions & { readonly clock: Pick<Clock, "monotonicMs"> },
): Promise<ReviewToken> {
  const read = async () => withFiles(await readKubeconfig());
  let seen = await read();
  let current = reviewerAt(seen, options);
  let readMs = clock.monotonicMs();
  let reading: Promise<void> | null = null;
  const readAgain = async () => {
    readMs = clock.monotonicMs();
    const now = await read();
    if (now === seen) return;
    const before = current;
    current = reviewerAt(now, options);
    seen = now;
    void before.close();
  };
  return async (token) => {
    const used = current;
    try {
      return await used.review(token);
    } catch (error) {
      if (current === used && reading === null && clock.monotonicMs() - readMs >= READ_AGAIN_MS) {
        reading = readAgain()
          .catch(options.onError)
          .finally(() => {
            reading = null;
          });
      }
      await reading;
      if (current === used) throw error;
      return current.review(token);
    }
  };
}

function reviewerAt(
  kubeconfig: string,
  { audience, onError }: ReviewOptions,
): { readonly review: ReviewToken; readonly close: () => Promise<void> } {
  const client = createKubeClient({
    kubeconfig,
    connectionsMax: CONNECTIONS_MAX,
    requestTimeoutMs: REQUEST_MS_MAX,
  });
  const review = async (token: string): Promise<ReviewedToken> => {
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
  return { review, close: client.close };
}
