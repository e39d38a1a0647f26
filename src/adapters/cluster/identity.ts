/**
 * Keeps a connection to the cluster that it was made for. An address, a kubeconfig or a load balancer may lead to
 * another cluster later, and two names may lead to one: then every job there would seem to be gone.
 */
import { objectAt, stringAt } from "../../runtime/json.ts";
import type { KubeClient } from "./client.ts";
import { type KubeFailure, unreachable } from "./kube-failure.ts";

/** The namespace that every cluster has, and that nobody deletes: its uid is the cluster's own. */
export const IDENTITY_NAMESPACE = "kube-system";

/** The reason of calls that a cluster which is not ours would have answered. */
const WRONG_CLUSTER = "WrongCluster";

export type ReadUid =
  /** `uid` is null if the account may not read it, or the server tells none. */
  { readonly kind: "ok"; readonly uid: string | null } | KubeFailure;

/** Reads the uid of a cluster. */
export async function readUid({ request }: Pick<KubeClient, "request">, signal?: AbortSignal): Promise<ReadUid> {
  const read = await request({ method: "GET", path: `/api/v1/namespaces/${IDENTITY_NAMESPACE}` }, signal);
  if (read.kind === "failed") return read.status === 403 || read.status === 404 ? { kind: "ok", uid: null } : read;
  const uid = stringAt(objectAt(read.object, "metadata"), "uid") ?? "";
  return { kind: "ok", uid: /^[\w-]{1,64}$/.test(uid) ? uid : null };
}

export type GuardedClient = KubeClient & {
  /** Why the server's cluster is not the one that this client is for. Null: it is, or it was not reached yet. */
  readonly problem: () => string | null;
};

/**
 * A client that asks the server which cluster it is before its first call, after each watch that ended, and after each
 * call without an answer. While the cluster is a wrong one, it sends nothing else there, and its calls fail without an
 * answer. `claim` returns why the cluster with this uid is a wrong one; null: it is not. Without `claim` none is.
 */
export function guardIdentity(
  client: KubeClient,
  claim: ((uid: string) => Promise<string | null>) | null,
): GuardedClient {
  if (claim === null) return { ...client, problem: () => null };
  let problem: string | null = null;
  let claimed: string | null = null;
  let asking: Promise<KubeFailure | null> | null = null;
  const ask = async (): Promise<KubeFailure | null> => {
    const read = await readUid(client);
    if (read.kind === "failed") return read;
    if (read.uid !== claimed || problem !== null) {
      problem = read.uid === null ? null : await claim(read.uid);
      claimed = read.uid;
    }
    return problem === null ? null : { ...unreachable(problem), reason: WRONG_CLUSTER };
  };
  const doubt = () => {
    asking = null;
  };
  const failure = async (): Promise<KubeFailure | null> => {
    asking ??= ask().catch(unreachable);
    const asked = asking;
    const failed = await asked;
    if (failed !== null && asking === asked) doubt();
    return failed;
  };
  const guarded = async <T extends { readonly kind: string }>(call: () => Promise<T | KubeFailure>) => {
    const failed = await failure();
    if (failed !== null) return failed;
    const result = await call();
    if (result.kind === "failed" && (result as KubeFailure).status === 0) doubt();
    return result;
  };
  return {
    problem: () => problem,
    request: (request, signal) => guarded(() => client.request(request, signal)),
    stream: (request, signal) => guarded(() => client.stream(request, signal)),
    watch: (request, signal) =>
      guarded(async () => {
        const watch = await client.watch(request, signal);
        return watch.kind === "open" ? { ...watch, events: thenDoubt(watch.events, doubt) } : watch;
      }),
    close: () => client.close(),
  };
}

async function* thenDoubt<T>(events: AsyncIterable<T>, doubt: () => void): AsyncGenerator<T> {
  try {
    yield* events;
  } finally {
    doubt();
  }
}
