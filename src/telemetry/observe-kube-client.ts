import type { ObservePorts } from "./observe-stores.ts";

type RequestLike = { readonly method: string; readonly path: string };
type ResultLike = { readonly kind: string; readonly status?: number };
/** Methods, so that parameters of the wrapped client may be narrower. */
type ClientLike = {
  request(request: RequestLike, signal?: unknown): Promise<ResultLike>;
  watch(request: { readonly path: string }, signal: unknown): Promise<ResultLike>;
};

const VERBS: Readonly<Record<string, string>> = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete" };

/** Names a call like Kubernetes' own RBAC and metrics, by verb and resource: `list pods`, `get pods/log`. */
export function nameCall({ method, path }: RequestLike): { readonly verb: string; readonly resource: string } {
  const [, inside = ""] = /^\/(?:api\/[^/]+|apis\/[^/]+\/[^/]+)\/(.*)$/.exec(path.split("?")[0] ?? "") ?? [];
  const parts = inside.split("/").filter((part) => part !== "");
  const [resource, name, subresource] = parts[0] === "namespaces" && parts.length > 2 ? parts.slice(2) : parts;
  if (resource === undefined) return { verb: VERBS[method] ?? "get", resource: "other" };
  const verb = VERBS[method] ?? (name === undefined ? "list" : "get");
  return { verb, resource: subresource === undefined ? resource : `${resource}/${subresource}` };
}

/** Reports every call to an API server, and makes a span of each call within a traced step. */
export function observeKubeClient<Client extends ClientLike>(client: Client, cluster: string, ports: ObservePorts) {
  const { clock, telemetry, tracing } = ports;

  async function observed(call: ReturnType<typeof nameCall>, run: () => Promise<ResultLike>): Promise<ResultLike> {
    const startedMs = clock.monotonicMs();
    const result = await run();
    telemetry.kubernetesCalled({ ...call, cluster, code: codeOf(result), tookMs: clock.monotonicMs() - startedMs });
    return result;
  }

  function traced(call: ReturnType<typeof nameCall>, run: () => Promise<ResultLike>): Promise<ResultLike> {
    // Calls of reflectors belong to no job.
    if (tracing?.traceParent() === undefined) return observed(call, run);
    const attributes = { "gangway.cluster": cluster };
    return tracing.span(
      { name: `kubernetes ${call.verb} ${call.resource}`, kind: "client", attributes },
      async (span) => {
        const result = await observed(call, run);
        span.setAttribute("gangway.kubernetes.code", codeOf(result));
        return result;
      },
    );
  }

  const wrapped: ClientLike = {
    request: (request: RequestLike, signal) => traced(nameCall(request), () => client.request(request, signal)),
    watch: (request: { readonly path: string }, signal) =>
      observed({ ...nameCall({ method: "GET", path: request.path }), verb: "watch" }, () =>
        client.watch(request, signal),
      ),
  };
  return { ...client, ...wrapped } as Client;
}

function codeOf({ kind, status }: ResultLike): string {
  if (kind !== "failed") return "2xx";
  return status === undefined || status === 0 ? "unreachable" : String(status);
}
