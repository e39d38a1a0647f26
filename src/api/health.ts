import type { Server } from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";

const OVERALL = "";

/** What health checks are told: for each service and, under the empty name, for the server. */
export type Health = { readonly set: (status: "SERVING" | "NOT_SERVING") => void };

/** Adds grpc.health.v1 to a server; NOT_SERVING until it is set. */
export function addHealth(server: Server, services: readonly string[]): Health {
  const names = [OVERALL, ...services];
  const health = new HealthImplementation(Object.fromEntries(names.map((name) => [name, "NOT_SERVING" as const])));
  health.addToServer(server);
  return {
    set: (status) => {
      for (const name of names) health.setStatus(name, status);
    },
  };
}
