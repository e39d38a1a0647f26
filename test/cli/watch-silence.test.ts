/** A watch reports that clusters do not answer, which changes no job. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { ClusterSilence, LOOK_MS } from "../../src/cli/jobs/cluster-silence.ts";
import { CallError, STATUS } from "../../src/cli/rpc/call-error.ts";
import { type Job, JobPhase, JobSchema } from "../../src/gen/gangway/v1/job_pb.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { startFixture } from "../api/fixture.ts";
import { pytorch, Scene } from "../core/reconcile/scene.ts";
import { pytorchManifest, run } from "./harness.ts";

const UIDS = ["1", "2", "3", "4"];
const CLUSTERS = ["east", "west"];

/** Undefined: the job is in no cluster. */
type JobWorld = { readonly cluster: string | undefined; readonly phase: JobPhase };

type Step =
  | { readonly kind: "changed"; readonly uid: string; readonly job: JobWorld }
  /** The record changes, and the stream has not reported it yet. */
  | { readonly kind: "recorded"; readonly uid: string; readonly job: JobWorld }
  | { readonly kind: "deleted"; readonly uid: string }
  | { readonly kind: "turned"; readonly cluster: string }
  | { readonly kind: "looked"; readonly fails: boolean }
  | { readonly kind: "relisted" };

const jobWorld = fc.record<JobWorld>({
  cluster: fc.constantFrom(undefined, ...CLUSTERS),
  phase: fc.constantFrom(JobPhase.RUNNING, JobPhase.RUNNING, JobPhase.SUCCEEDED),
});
const uid = fc.constantFrom(...UIDS);
const step = fc.oneof<fc.Arbitrary<Step>[]>(
  fc.record({ kind: fc.constant("changed"), uid, job: jobWorld }),
  fc.record({ kind: fc.constant("recorded"), uid, job: jobWorld }),
  fc.record({ kind: fc.constant("deleted"), uid }),
  fc.record({ kind: fc.constant("turned"), cluster: fc.constantFrom(...CLUSTERS) }),
  fc.record({ kind: fc.constant("looked"), fails: fc.boolean() }),
  fc.record({ kind: fc.constant("relisted") }),
);

function jobOf(uid: string, { cluster, phase }: JobWorld, silent: ReadonlySet<string> = new Set()): Job {
  const isSilent = cluster !== undefined && silent.has(cluster);
  const concern = { reason: "ClusterUnreachable", message: `cluster ${cluster} is silent`, cluster: cluster ?? "" };
  const elsewhere = { ...concern, message: "pods of an earlier admission may still run", cluster: "north" };
  return create(JobSchema, {
    metadata: { uid },
    status: {
      phase,
      ...(cluster === undefined ? {} : { admission: { cluster } }),
      concerns: isSilent ? [elsewhere, concern] : [elsewhere],
    },
  });
}

const saysSilent = (job: Job | undefined) =>
  job?.status?.concerns.some(({ reason, cluster }) => reason === "ClusterUnreachable" && cluster !== "north") === true;

test("after a look, the last row of each job says whether its cluster answers", async () => {
  const seen = { silent: 0, answering: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const records = new Map<string, JobWorld>();
      const silent = new Set<string>();
      const rows = new Map<string, Job>();
      let nowMs = 0;
      let fails = false;
      const asked: string[] = [];
      const call = async (_method: unknown, request: { readonly uid: string }) => {
        asked.push(request.uid);
        const found = records.get(request.uid);
        if (fails) throw new CallError(STATUS.UNAVAILABLE, "the service restarts");
        if (found === undefined) throw new CallError(STATUS.NOT_FOUND, "the job does not exist");
        return { job: jobOf(request.uid, found, silent) };
      };
      const client = { call } as unknown as ConstructorParameters<typeof ClusterSilence>[0]["client"];
      const clock = { ...systemClock(), monotonicMs: () => nowMs };
      const clusters = new ClusterSilence({ client, deps: { clock } });
      const print = (job: Job) => void rows.set(job.metadata?.uid ?? "", job);
      const stream = (uid: string) => {
        // A stream has no concerns.
        const job = create(JobSchema, {
          ...jobOf(uid, records.get(uid)!),
          status: { ...jobOf(uid, records.get(uid)!).status!, concerns: [] },
        });
        clusters.add(job);
        print(clusters.shown(job));
      };
      const look = async () => {
        nowMs += LOOK_MS;
        asked.length = 0;
        for (const job of await clusters.look()) print(job);
        assert.ok(asked.length <= CLUSTERS.length, "a look asks once for each cluster");
        assert.deepEqual(await clusters.look(), [], "a second look comes later");
      };
      for (const one of steps) {
        if (one.kind === "changed" || one.kind === "recorded") records.set(one.uid, one.job);
        if (one.kind === "changed") stream(one.uid);
        if (one.kind === "deleted" && rows.has(one.uid)) {
          records.delete(one.uid);
          clusters.remove(rows.get(one.uid)!);
          rows.delete(one.uid);
        }
        if (one.kind === "turned" && !silent.delete(one.cluster)) silent.add(one.cluster);
        if (one.kind === "relisted") {
          clusters.clear();
          rows.clear();
          for (const uid of records.keys()) stream(uid);
        }
        if (one.kind === "looked") {
          fails = one.fails;
          await look();
        }
      }
      fails = false;
      // The stream reports every record in the end.
      for (const uid of records.keys()) stream(uid);
      await look();
      for (const [uid, { cluster, phase }] of records) {
        const isSilent = cluster !== undefined && silent.has(cluster) && phase === JobPhase.RUNNING;
        assert.equal(saysSilent(rows.get(uid)), isSilent, `job ${uid} in ${cluster}`);
        seen[isSilent ? "silent" : "answering"] += 1;
      }
    }),
  );
  assert.ok(seen.silent > 0 && seen.answering > 0, JSON.stringify(seen));
});

