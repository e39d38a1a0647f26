/** The log of an ended job is the same whether it is read or followed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { JobLogs } from "../../src/api/ports.ts";
import type { KeptLog } from "../../src/core/job/failure-logs/kept-logs.ts";
import type { Job } from "../../src/core/job/job.ts";
import { JobService, type StreamJobLogsResponse } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { readRefusal, startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";

const { method } = JobService;

/** The pod of a replica: `404`: its container has ended, and its cluster has no log of it. */
type PodState = "absent" | "waiting" | "ended" | "404";
type ReplicaWorld = { readonly pod: PodState; readonly lines: number; readonly kept: readonly number[] };

const REPLICAS = ["Master/0", "Worker/0", "Worker/1"] as const;
const podOf = (replica: string) => `mnist-${replica.toLowerCase().replace("/", "-")}`;

const replicaWorld = fc.record<ReplicaWorld>({
  pod: fc.constantFrom("absent", "waiting", "ended", "404"),
  lines: fc.nat({ max: 3 }),
  kept: fc.uniqueArray(fc.integer({ min: 1, max: 3 }), { maxLength: 2 }),
});

const NOTHING: ReplicaWorld = { pod: "absent", lines: 0, kept: [] };
const world = fc.tuple(replicaWorld, replicaWorld, replicaWorld);

/** A cluster with the pods of a world. */
function clusterOf(replicas: () => readonly ReplicaWorld[]): JobLogs {
  const stateOf = (pod: string) => replicas()[REPLICAS.findIndex((one) => podOf(one) === pod)]!;
  return {
    look: async ({ pod }) => {
      const state = stateOf(pod).pod;
      if (state === "absent") return { kind: "absent" };
      const isWaiting = state === "waiting";
      const container = { name: "pytorch", run: `${pod} 1`, reason: isWaiting ? "ContainerCreating" : "" };
      return { kind: "found", containers: [{ ...container, state: isWaiting ? "waiting" : "ended" }] };
    },
    open: async ({ pod, tailLines }) => {
      const { pod: state, lines } = stateOf(pod);
      if (state === "404") return { kind: "failed", status: 404, reason: "NotFound", message: "no log" };
      const all = Array.from({ length: lines }, (_, at) => ({
        timeNs: BigInt(at + 1) * 1_000_000_000n,
        text: `${pod} line ${at}`,
        partial: false,
      }));
      return { kind: "open", lines: pages(tailLines === null ? all : all.slice(Math.max(0, lines - tailLines))) };
    },
  };
}

async function* pages<T>(lines: readonly T[]): AsyncGenerator<readonly T[]> {
  for (const one of lines) yield [one];
}

function keptOf(replica: (typeof REPLICAS)[number], attempt: number): KeptLog {
  return {
    podUid: `${replica} ${attempt}`,
    container: "pytorch",
    restarts: 0,
    replica,
    attempt,
    admission: 1,
    cluster: "east",
    pod: podOf(replica),
    exitCode: 1,
    reason: "Error",
    lines: { text: `first of ${attempt}\nlast of ${attempt}`, cut: false },
    problem: null,
    readMs: 1_750_000_000_000,
  };
}

const admission: Job["admissions"][number] = {
  number: 1,
  cluster: "east",
  admitTimeMs: 0,
  members: { Master: 1, Worker: 2 },
  flavors: {},
  flavorLabels: {},
  state: "live",
  tokensReleasedMs: null,
  goneMs: null,
  belowMinSinceMs: null,
};

/** The text of each replica, with a heading before lines that are kept. */
function textsOf(messages: readonly StreamJobLogsResponse[]): Readonly<Record<string, readonly string[]>> {
  const texts: Record<string, string[]> = {};
  const add = (replica: string, text: string) => {
    texts[replica] ??= [];
    texts[replica].push(text);
  };
  for (const { kept, lines } of messages) {
    if (kept !== undefined) add(kept.replica, `kept of attempt ${kept.attempt}, cut: ${kept.cut}`);
    for (const { replica, text } of lines) add(replica, text);
  }
  return texts;
}

test("a log of an ended job that is followed has what it has when it is read once", async (t) => {
  let replicas: readonly ReplicaWorld[] = [];
  const { call, stream, store } = await startFixture(t, { logs: clusterOf(() => replicas) });
  await call(method.createJob, { job: pytorchJob("mnist") });
  const { job } = store.jobs.get("default/mnist")!;
  store.put({ ...job, version: 2, admissions: [admission], status: { ...job.status, phase: "FAILED", waiting: null } });

  /** Null: no replica has anything. */
  const read = async (request: { readonly follow: boolean; readonly tailLines?: bigint }) => {
    const messages: StreamJobLogsResponse[] = [];
    try {
      for await (const one of stream(method.streamJobLogs, { name: "mnist", ...request })) messages.push(one);
    } catch (error) {
      const { code } = readRefusal(error as Parameters<typeof readRefusal>[0]);
      assert.equal(code, "FAILED_PRECONDITION");
      return null;
    }
    return textsOf(messages);
  };
  const seen = { kept: 0, lines: 0, nothing: 0 };
  await fc.assert(
    fc.asyncProperty(world, fc.option(fc.nat({ max: 2 })), async (made, tail) => {
      replicas = made;
      const logs = REPLICAS.flatMap((replica, at) => made[at]!.kept.map((attempt) => keptOf(replica, attempt)));
      store.failureLogs.set(job.uid, { keeps: true, logs });
      const request = tail === null ? {} : { tailLines: BigInt(tail) };
      const once = await read({ ...request, follow: false });
      const followed = await read({ ...request, follow: true });
      assert.deepEqual(followed, once ?? {});
      const texts = Object.values(once ?? {}).flat();
      if (once === null) seen.nothing += 1;
      if (texts.some((text) => text.startsWith("kept"))) seen.kept += 1;
      if (texts.some((text) => text.includes("line"))) seen.lines += 1;
    }),
    { numRuns: 60, examples: [[[NOTHING, NOTHING, NOTHING], null]] },
  );
  for (const [what, count] of Object.entries(seen)) assert.ok(count > 0, `no world has ${what}`);
});

test("a log of an ended job waits for a cluster that does not answer at first, and then has every line", async (t) => {
  const one: ReplicaWorld = { pod: "ended", lines: 3, kept: [1] };
  const cluster = clusterOf(() => [one, one, one]);
  let looks = 0;
  const logs: JobLogs = {
    ...cluster,
    look: async (...asked) => {
      looks += 1;
      if (looks > 1) return cluster.look(...asked);
      return { kind: "failed", status: 503, reason: "ServiceUnavailable", message: "not now" };
    },
  };
  const { call, stream, store } = await startFixture(t, { logs });
  await call(method.createJob, { job: pytorchJob("mnist") });
  const { job } = store.jobs.get("default/mnist")!;
  store.put({ ...job, version: 2, admissions: [admission], status: { ...job.status, phase: "FAILED", waiting: null } });
  store.failureLogs.set(job.uid, { keeps: true, logs: [keptOf("Master/0", 1)] });
  const messages: StreamJobLogsResponse[] = [];
  for await (const message of stream(method.streamJobLogs, { name: "mnist", replica: "Master/0", follow: true })) {
    messages.push(message);
  }
  assert.deepEqual(textsOf(messages), {
    "Master/0": [0, 1, 2].map((at) => `mnist-master-0 line ${at}`),
  });
});
