import assert from "node:assert/strict";
import { test } from "node:test";
import type { FailureLog, RunKey } from "../../src/core/job/failure-logs/kept-logs.ts";
import { isTerminal } from "../../src/core/job/status.ts";
import { arrayAt, type JsonObject } from "../../src/runtime/json.ts";
import type { FailureLogPorts } from "../../src/worker/failure-logs.ts";
import { fastClock, until } from "../cluster/harness.ts";
import { jobOf } from "../core/reconcile/world.ts";
import { workerScene } from "./scene.ts";

/** The clock of these tests runs ten times as fast as ours: a read has half a second. */
const time = fastClock(10);
const { direct, store, start, admit } = await workerScene(time);

let counter = 0;

type FailingOptions = {
  readonly exitCode?: string;
  readonly workers?: number;
  readonly restartPolicy?: "OnFailure" | "ExitCode" | "Never";
  readonly cleanPodPolicy?: "All" | "None";
  readonly backoffLimit?: number;
};

/** A job whose pods write lines and fail. */
function failing(options: FailingOptions = {}) {
  const { exitCode = "1", workers = 1, restartPolicy = "ExitCode", cleanPodPolicy = "All", backoffLimit = 9 } = options;
  const name = `failing-${counter++}`;
  const annotations = {
    "sim.gangway.dev/pull": "1ms",
    "sim.gangway.dev/start": "1ms",
    "sim.gangway.dev/run": "3s",
    "sim.gangway.dev/log-every": "10ms",
    "sim.gangway.dev/exit-code": exitCode,
    "sim.gangway.dev/termination-grace": "1ms",
  };
  const template = { metadata: { annotations }, spec: { containers: [{ name: "main", image: "busybox" }] } };
  const sent = {
    kind: "Job",
    replicaSpecs: { Worker: { replicas: workers, restartPolicy, template } },
    runPolicy: { cleanPodPolicy, backoffLimit, restartScope: "REPLICA" as const },
  };
  return jobOf(sent, { uid: `uid-of-${name}`, name, namespace: "default" });
}

/** Keeps logs in memory. `off`: the namespace keeps none. */
function keeper({ off = false } = {}) {
  const kept: FailureLog[] = [];
  const calls: string[] = [];
  const facts: { bytes: number; problems: readonly string[] }[] = [];
  const failureLogs: Omit<FailureLogPorts, "open"> = {
    keptRuns: async (jobUid): Promise<readonly RunKey[] | null> => {
      calls.push(jobUid);
      return off ? null : kept;
    },
    keep: async ({ logs }) => {
      kept.push(...logs);
      return logs.reduce((sum, { lines }) => sum + lines.text.length, 0);
    },
    onKept: (fact) => facts.push(fact),
  };
  return { kept, calls, facts, failureLogs };
}

type Open = FailureLogPorts["open"];

/** Counts the reads of logs. */
const counted =
  (count: () => void) =>
  (open: Open): Open => {
    return (...of) => {
      count();
      return open(...of);
    };
  };

const statusOf = (uid: string) => store.job(uid)!.status;
const ended = (uid: string) => until(() => isTerminal(statusOf(uid)), `${uid} ends`);

async function podsOf(uid: string): Promise<readonly JsonObject[]> {
  const query = { labelSelector: `gangway.dev/job-uid=${uid}` };
  const listed = await direct.request({ method: "GET", path: "/api/v1/pods", query });
  assert.ok(listed.kind === "ok");
  return arrayAt(listed.object, "items") as readonly JsonObject[];
}

test("the last 200 lines of a failed container are kept before its pod is deleted", async () => {
  const { kept, facts, failureLogs } = keeper();
  start({ failureLogs });
  const uid = admit(failing());
  await ended(uid);
  await until(async () => (await podsOf(uid)).length === 0, "the pods are gone");
  await until(() => kept.length === 1, "the log is kept");
  const [log] = kept;
  assert.ok(log !== undefined);
  const { podUid: _uid, lines, pod, ...rest } = log;
  assert.deepEqual(rest, {
    container: "main",
    restarts: 0,
    replica: "Worker/0",
    attempt: 1,
    admission: 1,
    cluster: "sim",
    exitCode: 1,
    reason: "Error",
    problem: null,
  });
  const texts = lines.text.split("\n");
  assert.equal(texts.length, 200);
  assert.equal(lines.cut, true);
  assert.equal(texts.at(-1), `${pod}/main attempt 1 ended with exit code 1`);
  assert.deepEqual(facts, [{ bytes: lines.text.length, problems: [] }]);
});

test("each attempt that is restarted is kept, before the deletion of its pod is sent", async () => {
  const { kept, failureLogs } = keeper();
  const deleted: boolean[] = [];
  const wrap: Parameters<typeof start>[0] = {
    failureLogs,
    wrap: (clusters) => ({
      ...clusters,
      act: (action, signal) => {
        if (action.kind === "deletePod") deleted.push(kept.some(({ podUid }) => podUid === action.uid));
        return clusters.act(action, signal);
      },
    }),
  };
  start(wrap);
  const uid = admit(failing({ exitCode: "130,137,0" }));
  await ended(uid);
  await until(() => deleted.length === 3, "all pods are deleted");
  assert.deepEqual(
    kept.map(({ attempt, exitCode }) => [attempt, exitCode]),
    [
      [1, 130],
      [2, 137],
    ],
  );
  assert.deepEqual(deleted, [true, true, false], "the last attempt has not failed");
});

