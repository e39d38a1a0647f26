import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { explainJob } from "../../src/api/job/explain-job.ts";
import { CallAccess } from "../../src/api/rpc/call-access.ts";
import { ANONYMOUS } from "../../src/core/access/identity.ts";
import type { Admission } from "../../src/core/job/status.ts";
import { ExplainJobRequestSchema } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { pytorch, Scene } from "../core/reconcile/scene.ts";
import { OWN_KINDS } from "../support/kinds.ts";

const access = new CallAccess(null, { identity: ANONYMOUS, rpc: "gangway.v1.JobService/ExplainJob" });
const context = { signal: new AbortController().signal, identity: ANONYMOUS, access, violations: [] };
const token = (pool: string, amount: number) => ({ pool, amount, fence: 1n });

/** The summary of a running gang of a master and two workers, of which the first has ended and gave tokens back. */
async function summary(of: Partial<Admission>, tokens: readonly ReturnType<typeof token>[]): Promise<string> {
  const { job: running } = new Scene(pytorch()).start();
  const admissions = running.admissions.map((one) => ({ ...one, returned: { Worker: [0] }, ...of }));
  const job = { ...running, admissions };
  const reads = {
    silentClusters: async () => new Map(),
    plannedNodes: async () => null,
    failureLogs: async () => null,
    getJob: async () => ({ job, position: null, tokens }),
    refusalOf: async () => null,
  } as unknown as Parameters<typeof explainJob>[0]["reads"];
  const ports = { reads, kinds: OWN_KINDS, simulate: async () => null, clock: { nowMs: () => 0 } };
  return (await explainJob(ports, create(ExplainJobRequestSchema, { name: job.name }), context)).summary;
}

const held: Record<string, { readonly tokens: readonly ReturnType<typeof token>[]; readonly says: string }> = {
  "one pool": { tokens: [token("gpu/h100", 2)], says: "so the job holds 2 of gpu/h100 now" },
  "one pool, in several grants": {
    tokens: [token("gpu/h100", 2), token("gpu/h100", 1)],
    says: "so the job holds 3 of gpu/h100 now",
  },
  "two pools": {
    tokens: [token("gpu/h100", 2), token("gpu/a100", 4)],
    says: "so the job holds 2 of gpu/h100, 4 of gpu/a100 now",
  },
  "no pool": { tokens: [], says: "so the job holds none now" },
};
for (const [name, { tokens, says }] of Object.entries(held)) {
  test(`explain says what a gang holds after members gave tokens back: tokens of ${name}`, async () => {
    assert.ok((await summary({}, tokens)).includes(`1 has ended and gave back its tokens, ${says}`));
  });
}

test("explain says of a part of a gang whether it grows after members gave tokens back", async () => {
  const members = { Master: 1, Worker: 1 };
  assert.match(await summary({ members, partial: "KEEP" }, []), /waits for the others \(partial KEEP\)/);
  assert.match(
    await summary({ members, partial: "RESTART" }, []),
    /does not grow: members that have ended would run again \(partial RESTART\)/,
  );
});
