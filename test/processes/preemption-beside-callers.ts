import assert from "node:assert/strict";
import type { GangwayClient } from "../../src/cli/rpc/client.ts";
import { WithinQueuePreemption } from "../../src/gen/gangway/v1/queue_policy_pb.ts";
import { QueueService } from "../../src/gen/gangway/v1/queue_service_pb.ts";
import { AllocationStatus, ResourceManager } from "../../src/gen/gangway/v1/resource_manager_pb.ts";

/**
 * Lets gangs of the default queue preempt those of lower priority. Callers beside them are in no queue, so the pool
 * gets a limit of its own.
 */
export async function allowPreemption(
  client: GangwayClient,
  { pool, limit }: { readonly pool: string; readonly limit: number },
): Promise<void> {
  const { getQueue, updateQueue } = QueueService.method;
  const { queue } = await client.call(getQueue, { name: "default" });
  const preemption = { withinQueue: WithinQueuePreemption.LOWER_PRIORITY };
  await client.call(updateQueue, { queue: { name: "default", quotas: queue?.quotas ?? [], preemption } });
  await client.call(ResourceManager.method.registerResourceQuota, { resourceNamespace: pool, quota: BigInt(limit) });
}

/**
 * Holds tokens of a pool until `release`, so that a nominee must take all that it needs from its victims. What is free
 * when others are preempted for it, callers may take before it boards.
 */
export async function holdTokens(
  client: GangwayClient,
  { pool, amount }: { readonly pool: string; readonly amount: number },
) {
  const line = { resourceNamespace: pool, allocationToken: "kept", amount: BigInt(amount) };
  const { status } = await client.call(ResourceManager.method.allocateResource, { ...line, holder: "keeper" });
  assert.equal(status, AllocationStatus.GRANTED);
  const released = { resourceNamespace: pool, allocationToken: "kept", holder: "keeper" };
  return { release: () => client.call(ResourceManager.method.releaseResource, released) };
}
