/** Gangs that a real cluster admits and does not start: they say why, until they start. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import type { Job } from "../../src/core/job/job.ts";
import type { SentJob } from "../../src/core/job/request/sent.ts";
import { seenPods } from "../../src/core/kinds/job-pods.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { clock, until } from "../cluster/harness.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import type { Failing } from "../worker/failure-table.ts";
import { controlPlaneBuilt } from "./build.ts";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";
import { FAILURE_STAGES, IMAGE, MAIN, PLAYS } from "./failure-stages.ts";
import { type Service, startService } from "./service.ts";
import { addNodes } from "./subject.ts";

const NAMESPACE = "training";
const MS_MAX = 120_000;
const ROOM = "test.gangway.dev/room";

/** No stage plays this, so that such a pod runs until it is deleted. */
const NOTHING = "nothing";

/** Two workers whose pods play a failure. */
function gangOf(name: string, spec: JsonObject = {}, plays: Failing | typeof NOTHING = NOTHING): SentJob {
  const container = { name: MAIN, image: IMAGE, resources: { limits: { cpu: "1" } } };
  const template = { metadata: { annotations: { [PLAYS]: plays } }, spec: { containers: [container], ...spec } };
  const replicaSpecs = { Worker: { replicas: 2, restartPolicy: "OnFailure" as const, template } };
  return {
    namespace: NAMESPACE,
    name,
    generateName: "",
    labels: {},
    annotations: {},
    spec: { kind: "PyTorchJob", replicaSpecs },
  };
}

suite("gangs that do not start on a real control plane", { skip: !controlPlaneBuilt(), timeout: 400_000 }, () => {
  let plane: ControlPlane;
  let service: Service;

  before(async () => {
    plane = await startControlPlane({ stages: FAILURE_STAGES });
    const allocatable = { cpu: "8", memory: "32Gi", pods: "110" };
    await addNodes(plane, [
      { name: "plain", labels: {}, allocatable },
      { name: "roomy", labels: { [ROOM]: "yes" }, allocatable },
    ]);
    const cluster = { name: "plane", kubeconfig: plane.kubeconfig(), flavors: [] };
    service = await startService([cluster], [{ name: "default", quotas: {} }]);
  });

  after(async () => {
    await service?.close();
    await plane?.stop();
  });

  async function call(method: "POST" | "PATCH" | "DELETE", path: string, body: JsonObject = {}): Promise<void> {
    const answer = await plane.client.request({ method, path, body });
    assert.ok(answer.kind === "ok", answer.kind === "failed" ? answer.message : "");
  }

  const jobOf = async (name: string): Promise<Job> => {
    const found = (await service.jobs()).find((job) => job.name === name);
    assert.ok(found);
    return found;
  };

  /** Waits until the job says this, and nothing else. Empty: it has no problem. */
  async function says(name: string, wanted: string): Promise<string> {
    let status: Job["status"] | undefined;
    const said = async () => {
      status = (await jobOf(name)).status;
      return status.podProblems?.problems.map(({ pods, reason }) => `${pods} ${reason}`).join() ?? "";
    };
    await until(async () => (await said()) === wanted, `${name} says "${wanted}"`, MS_MAX).catch((error) =>
      assert.fail(`${error}: ${JSON.stringify(status)}`),
    );
    return status?.podProblems?.problems[0]?.message ?? "";
  }

  const runs = (name: string) =>
    until(
      async () => (await jobOf(name)).status.replicaStatuses["Worker"]?.active === 2,
      `both workers of ${name} run`,
      MS_MAX,
    );

  test("a service account is missing", async () => {
    await service.submit(gangOf("robot", { serviceAccountName: "robot" }));
    const message = await says("robot", "2 FailedCreatePod");
    assert.match(message, /pods "robot-worker-[01]" is forbidden: .*serviceaccount "robot" not found/);
    const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "robot" } };
    await call("POST", `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`, account);
    await runs("robot");
    assert.equal(await says("robot", ""), "");
  });

  test("no scheduler has the name that the template gives", async () => {
    await service.submit(gangOf("unscheduled", { schedulerName: "nobody" }));
    const message = await says("unscheduled", "2 NotScheduled");
    assert.match(message, /no scheduler of the name nobody has looked at the pod/);
  });

  test("a claim of a volume is missing", async () => {
    const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
    await service.submit(gangOf("claim", { volumes }));
    assert.match(await says("claim", "2 Unschedulable"), /persistentvolumeclaim "data" not found/);
  });

  test("an image cannot be pulled", async () => {
    await service.submit(gangOf("image", {}, "ImagePullBackOff"));
    assert.match(await says("image", "2 ImagePullBackOff"), new RegExp(`^container ${MAIN}`));
  });

  test("no node has the labels that the template selects any more", async () => {
    await service.submit(gangOf("selective", { nodeSelector: { [ROOM]: "yes" } }));
    await runs("selective");
    const label = (value: string | null) =>
      call("PATCH", "/api/v1/nodes/roomy", { metadata: { labels: { [ROOM]: value } } });
    await label(null);
    await call("DELETE", `/api/v1/namespaces/${NAMESPACE}/pods/selective-worker-1`);
    const message = await says("selective", "1 Unschedulable");
    assert.match(message, /^0\/2 nodes are available: .*node\(s\) didn't match Pod's node affinity\/selector/);
    const job = await jobOf("selective");
    const pods = await service.clusters[0]?.podsOf(
      { namespace: NAMESPACE, jobUid: job.uid },
      new AbortController().signal,
    );
    const kind = OWN_KINDS.kindOf(job.spec.kind);
    assert.deepEqual(
      seenPods({ job, kind }, pods ?? [], clock.nowMs()).map(({ name, phase, node, reason }) => [
        ...[name, phase, node, reason],
      ]),
      [
        ["selective-worker-0", "Running", "roomy", ""],
        ["selective-worker-1", "Pending", "", "Unschedulable"],
      ],
    );
    await label("yes");
    await runs("selective");
    assert.equal(await says("selective", ""), "");
  });

  test("no error was reported", () => assert.deepEqual(service.errors, []));
});
