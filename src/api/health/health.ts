/** Answers grpc.health.v1: whether the server, and each of its services, takes calls. */
import {
  type Health as HealthService,
  HealthCheckResponse_ServingStatus as Serving,
} from "../../gen/grpc/health/v1/health_pb.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";
import { notFound } from "../rpc/rpc-error.ts";

/** Sets the status of the server and of all its services. */
export type Health = {
  readonly handlers: ServiceHandlers<typeof HealthService>;
  readonly set: (status: "SERVING" | "NOT_SERVING") => void;
};

/** Makes the service for these services; the empty name is the server. It reports NOT_SERVING until it is set. */
export function createHealth(services: readonly string[]): Health {
  const names = new Set(["", ...services]);
  let status: Serving = Serving.NOT_SERVING;
  /** Wakes each open watch. */
  const watchers = new Set<() => void>();
  const changeOrEnd = (signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      const done = () => {
        watchers.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      watchers.add(done);
      signal.addEventListener("abort", done, { once: true });
    });
  return {
    handlers: {
      check: async ({ service }) => {
        if (!names.has(service)) throw notFound({ type: "service", name: service });
        return { status };
      },
      list: async () => ({ statuses: Object.fromEntries([...names].map((name) => [name, { status }])) }),
      watch: async function* ({ service }, { signal }) {
        for (let told: Serving | null = null; !signal.aborted; ) {
          const current = names.has(service) ? status : Serving.SERVICE_UNKNOWN;
          if (current === told) await changeOrEnd(signal);
          else yield { status: current };
          told = current;
        }
      },
    },
    set: (to) => {
      if (status === Serving[to]) return;
      status = Serving[to];
      for (const wake of [...watchers]) wake();
    },
  };
}
