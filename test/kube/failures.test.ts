import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { Reflector } from "../../src/adapters/cluster/reflector.ts";
import { isDraining, type Job } from "../../src/core/job/job.ts";
import { LABEL } from "../../src/core/job/labels.ts";
import type { SentJob } from "../../src/core/job/request/sent.ts";
import { isTerminal } from "../../src/core/job/status.ts";
import { PLAIN_POD_CONFIG } from "../../src/core/pods/pod-config.ts";
import { type PodView, podView } from "../../src/core/pods/read/pod-view.ts";
import { PENDING_LIMITS } from "../../src/core/pods/read/read-pending.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { clock, until } from "../cluster/harness.ts";
import { expectedEnd, FAILING, type Failing, nameOf, type Row, rowOf } from "../worker/failure-table.ts";
import { controlPlaneBuilt } from "./build.ts";
import { CONTROLLERS, type ControlPlane, startControlPlane } from "./control-plane.ts";
import { BESIDE, FAILURE_STAGES, IMAGE, LET_GO, MAIN, PLAYS } from "./failure-stages.ts";
import { GPU, type Service, startService } from "./service.ts";
import { addNodes } from "./subject.ts";

const NAMESPACE = "training";
const POOL = "gpu/h100";
const PRODUCT = { "nvidia.com/gpu.product": "h100" };
/** The nodes that a job's pods run on. The pods of most rows share one. */
const PLACE = "test.gangway.dev/place";
const SPOT = "test.gangway.dev/spot";
const UNREACHABLE = "node.kubernetes.io/unreachable";
const END_MS_MAX = 150_000;

type Node = { readonly name: string; readonly place: string; readonly gpus?: number; readonly spot?: boolean };

const NODES: readonly Node[] = [
  { name: "shared", place: "shared", gpus: 100 },
  { name: "spot", place: "shared", spot: true },
  { name: "full", place: "full", gpus: 1 },
  { name: "maintained", place: "maintained" },
  { name: "lost-0", place: "lost" },
  { name: "lost-1", place: "lost" },
];

const PLACES: Readonly<Partial<Record<Failing, string>>> = {
  "preemption by the scheduler": "full",
  "eviction by a taint": "maintained",
  "loss of the node": "lost",
};

function jobOf(failing: Failing): SentJob {
  const { policy = "ExitCode", beside, gang = false, interruptible = false, ...row }: Row = rowOf(failing);
  const main = { name: MAIN, image: IMAGE, resources: { limits: { [GPU]: "1" } } };
  const helper = { name: BESIDE, image: IMAGE, ...(beside === "nativeSidecar" ? { restartPolicy: "Always" } : {}) };
  const template = {
    metadata: { annotations: { [PLAYS]: failing } },
    spec: {
      terminationGracePeriodSeconds: 1,
      nodeSelector: { [PLACE]: PLACES[failing] ?? "shared" },
      tolerations: [{ key: UNREACHABLE, operator: "Exists", effect: "NoExecute", tolerationSeconds: 0 }],
      containers: beside === "sidecar" ? [main, helper] : [main],
      ...(beside === "init" || beside === "nativeSidecar" ? { initContainers: [helper] } : {}),
    },
  };
  return {
    namespace: NAMESPACE,
    name: nameOf(failing),
    generateName: "",
    labels: {},
    annotations: {},
    spec: {
      kind: gang ? "Job" : "PyTorchJob",
      replicaSpecs: { Worker: { replicas: gang ? 2 : 1, restartPolicy: policy, template } },
      runPolicy: {
        cleanPodPolicy: "All",
        ...(interruptible ? { interruptible } : {}),
        ...(row.backoffLimit === undefined ? {} : { backoffLimit: row.backoffLimit }),
        ...(row.systemBackoffLimit === undefined ? {} : { systemBackoffLimit: row.systemBackoffLimit }),
      },
    },
  };
}

/** The test's action on a running pod whose failure no stage plays. */
type Act = (pod: PodView, of: { readonly job: () => Job; readonly look: () => PodView | undefined }) => Promise<void>;

