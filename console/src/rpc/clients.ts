/** Typed clients of the services, over binary Connect. */
import { type Client, Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { AccessService } from "../../../src/gen/gangway/v1/access_service_pb.ts";
import { ClusterService } from "../../../src/gen/gangway/v1/cluster_service_pb.ts";
import { JobService } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { QueueService } from "../../../src/gen/gangway/v1/queue_service_pb.ts";
import { noteSignedOut, noteVersion } from "./session.ts";

/** A unary call that takes longer has failed. */
const CALL_MS_MAX = 30_000;

const watched: Interceptor = (next) => async (request) => {
  try {
    const response = await next(request);
    noteVersion(response.header.get("gangway-version"));
    return response;
  } catch (cause) {
    if (ConnectError.from(cause).code === Code.Unauthenticated) noteSignedOut();
    throw cause;
  }
};

const transport = createConnectTransport({
  baseUrl: window.location.origin,
  useBinaryFormat: true,
  interceptors: [watched],
  // The cookie of a session goes along.
  fetch: (input, init) => fetch(input, { ...init, credentials: "same-origin" }),
});

export const access: Client<typeof AccessService> = createClient(AccessService, transport);
export const clusters: Client<typeof ClusterService> = createClient(ClusterService, transport);
export const jobs: Client<typeof JobService> = createClient(JobService, transport);
export const queues: Client<typeof QueueService> = createClient(QueueService, transport);

/** The options of a unary call that a query makes. */
export function bounded(signal: AbortSignal) {
  return { signal, timeoutMs: CALL_MS_MAX };
}