test("of a container that is restarted in its pod, the log of the run that failed is kept", async () => {
  const { kept, failureLogs } = keeper();
  start({ failureLogs });
  const uid = admit(failing({ exitCode: "3,4,0", restartPolicy: "OnFailure" }));
  await ended(uid);
  await until(() => kept.length >= 2, "both runs are kept");
  assert.deepEqual(
    kept.map(({ attempt, restarts, exitCode, lines }) => [attempt, restarts, exitCode, lines.text.split("\n").at(-1)]),
    [3, 4].map((code, at) => [1, at, code, `${kept[0]?.pod}/main attempt 1 ended with exit code ${code}`]),
  );
  assert.equal(new Set(kept.map(({ podUid }) => podUid)).size, 1);
});

test("a cluster that is silent holds up a deletion for a few seconds only, and that is what is kept", async () => {
  const { kept, facts, failureLogs } = keeper();
  const silent: FailureLogPorts["open"] = () => new Promise(() => {});
  start({ failureLogs, wrapOpen: () => silent });
  const uid = admit(failing());
  await ended(uid);
  const endedMs = statusOf(uid).completionTimeMs ?? 0;
  await until(async () => (await podsOf(uid)).length === 0, "the pods are gone");
  await until(() => kept.length === 1, "the problem is kept");
  assert.deepEqual([kept[0]?.problem?.reason, kept[0]?.lines.text], ["Timeout", ""]);
  assert.deepEqual(facts, [{ bytes: 0, problems: ["Timeout"] }]);
  assert.ok(time.nowMs() - endedMs < 60_000);
});

const refusals = {
  "403: the account lacks pods/log": { status: 403, reason: "Forbidden", message: "pods/log is forbidden" },
  "404: the pod is gone": { status: 404, reason: "NotFound", message: "pods is gone" },
  "500, twice": { status: 500, reason: "InternalError", message: "no route to the kubelet" },
};
for (const [name, failure] of Object.entries(refusals)) {
  test(`a log that cannot be read leaves its reason and delays nothing: ${name}`, async () => {
    const { kept, failureLogs } = keeper();
    start({ failureLogs, wrapOpen: () => async () => ({ kind: "failed", ...failure }) });
    const uid = admit(failing());
    await ended(uid);
    await until(() => kept.length === 1, "the reason is kept");
    assert.equal(kept[0]?.problem?.reason, failure.reason);
    assert.match(kept[0]?.problem?.message ?? "", failure.status === 403 ? /needs get on pods\/log/ : /did not return/);
  });
}

test("a server that is busy is asked once more", async () => {
  const { kept, failureLogs } = keeper();
  let calls = 0;
  start({
    failureLogs,
    wrapOpen: (open) => async (request, signal) => {
      calls += 1;
      if (calls === 1) return { kind: "failed", status: 429, reason: "TooManyRequests", message: "later" };
      return open(request, signal);
    },
  });
  const uid = admit(failing());
  await ended(uid);
  await until(() => kept.length === 1, "the log is kept");
  assert.deepEqual([kept[0]?.problem, calls], [null, 2]);
});

test("a namespace that keeps none costs no read of a log", async () => {
  const { kept, calls, failureLogs } = keeper({ off: true });
  let opened = 0;
  start({
    failureLogs,
    wrapOpen: counted(() => {
      opened += 1;
    }),
  });
  const uid = admit(failing());
  await ended(uid);
  await until(async () => (await podsOf(uid)).length === 0, "the pods are gone");
  assert.ok(calls.length > 0);
  assert.deepEqual([kept, opened], [[], 0]);
});

test("a store that fails, and a log that breaks off, end no step", async () => {
  const { kept, failureLogs } = keeper();
  let failures = 0;
  const keptRuns = async (jobUid: string) => {
    failures += 1;
    if (failures === 1) throw new Error("the database is away");
    return failureLogs.keptRuns(jobUid);
  };
  async function* broken(): AsyncGenerator<readonly never[]> {
    yield [];
    throw new Error("terminated");
  }
  const open: FailureLogPorts["open"] = async () => ({ kind: "open", lines: broken() });
  const { errors } = start({ failureLogs: { ...failureLogs, keptRuns }, wrapOpen: () => open });
  const uid = admit(failing({ cleanPodPolicy: "None" }));
  await ended(uid);
  await until(() => kept.length === 1, "the problem is kept");
  assert.equal(kept[0]?.problem?.reason, "BrokenOff");
  assert.deepEqual(errors.map(String), ["Error: the database is away"]);
});

test("a worker that takes over reads no log of which something is kept", async () => {
  const { kept, failureLogs } = keeper();
  const first = start({ failureLogs });
  const uid = admit(failing({ cleanPodPolicy: "None" }));
  await ended(uid);
  await until(() => kept.length === 1, "the log is kept");
  await first.stop();
  let opened = 0;
  const second = start({
    failureLogs,
    wrapOpen: counted(() => {
      opened += 1;
    }),
  });
  await until(() => second.clusters.seenJobs().includes(uid), "the pods are seen");
  second.worker.wake(uid);
  await second.worker.runOnce();
  assert.deepEqual([kept.length, opened], [1, 0]);
});
