/** The warning of a job that can never run names nothing that its caller may not see, as the answer of SimulateJob. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { CallError } from "../../src/cli/rpc/call-error.ts";
import { connect } from "../../src/cli/rpc/client.ts";
import type { NewBinding } from "../../src/core/access/binding.ts";
import { JobService, Verdict } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { cluster, node, nodes } from "../core/plan/plan-world.ts";
import { knownCallers } from "../support/known-callers.ts";
import { memoryAccess } from "../support/memory-access.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";
import { queueRecord } from "./memory-store.ts";

const { batchCreateJobs, createJob, simulateJob } = JobService.method;
const RECORD = {
  uid: null,
  simulated: false,
  observedMs: 1,
  version: 1,
  createTimeMs: 1,
  gangScheduler: "none",
} as const;
const FIELD = "job.spec";
const SAYS = "can never run as things are: ";

/**
 * A service with two clusters of H100: no node of `west` takes any pod. Queue `company` lets queue `default` below it
 * use 8 of them; queue `wide` has plenty. Each caller may use `default`.
 */
async function scene(t: TestContext) {
  const known = await knownCallers(t);
  const access = memoryAccess({ enforces: true });
  const { authenticate, robots } = known;
  const { authorization, admin } = access;
  const { api, store } = await startFixture(t, { authenticate, robots, authorization, access: admin });
  const quota = (nominal: number) => ({ quotas: [{ flavor: "gpu/h100", resource: "nvidia.com/gpu", nominal }] });
  store.queues.set("company", { ...queueRecord("company"), ...quota(0) });
  store.queues.set("default", { ...queueRecord("default"), ...quota(8), parent: "company" });
  store.queues.set("wide", { ...queueRecord("wide"), ...quota(999) });
  const tainted = [node("w-0", "h100", { taints: [{ key: "lab", value: "x", effect: "NoSchedule" }] })];
  for (const one of [cluster("east", { nodes: nodes(2, "h100") }), cluster("west", { nodes: tainted })]) {
    store.clusters.set(one.name, { ...one, ...RECORD });
  }
  const clientOf = async (name: string, bindings: readonly Pick<NewBinding, "role" | "scope">[]) => {
    const { subject, token } = await known.caller("oidc", name);
    const to = { kind: "subject", name: subject } as const;
    const own = [{ kind: "namespace", name: "default" } as const, { kind: "queue", name: "default" } as const];
    for (const scope of own) await access.bind({ to, role: "submitter", scope });
    for (const one of bindings) await access.bind({ to, ...one });
    const client = connect(api.address, new AbortController().signal, { tls: null, token: async () => token });
    t.after(() => client.close());
    return client;
  };
  return { clientOf };
}

type Client = Awaited<ReturnType<Awaited<ReturnType<typeof scene>>["clientOf"]>>;

/** Workers with eight GPUs each. */
type Workers = { readonly replicas: number; readonly memory: string };

function jobOf(name: string, { replicas, memory }: Workers) {
  const resources = { limits: { "nvidia.com/gpu": 8, memory } };
  const template = { spec: { containers: [{ name: "pytorch", image: "i", resources }] } };
  return pytorchJob(name, { replicaSpecs: { Worker: { replicas, template } } });
}

/** The words of each way to submit a job. All are the same. */
async function heard(client: Client, workers: Workers): Promise<string> {
  const job = (name: string) => jobOf(name, workers);
  const refusalOf = (call: Promise<unknown>) =>
    call.then(
      () => assert.fail("a job that can never run is refused with strict"),
      (error: unknown) => (error instanceof CallError ? error : assert.fail(String(error))),
    );
  const created = await client.call(createJob, { job: job("created"), validateOnly: true });
  const strict = await refusalOf(client.call(createJob, { job: job("strict"), strict: true }));
  const { results } = await client.call(batchCreateJobs, {
    requests: [
      { job: job("in-batch"), validateOnly: true },
      { job: job("strict-in-batch"), strict: true },
    ],
  });
  const [warned, refused] = results.map(({ result }) => result);
  assert.ok(warned?.case === "response" && refused?.case === "error");
  const [warning] = created.warnings;
  assert.deepEqual([warning?.field, created.warnings.length], [FIELD, 1]);
  const words = warning?.message ?? "";
  assert.deepEqual(
    warned.value.warnings.map(({ message }) => message),
    [words],
  );
  for (const text of [strict.details, refused.value.message]) assert.ok(text.includes(words), text);
  return words;
}

/** The words of SimulateJob. */
async function simulated(client: Client, workers: Workers): Promise<string> {
  const { verdict, summary } = await client.call(simulateJob, { job: jobOf("simulated", workers) });
  assert.equal(verdict, Verdict.NEVER);
  return summary.replace(/^.*? can never run: /, SAYS);
}

const all = { role: "viewer", scope: { kind: "installation", name: "" } } as const;
const viewerOf = (kind: "cluster" | "pool" | "queue", name: string) =>
  ({ role: "viewer", scope: { kind, name } }) as const;
const usesWide = { role: "submitter", scope: { kind: "queue", name: "wide" } } as const;

type Case = {
  readonly bindings: readonly Pick<NewBinding, "role" | "scope">[];
  readonly workers: Workers;
  /** As SimulateJob says it. */
  readonly says: string;
  /** Omitted: no other queue is named. */
  readonly queue?: string;
};
const beyondQuota = { workers: { replicas: 2, memory: "1Gi" } };
const beyondNodes = { workers: { replicas: 1, memory: "2Ti" } };

const cases: Readonly<Record<string, Case>> = {
  "a limit above its queue, to a caller with rights": {
    bindings: [all, usesWide],
    ...beyondQuota,
    says: "needs 16 of gpu/h100; queue company may use 8 at most",
    queue: "wide",
  },
  "a limit above its queue, to a caller that sees no other queue and no pool": {
    bindings: [],
    ...beyondQuota,
    says: "needs 16 of another pool; another queue may use 8 at most",
  },
  "a limit above its queue, to a caller that sees other queues, but uses none": {
    bindings: [viewerOf("queue", "company"), viewerOf("queue", "wide")],
    ...beyondQuota,
    says: "needs 16 of another pool; queue company may use 8 at most",
  },
  "a limit above its queue, to a caller that sees the pool": {
    bindings: [viewerOf("pool", "gpu/h100")],
    ...beyondQuota,
    says: "needs 16 of gpu/h100; another queue may use 8 at most",
  },
  "pods that no node takes, to a caller with rights": {
    bindings: [all, usesWide],
    ...beyondNodes,
    says: "no node of cluster east can ever take a Worker pod: 2 nodes lack memory (needs 2Ti, has 256Gi allocatable)",
  },
  "pods that no node takes, to a caller that sees another cluster": {
    bindings: [viewerOf("cluster", "west")],
    ...beyondNodes,
    says: "another cluster cannot take it even when it is empty",
  },
  "pods that no node takes, to a caller that sees no cluster": {
    bindings: [],
    ...beyondNodes,
    says: "another cluster cannot take it even when it is empty",
  },
};
for (const [name, { bindings, workers, says, queue }] of Object.entries(cases)) {
  test(`a warning of ${name}`, async (t) => {
    const { clientOf } = await scene(t);
    // An answer that is remembered for one caller must not reach another.
    await heard(await clientOf("admin", [all, usesWide]), workers);
    const client = await clientOf("ann", bindings);
    const simulation = await simulated(client, workers);
    assert.equal(simulation, SAYS + says);
    const other = queue === undefined ? "" : `; queue ${queue} could take it`;
    assert.equal(await heard(client, workers), simulation + other);
  });
}