test("a look at many clusters is bounded, and the next one takes the others", async () => {
  const silent = new Set(["c39"]);
  const asked: string[] = [];
  const call = async (_method: unknown, { uid }: { readonly uid: string }) => {
    asked.push(uid);
    return { job: jobOf(uid, { cluster: uid, phase: JobPhase.RUNNING }, silent) };
  };
  const client = { call } as unknown as ConstructorParameters<typeof ClusterSilence>[0]["client"];
  const clusters = new ClusterSilence({ client, deps: { clock: { ...systemClock(), monotonicMs: () => 0 } } });
  for (let at = 0; at < 40; at++) clusters.add(jobOf(`c${at}`, { cluster: `c${at}`, phase: JobPhase.RUNNING }));
  const found = [await clusters.look(), await clusters.look(), await clusters.look(), await clusters.look()];
  assert.deepEqual(
    found.map((jobs) => jobs.map(({ metadata }) => metadata?.uid)),
    [[], [], ["c39"], []],
  );
  assert.equal(new Set(asked).size, asked.length);
  assert.equal(asked.length, 40);
});

for (const [output, concern] of [
  ["table", /llama .*ClusterUnreachable: cluster c1 has not answered since 2026-01-02T00:00:00.000Z/],
  ["json", /"reason":"ClusterUnreachable".*"since":"2026-01-02T00:00:00Z".*"cluster":"c1"/],
] as const) {
  test(`gangway watch -o ${output} says that a cluster does not answer, and that it answers again`, async (t) => {
    let wake = Promise.withResolvers<void>();
    let nowMs = 0;
    const { api, store } = await startFixture(t, {
      watch: {
        checkCursor: () => true,
        // A stream without changes sends a bookmark from time to time.
        watch: async function* (request, signal) {
          signal.addEventListener("abort", () => wake.resolve());
          for await (const entry of store.watch.watch(request, signal)) {
            yield entry;
            if (entry.type === "BOOKMARK") break;
          }
          while (!signal.aborted) {
            await wake.promise;
            wake = Promise.withResolvers();
            yield { type: "BOOKMARK", cursor: "9" };
          }
        },
      },
    });
    const world = { address: api.address, files: { "llama.yaml": pytorchManifest("llama") } };
    await run(["submit", "llama.yaml"], world);
    const { job } = store.jobs.get("default/llama")!;
    const { status, admissions } = new Scene(pytorch()).start().job;
    store.put({ ...job, version: 2, status, admissions });
    const stop = new AbortController();
    const moment = (act: () => void) => {
      act();
      nowMs += LOOK_MS;
      wake.resolve();
    };
    let rows = 0;
    const { stdout } = await run(["watch", "-o", output], {
      ...world,
      signal: stop.signal,
      clock: { ...systemClock(), monotonicMs: () => nowMs },
      onOutput: (text) => {
        if (!text.includes("llama")) return;
        rows += 1;
        if (rows === 1) moment(() => store.silent.set("c1", { sinceMs: Date.UTC(2026, 0, 2), unusable: null }));
        if (rows === 2) moment(() => store.silent.clear());
        if (rows === 3) stop.abort();
      },
    });
    const lines = stdout.split("\n").filter((line) => line.includes("llama"));
    assert.deepEqual(
      lines.map((line) => concern.test(line)),
      [false, true, false],
      stdout,
    );
  });
}