suite("the failure table on a real control plane", { skip: !controlPlaneBuilt(), timeout: 500_000 }, () => {
  let plane: ControlPlane;
  let services: readonly Service[] = [];
  let pods: Awaited<ReturnType<typeof witness>>;
  let jobs: ReturnType<typeof follow>;
  const acted = new Map<Failing, Promise<unknown>>();

  before(async () => {
    // Without the collector of pods whose node is gone: Gangway must delete those. The controller of daemon sets
    // creates the index that taint-eviction reads.
    const others = CONTROLLERS.filter((name) => name !== "pod-garbage-collector");
    const controllers = [...others, "daemonset", "taint-eviction"];
    plane = await startControlPlane({ stages: FAILURE_STAGES, controllers });
    await addNodes(
      plane,
      NODES.map(({ name, place, gpus = 8, spot }) => ({
        name,
        labels: { ...PRODUCT, [PLACE]: place, ...(spot ? { [SPOT]: "yes" } : {}) },
        allocatable: { cpu: "64", memory: "256Gi", pods: "110", [GPU]: String(gpus) },
      })),
    );
    await create("/apis/scheduling.k8s.io/v1/priorityclasses", {
      apiVersion: "scheduling.k8s.io/v1",
      kind: "PriorityClass",
      metadata: { name: "urgent" },
      value: 1_000,
    });
    pods = witness(plane);
    const [patient, impatient] = await Promise.all([serve(0), serve(1_000)]);
    services = [patient, impatient];
    jobs = follow(services);
    for (const failing of FAILING) await (rowOf(failing).impatient ? impatient : patient).submit(jobOf(failing));
    await until(() => jobs.count() === FAILING.length, "every job is there", END_MS_MAX);
    for (const [failing, act] of Object.entries(acts) as [Failing, Act][]) {
      acted.set(
        failing,
        Promise.allSettled([perform(failing, act)]).then(([done]) => done),
      );
    }
  });

  after(async () => {
    await jobs?.close();
    await Promise.all(services.map((service) => service.close()));
    await pods?.close();
    await plane?.stop();
  });

  function serve(podPendingTimeoutMs: number): Promise<Service> {
    const flavors = [{ name: POOL, resource: GPU, nodeLabels: PRODUCT }];
    const cluster = { name: "plane", kubeconfig: plane.kubeconfig(), flavors };
    const graces = { imagePullBackoffGraceMs: 1_500, createContainerErrorGraceMs: 1_000 };
    const spot = { key: SPOT, operator: "DoesNotExist" };
    return startService([cluster], [{ name: "default", quotas: { [POOL]: 100 } }], {
      pending: { ...PENDING_LIMITS, ...graces, podPendingTimeoutMs },
      podConfig: {
        ...PLAIN_POD_CONFIG,
        interruptibleNodeSelector: { [SPOT]: "yes" },
        nonInterruptibleNodeSelectorRequirement: spot,
      },
    });
  }

  async function create(path: string, body: JsonObject): Promise<void> {
    const made = await plane.client.request({ method: "POST", path, body });
    assert.ok(made.kind === "ok", made.kind === "failed" ? made.message : "");
  }

  async function patch(path: string, body: JsonObject): Promise<void> {
    const patched = await plane.client.request({ method: "PATCH", path, body });
    assert.ok(patched.kind === "ok", patched.kind === "failed" ? patched.message : "");
  }

  async function remove(path: string): Promise<void> {
    const removed = await plane.client.request({ method: "DELETE", path });
    assert.ok(removed.kind === "ok", removed.kind === "failed" ? removed.message : "");
  }

  const pathOf = ({ name }: { readonly name: string }) => `/api/v1/namespaces/${NAMESPACE}/pods/${name}`;
  /** Ends the wait of a job's first attempts that exist. */
  const letGo = async ({ labels }: PodView) => {
    const first = pods.of(labels[LABEL.jobName] ?? "").filter(({ attempt }) => attempt === 1);
    for (const { name, uid } of first) {
      const body = { metadata: { uid, annotations: { [LET_GO]: "yes" } } };
      const patched = await plane.client.request({ method: "PATCH", path: pathOf({ name }), body });
      // The pod may have been deleted, or another pod may have its name.
      assert.ok(patched.kind === "ok" || patched.status === 404 || patched.status === 409, JSON.stringify(patched));
    }
  };
  const taint = (node: string, key: string | null) =>
    patch(`/api/v1/nodes/${node}`, { spec: { taints: key === null ? null : [{ key, effect: "NoExecute" }] } });
  const counted = (job: () => Job) =>
    until(() => job().status.attempts.system > 0, "the failure is counted", END_MS_MAX);
  const evict: Act = async (pod, { job }) => {
    const metadata = { name: pod.name, namespace: NAMESPACE };
    await create(`${pathOf(pod)}/eviction`, { apiVersion: "policy/v1", kind: "Eviction", metadata });
    await counted(job);
    await letGo(pod);
  };

  const acts: Readonly<Partial<Record<Failing, Act>>> = {
    "a container restarted once": async (pod, { job }) => {
      await until(() => job().status.attempts.user > 0, "the restart is counted", END_MS_MAX);
      await letGo(pod);
    },
    "a sidecar is restarted while the primary container runs": async (pod, { look }) => {
      await until(() => look()?.initRestarts === 1, "the sidecar is restarted", END_MS_MAX);
      await letGo(pod);
    },
    "eviction through the API": evict,
    "eviction through the API under Never": evict,
    "eviction of one of a gang": evict,
    "eviction of an interruptible job": evict,
    "preemption by the scheduler": async (pod, { job }) => {
      const urgent = { name: "urgent" };
      await create(`/api/v1/namespaces/${NAMESPACE}/pods`, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: urgent,
        spec: {
          priorityClassName: "urgent",
          nodeSelector: { [PLACE]: "full" },
          containers: [{ name: "main", image: IMAGE, resources: { limits: { [GPU]: "1" } } }],
        },
      });
      await counted(job);
      await letGo(pod);
      await remove(pathOf(urgent));
    },
    "eviction by a taint": async (pod, { job }) => {
      await taint(pod.nodeName, "test.gangway.dev/maintenance");
      await counted(job);
      await taint(pod.nodeName, null);
      await letGo(pod);
    },
    "loss of the node": async (pod, { look }) => {
      // First the node controller's reaction to a silent node, then the cloud's.
      await taint(pod.nodeName, UNREACHABLE);
      await until(() => look()?.deleting === true, "the pod is being deleted", END_MS_MAX);
      await remove(`/api/v1/nodes/${pod.nodeName}`);
    },
    "collection of one of a gang with its node": async (pod, { job }) => {
      // Like the collector of pods, which waits a minute first: it marks and deletes the pod at once.
      const condition = { type: "DisruptionTarget", status: "True", reason: "DeletionByPodGC" };
      await patch(`${pathOf(pod)}/status`, { status: { phase: "Failed", conditions: [condition] } });
      const removed = await plane.client.request({ method: "DELETE", path: pathOf(pod) });
      // The worker may have deleted it already, to restart the gang.
      assert.ok(removed.kind === "ok" || removed.status === 404, JSON.stringify(removed));
      await counted(job);
      await letGo(pod);
    },
  };

  async function perform(failing: Failing, act: Act): Promise<void> {
    const look = () => pods.firstOf(nameOf(failing));
    await until(() => look()?.phase === "Running", `${failing}: the pod runs`, END_MS_MAX);
    const pod = look();
    assert.ok(pod !== undefined);
    await act(pod, { job: () => jobs.of(failing), look });
  }

  for (const failing of FAILING) {
    test(failing, async () => {
      const done = (await acted.get(failing)) as PromiseSettledResult<void> | undefined;
      if (done?.status === "rejected") throw done.reason;
      const said = () => JSON.stringify(jobs.of(failing).status);
      const hasEnded = () => isTerminal(jobs.of(failing).status) && !isDraining(jobs.of(failing));
      await until(hasEnded, "the job ends", END_MS_MAX).catch((error) => assert.fail(`${error}: ${said()}`));
      const { phase, failure, attempts } = jobs.of(failing).status;
      const end = {
        phase,
        failure: failure === null ? null : { code: failure.code, kind: failure.kind },
        attempts: { user: attempts.user, system: attempts.system },
      };
      assert.deepEqual(end, expectedEnd(rowOf(failing)), said());
      const seen = pods.of(nameOf(failing)).map(({ role, index, attempt }) => `${role}/${index} attempt ${attempt}`);
      assert.equal(new Set(seen).size, seen.length, `an attempt was started twice: ${seen.join()}`);
    });
  }

  for (const failing of ["eviction of one of a gang", "collection of one of a gang with its node"] as const) {
    test(`${failing}: the whole gang is restarted`, () => {
      const seen = pods.of(nameOf(failing)).map(({ index, attempt }) => `${index}/${attempt}`);
      assert.deepEqual(seen.sort(), ["0/1", "0/2", "1/1", "1/2"]);
    });
  }

  test("the first attempt of an interruptible job runs on interruptible nodes, the next one does not", () => {
    const seen = pods.of(nameOf("eviction of an interruptible job"));
    assert.deepEqual(
      seen.map(({ attempt, nodeName, labels }) => [attempt, nodeName, labels[LABEL.interruptible]]),
      [
        [1, "spot", "true"],
        [2, "shared", "false"],
      ],
    );
  });

  test("pods that were restarted in place are the only pods of their jobs", () => {
    for (const failing of ["a container restarted once", "CrashLoopBackOff under Always"] as const) {
      assert.equal(pods.of(nameOf(failing)).length, 1, failing);
    }
  });

  test("a pod that a kubelet never ended is gone with its node", async () => {
    const [first, second] = pods.of(nameOf("loss of the node"));
    assert.notEqual(first?.nodeName, second?.nodeName);
    assert.equal(first?.deleting, true);
  });

  test("all tokens are free, and no error was reported", async () => {
    for (const service of services) {
      assert.deepEqual(service.errors, []);
      const used = Object.values(await service.used()).flatMap((queue) => Object.values(queue));
      assert.deepEqual(
        used.filter((count) => count !== 0),
        [],
      );
    }
  });
});

