import assert from "node:assert/strict";
import { test } from "node:test";
import type { StepNote } from "../../src/core/blame/step-note.ts";
import type { BlameStore, WorkerPorts } from "../../src/worker/ports.ts";
import { SlowPlugins } from "../../src/worker/slow-plugins.ts";
import { createWorker } from "../../src/worker/worker.ts";
import { clock } from "../cluster/harness.ts";
import { CONFIG } from "../core/reconcile/world.ts";
import { gangOf, NO_PODS } from "./harness.ts";
import { MemoryStore } from "./memory-store.ts";

/** A worker that has taken all buckets, whose jobs wait. `log` has what it notes and which steps begin and end. */
function scene({ alone, notes = [], jobs = 6 }: { alone: boolean; notes?: readonly StepNote[]; jobs?: number }) {
  const log: string[] = [];
  const store = new MemoryStore(clock);
  const made = Array.from({ length: jobs }, () => gangOf());
  for (const job of made) store.add(job);
  const uids = made.map(({ uid }) => uid);
  const port = store.port();
  const blame: BlameStore = {
    notesIn: async () => notes,
    steppedJobs: async (_buckets, { after, limit }) =>
      uids
        .filter((uid) => uid > (after ?? ""))
        .sort()
        .slice(0, limit),
    noteAlone: async (_worker, jobUid) => void log.push(`note ${jobUid}`),
    endAlone: async (_worker, buckets) => void log.push(`end ${buckets.length}`),
    forgetAlone: async () => void log.push("forget"),
  };
  const term = { name: "w/1", signal: new AbortController().signal };
  const ports: WorkerPorts = {
    clock,
    store: {
      ...port,
      takeBuckets: async (...given) => (await port.takeBuckets(...given)).map((lease) => ({ ...lease, alone })),
      dueJobs: async () => uids,
      loadJob: async (uid) => {
        log.push(`begin ${uid}`);
        await clock.sleep(1);
        log.push(`ended ${uid}`);
        return port.loadJob(uid);
      },
      loadBareJob: (uid) => port.loadJob(uid),
    },
    clusters: NO_PODS,
    member: { term: () => term },
    blame,
    wakePlanner: () => undefined,
  };
  const onError = (error: unknown) => assert.fail(String(error));
  const setAside: string[] = [];
  const options = {
    config: CONFIG,
    onError,
    onSetAside: (job: { readonly uid: string }) => void setAside.push(job.uid),
  };
  return { worker: createWorker(ports, options), log, uids, store, setAside };
}

function noteOn(jobUid: string, worker: string): StepNote {
  const atMs = clock.nowMs() - 1_000;
  return { jobUid, worker, atMs, what: "blocked", plugin: null, alone: false, ended: true };
}

/** The uid of the first job of the next scene. */
function nextUid(): string {
  return gangOf().uid.replace(/\d+$/, (number) => String(Number(number) + 1));
}

test("after two workers have ended, jobs are stepped one at a time, each noted before, until all had it", async () => {
  const { worker, log, uids } = scene({ alone: true });
  await worker.runOnce();
  const steps = log.filter((line) => /^(note|begin|ended)/.test(line)).slice(0, 3 * uids.length);
  for (let at = 0; at < steps.length; at += 3) {
    const [, uid = ""] = steps[at]?.split(" ") ?? [];
    assert.deepEqual(steps.slice(at, at + 3), [`note ${uid}`, `begin ${uid}`, `ended ${uid}`]);
  }
  assert.equal(new Set(steps.map((line) => line.split(" ")[1])).size, uids.length);
  log.length = 0;
  await worker.runOnce();
  assert.ok(
    log.some((line) => /^end \d+$/.test(line)),
    "the store learns that it is over",
  );
  assert.ok(log.includes("forget"));
  assert.deepEqual(
    log.filter((line) => line.startsWith("note")),
    [],
    "normal steps note nothing",
  );
});

test("where no worker has ended, jobs are stepped together, and nothing is noted", async () => {
  const { worker, log, uids } = scene({ alone: false });
  await worker.runOnce();
  assert.deepEqual(
    log.slice(0, uids.length).map((line) => line.split(" ")[0]),
    uids.map(() => "begin"),
  );
  assert.deepEqual(
    log.filter((line) => /^(note|end |forget)/.test(line)),
    [],
  );
});

test("a job with a note is stepped last", async () => {
  const next = nextUid();
  const { worker, log, uids } = scene({ alone: true, notes: [noteOn(next, "w1")] });
  assert.equal(uids[0], next);
  await worker.runOnce();
  const order = log.filter((line) => line.startsWith("note")).map((line) => line.slice("note ".length));
  assert.equal(order[uids.length - 1], next);
});

test("a job that the notes blame is set aside before its step, and no other is", async () => {
  const next = nextUid();
  const { worker, uids, store, setAside } = scene({ alone: false, notes: [noteOn(next, "w1"), noteOn(next, "w2")] });
  assert.equal(uids[0], next);
  await worker.runOnce();
  assert.deepEqual(setAside, [next]);
  assert.equal(store.job(next)?.status.setAside?.reason, "BlocksWorkers");
  for (const other of uids.slice(1)) assert.equal(store.job(other)?.status.setAside, undefined);
});

test("a plugin that blocks this worker waits ten times as long, and at most a minute", () => {
  const slow = new SlowPlugins();
  slow.ran("p", 400, 0);
  assert.equal(slow.waits("p", 0), false, "short calls are not slowed");
  slow.ran("p", 800, 1_000);
  assert.deepEqual([slow.waits("p", 8_900), slow.waits("q", 8_900), slow.waits("p", 9_100)], [true, false, false]);
  slow.ran("p", 600_000, 10_000);
  assert.deepEqual([slow.waits("p", 69_000), slow.waits("p", 71_000)], [true, false]);
});
