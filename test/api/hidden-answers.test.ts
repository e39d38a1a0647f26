/** What ExplainJob tells of pools, queues and clusters that its caller may not see. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toJsonString } from "@bufbuild/protobuf";
import { explainJob } from "../../src/api/job/explain-job.ts";
import { CallAccess } from "../../src/api/rpc/call-access.ts";
import { ANONYMOUS } from "../../src/core/access/identity.ts";
import { refuseFor } from "../../src/core/plan/explain/refuse.ts";
import type { QuotaRefusal } from "../../src/core/plan/model/plan-types.ts";
import { ExplainJobRequestSchema, ExplainJobResponseSchema } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { pytorch } from "../core/reconcile/scene.ts";
import { jobOf } from "../core/reconcile/world.ts";
import { kindsWith } from "../support/kinds.ts";
import { memoryAccess } from "../support/memory-access.ts";

const kinds = kindsWith();
const waiting = jobOf(pytorch());
const queue = waiting.spec.runPolicy.schedulingPolicy.queue;
const quota = { queue, reason: "QuotaExhausted", need: 4, used: 8, limit: 8, reserved: 0, heldBy: [] };
const quotas: readonly QuotaRefusal[] = [
  { ...quota, flavor: "gpu/h100", scope: { kind: "pool", pool: "gpu/h100" } },
  { ...quota, flavor: "gpu/a100", scope: { kind: "queue", pool: "gpu/a100", queue: "company" } },
];
const clusters = [
  { cluster: "east", reason: "NoSuchFlavor", message: "it has no gpu/h100", flavor: "gpu/h100" },
  { cluster: "west", reason: "Cordoned", message: "it is cordoned", flavor: null },
].map((one) => ({ ...one, need: 4, have: 0, blocked: null }));
const gang = { uid: waiting.uid, generation: 1 } as Parameters<typeof refuseFor>[0];
/** By quotas, as they are evaluated now; and by clusters, as they were recorded. */
const refusals = [true, false].map((stoppedByQuota) =>
  refuseFor(gang, { quotas: stoppedByQuota ? quotas : [], clusters, stoppedByQuota }),
);

async function explained(seen: readonly ["pool" | "queue" | "cluster", string][]): Promise<string> {
  const access = memoryAccess({ enforces: true });
  const identity = { ...ANONYMOUS, subject: "oidc:ann" };
  const to = { kind: "subject", name: identity.subject } as const;
  await access.bind({ to, role: "viewer", scope: { kind: "namespace", name: waiting.namespace } });
  for (const [kind, name] of seen) await access.bind({ to, role: "viewer", scope: { kind, name } });
  const context = {
    signal: new AbortController().signal,
    identity,
    access: new CallAccess(access.authorization, { identity, rpc: "gangway.v1.JobService/ExplainJob" }),
    violations: [],
  };
  const texts: string[] = [];
  for (const refusal of refusals) {
    const { message, reason } = refusal;
    const status = { ...waiting.status, waiting: { message, reason, sinceMs: 0 } };
    for (const found of [{ refusal, atMs: 0 }, null]) {
      const reads = {
        silentClusters: async () => new Map(),
        plannedNodes: async () => null,
        failureLogs: async () => null,
        getJob: async () => ({ job: { ...waiting, status }, position: 1, tokens: [] }),
        refusalOf: async () => found,
      } as unknown as Parameters<typeof explainJob>[0]["reads"];
      const request = create(ExplainJobRequestSchema, { namespace: waiting.namespace, name: waiting.name });
      const answer = await explainJob(
        { reads, kinds, simulate: async () => null, clock: { nowMs: () => 0 } },
        request,
        context,
      );
      texts.push(toJsonString(ExplainJobResponseSchema, create(ExplainJobResponseSchema, answer)));
    }
  }
  return texts.join("\n");
}

test("an explanation and recorded words name only the pools, queues and clusters that the caller may see", async () => {
  const names = { "gpu/h100": "pool", "gpu/a100": "pool", company: "queue", east: "cluster", west: "cluster" } as const;
  for (const seen of [[], ["gpu/h100"], ["company", "gpu/a100"], ["east"], ["west", "gpu/a100"]] as const) {
    const text = await explained(seen.map((name) => [names[name], name]));
    for (const name of Object.keys(names)) {
      assert.equal(text.includes(name), (seen as readonly string[]).includes(name), `${name} in ${text}`);
    }
    assert.ok(text.includes(`queue ${queue}`), "the job's own queue is named");
  }
});
