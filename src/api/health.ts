import type { FileDescriptorProto } from "@bufbuild/protobuf/wkt";
import type { Server } from "@grpc/grpc-js";
import { HealthImplementation, service as healthDefinition } from "grpc-health-check";
import { readDescriptor } from "./reflection.ts";

/** The name under which the health protocol (grpc.health.v1) is listed. */
export const HEALTH_SERVICE = "grpc.health.v1.Health";

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

/** The health protocol's own file, for reflection. */
export function healthDescriptors(): readonly FileDescriptorProto[] {
  const { requestType } = healthDefinition["Check"] as unknown as {
    readonly requestType: { readonly fileDescriptorProtos: readonly Uint8Array[] };
  };
  return requestType.fileDescriptorProtos.map(readDescriptor);
}
