/** The kept lines of failed containers that a real API server does not return: the reason is kept, and shown. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { createKubeClient, type KubeClient } from "../../src/adapters/cluster/client.ts";
import { createPodLogs, type PodLogs } from "../../src/adapters/cluster/pod-logs.ts";
import type { FailedRun, FailureLog } from "../../src/core/job/failure-logs/kept-logs.ts";
import type { Action } from "../../src/core/reconcile/decision.ts";
import { JobService, JobView } from "../../src/gen/gangway/v1/job_service_pb.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { arrayAt } from "../../src/runtime/json.ts";
import { FailureLogs } from "../../src/worker/failure-logs.ts";
import { startFixture } from "../api/fixture.ts";
import { pytorchJob } from "../api/jobs.ts";
import { run } from "../cli/harness.ts";
import { INSTALLATION, until } from "../cluster/harness.ts";
import { controlPlaneBuilt } from "./build.ts";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";
import { ACCOUNT_OBJECTS, ROLE_PATH, tokenOf } from "./service-account.ts";

const WAIT_MS_MAX = 300_000;
const { method } = JobService;

/** The time for a log is long here: only a silent cluster may end it. */
function slowClock(): Clock {
  const clock = systemClock();
  return { ...clock, sleep: (ms, signal) => clock.sleep(ms * 50, signal) };
}

suite("kept lines that a real API server does not return", { skip: !controlPlaneBuilt(), timeout: 800_000 }, () => {
  let plane: ControlPlane;
  let account: KubeClient;
  let logs: PodLogs;

  before(async () => {
    plane = await startControlPlane();
    const kubeconfig = plane.kubeconfig(await tokenOf(plane));
    const options = { kubeconfig, connectionsMax: 1, requestTimeoutMs: 60_000 };
    account = createKubeClient(options);
    logs = createPodLogs(options, INSTALLATION);
  });

  after(async () => {
    await account?.close();
    await logs?.close();
    await plane?.stop();
  });

  const answersLog = async (status: number) => {
    const path = "/api/v1/namespaces/default/pods/none/log";
    const answer = await account.request({ method: "GET", path });
    return answer.kind === "failed" && answer.status === status;
  };

  /** Takes `get pods/log` from the role of the account. */
  async function takePermission(): Promise<void> {
    const role = ACCOUNT_OBJECTS.find(({ kind }) => kind === "ClusterRole");
    const rules = arrayAt(role, "rules").filter((rule) => !arrayAt(rule, "resources").includes("pods/log"));
    assert.equal(rules.length, arrayAt(role, "rules").length - 1);
    const taken = await plane.client.request({ method: "PATCH", path: ROLE_PATH, body: { rules } });
    assert.equal(taken.kind, "ok", JSON.stringify(taken));
  }

  const cases: Readonly<
    Record<string, { readonly arrange: () => Promise<void>; readonly reason: string; readonly says: RegExp }>
  > = {
    "a pod that is gone": {
      arrange: () => until(() => answersLog(404), "the account may read logs", WAIT_MS_MAX),
      reason: "NotFound",
      says: /NotFound: cluster real did not return the log: pods "mnist-worker-0" not found/,
    },
    "an account that lacks pods/log": {
      arrange: async () => {
        await takePermission();
        await until(() => answersLog(403), "the API server refuses logs", WAIT_MS_MAX);
      },
      reason: "Forbidden",
      says: new RegExp(
        "Forbidden: the account of Gangway in cluster real may not read logs: it needs get on pods/log: " +
          '.*User "system:serviceaccount:gangway-system:gangway" cannot get resource "pods/log"',
      ),
    },
  };

  for (const [name, { arrange, reason, says }] of Object.entries(cases)) {
    test(`the reason is kept and shown: ${name}`, async (t) => {
      await arrange();
      const { api, store, call } = await startFixture(t);
      await call(method.createJob, { job: pytorchJob("mnist") });
      const { job } = store.jobs.get("default/mnist")!;
      const status = { ...job.status, attempts: { ...job.status.attempts, user: 1, byReplica: { "Worker/0": 1 } } };
      store.put({ ...job, version: 2, status: { ...status, phase: "FAILED", waiting: null } });

      const kept = Promise.withResolvers<readonly FailureLog[]>();
      const problems: string[] = [];
      const failureLogs = new FailureLogs(
        {
          clock: slowClock(),
          open: logs.open,
          keptRuns: async () => [],
          keep: async ({ logs }) => {
            kept.resolve(logs);
            return 0;
          },
          onKept: (facts) => void problems.push(...facts.problems),
        },
        kept.reject,
      );
      failureLogs.see(job, () => [FAILED], new AbortController().signal);
      await failureLogs.before(DELETION, new AbortController().signal);
      const found = await kept.promise;
      assert.deepEqual(
        found.map(({ lines, problem }) => ({ lines, reason: problem?.reason })),
        [{ lines: { text: "", cut: false }, reason }],
      );
      await t.waitFor(() => assert.deepEqual(problems, [reason]));

      const nowMs = systemClock().nowMs();
      store.failureLogs.set(job.uid, { keeps: true, logs: found.map((log) => ({ ...log, readMs: nowMs })) });
      for (const argv of ["logs mnist", "logs mnist --follow", "logs mnist --attempt 1", "explain mnist"]) {
        const { stdout } = await run(argv.split(" "), { address: api.address });
        assert.match(stdout, says, argv);
        assert.match(
          stdout,
          /Worker\/0 pytorch, attempt 1, exit code 1: no lines were kept of pod mnist-worker-0/,
          argv,
        );
      }
      const { ok } = await call(method.getJob, { name: "mnist", view: JobView.FULL });
      assert.deepEqual(
        ok?.failureLogs?.logs.map(({ problem, text }) => ({ problem, text })),
        [{ problem: reason, text: "" }],
      );
    });
  }
});

const FAILED: FailedRun = {
  podUid: "uid",
  container: "pytorch",
  restarts: 0,
  replica: "Worker/0",
  attempt: 1,
  admission: 1,
  cluster: "real",
  pod: "mnist-worker-0",
  exitCode: 1,
  reason: "Error",
  previous: false,
};

const DELETION: Action = {
  kind: "deletePod",
  cluster: FAILED.cluster,
  namespace: "default",
  name: FAILED.pod,
  uid: FAILED.podUid,
};