/** Records every pod that a control plane ever shows, in its last state. */
function witness(plane: ControlPlane) {
  const seen = new Map<string, PodView>();
  const reflector = new Reflector<PodView>({
    client: plane.client,
    path: "/api/v1/pods",
    labelSelector: LABEL.installation,
    clock,
    random: Math.random,
    silenceMsMax: 150_000,
    keep: podView,
    jobOf: () => null,
    onChange: (_key, _before, pod) => {
      if (pod !== undefined) seen.set(pod.uid, pod);
    },
    onHealth: () => undefined,
    onError: () => undefined,
  });
  reflector.start();
  const of = (job: string) =>
    [...seen.values()].filter(({ labels }) => labels[LABEL.jobName] === job).sort((a, b) => a.attempt - b.attempt);
  return {
    /** All pods of a job, older attempts first. */
    of,
    /** The first attempt of a job's first worker. */
    firstOf: (job: string) => of(job).find(({ attempt, index }) => attempt === 1 && index === 0),
    close: () => reflector.close(),
  };
}

/** Reads the jobs of services again and again, for all tests that wait for a change of them. */
function follow(services: readonly Service[]) {
  const jobs = new Map<string, Job>();
  const closing = new AbortController();
  const over = (async () => {
    while (!closing.signal.aborted) {
      for (const service of services) for (const job of await service.jobs()) jobs.set(job.name, job);
      await clock.sleep(100, closing.signal);
    }
  })();
  return {
    count: () => jobs.size,
    of(failing: Failing): Job {
      const job = jobs.get(nameOf(failing));
      assert.ok(job !== undefined, `${failing} is not there yet`);
      return job;
    },
    async close() {
      closing.abort();
      await over;
    },
  };
}
