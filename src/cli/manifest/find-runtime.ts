import { type RuntimeName, runtimeText } from "../../core/kinds/trainjob/training-runtime.ts";
import { RuntimeService } from "../../gen/gangway/v1/runtime_service_pb.ts";
import type { JsonObject } from "../../runtime/json.ts";
import { isNotFound } from "../rpc/call-error.ts";
import type { GangwayClient } from "../rpc/client.ts";
import type { FindRuntimeSpec } from "./read-manifests.ts";

/** Asks the service for the runtimes that TrainJobs name, each once. */
export function runtimeFinder(client: Pick<GangwayClient, "call">): FindRuntimeSpec {
  const known = new Map<string, Promise<JsonObject | null>>();
  return (named) => {
    const key = runtimeText(named);
    const asked = known.get(key) ?? find(client, named);
    known.set(key, asked);
    return asked;
  };
}

async function find(client: Pick<GangwayClient, "call">, of: RuntimeName): Promise<JsonObject | null> {
  try {
    const { runtime } = await client.call(RuntimeService.method.getRuntime, of);
    return (runtime?.spec ?? {}) as JsonObject;
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
}
