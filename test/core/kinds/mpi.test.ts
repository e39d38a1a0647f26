import assert from "node:assert/strict";
import { test } from "node:test";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import type { JsonObject } from "../../../src/runtime/json.ts";
import { arrayAt, objectAt, stringAt } from "../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { Scene } from "../reconcile/scene.ts";
import { admit, CONFIG, jobOf, START_MS, template } from "../reconcile/world.ts";

const mpi = (workers = 2, kindSpec: JsonObject = {}, launcher: JsonObject = template("mpi")) => ({
  kind: "MPIJob",
  replicaSpecs: {
    Launcher: { template: launcher },
    Worker: { replicas: workers, template: template("mpi") },
  },
  kindSpec,
  runPolicy: { cleanPodPolicy: "Running" as const },
});

/** The manifests of a fresh gang, by `Kind/name`. */
function madeOf(sent: ReturnType<typeof mpi>): Record<string, JsonObject> {
  const job = admit(jobOf(sent), { cluster: "c", nowMs: START_MS, number: 1 });
  const { actions } = reconcile(job, [{ cluster: "c", pods: [], services: [], configMaps: [] }], START_MS, CONFIG);
  const manifests = actions.flatMap((action) => ("manifest" in action ? [action.manifest] : []));
  return Object.fromEntries(
    manifests.map((one) => [`${stringAt(one, "kind")}/${stringAt(objectAt(one, "metadata"), "name")}`, one]),
  );
}

const dataOf = (sent: ReturnType<typeof mpi>) => objectAt(madeOf(sent)["ConfigMap/j-config"], "data");
const gpuLauncher = {
  spec: { containers: [{ name: "mpi", image: "i", resources: { limits: { "nvidia.com/gpu": 1 } } }] },
};

test("an MPIJob has no services; its account may run commands only in its own workers", () => {
  const made = madeOf(mpi());
  assert.deepEqual(Object.keys(made), [
    "ConfigMap/j-admission-1",
    "ConfigMap/j-config",
    "ServiceAccount/j-launcher",
    "Role/j-launcher",
    "RoleBinding/j-launcher",
    "Pod/j-launcher",
    "Pod/j-worker-0",
    "Pod/j-worker-1",
  ]);
  const exec = arrayAt(made["Role/j-launcher"], "rules")[1];
  assert.deepEqual(objectAt({ exec }, "exec")["resourceNames"], ["j-worker-0", "j-worker-1"]);
  for (const part of ["ConfigMap/j-config", "Role/j-launcher"]) {
    const labels = objectAt(objectAt(made[part], "metadata"), "labels");
    assert.equal(labels["gangway.dev/admission"], "1");
    assert.equal(labels["gangway.dev/installation"], "test");
  }
});

const hostfiles = {
  "one line for each worker": [mpi(2), "j-worker-0 slots=1\nj-worker-1 slots=1\n"],
  "with the requested slots": [mpi(1, { slotsPerWorker: 4 }), "j-worker-0 slots=4\n"],
  "a launcher with a GPU is a host too": [mpi(1, {}, gpuLauncher), "j-launcher slots=1\nj-worker-0 slots=1\n"],
  "no line without workers": [mpi(0), ""],
} as const;
for (const [name, [sent, hostfile]] of Object.entries(hostfiles)) {
  test(`hosts file: ${name}`, () => assert.equal(dataOf(sent)["hostfile"], hostfile));
}

test("without workers the launcher may not run commands in any pod", () => {
  assert.equal(arrayAt(madeOf(mpi(0))["Role/j-launcher"], "rules").length, 1);
});

test("the launcher runs commands in the container that the job names", () => {
  assert.match(String(dataOf(mpi(1, { mainContainer: "it's" }))["kubexec.sh"]), / --container 'it'\\''s' -- /);
  assert.doesNotMatch(String(dataOf(mpi())["kubexec.sh"]), /--container/);
});

const twoContainers = {
  spec: {
    containers: [
      { name: "sidecar", image: "s" },
      { name: "mpi", image: "i" },
    ],
  },
};
const mains = {
  "without a name kubectl exec uses the first container": [{}, "sidecar"],
  "kubectl exec uses the container that the job names": [{ mainContainer: "mpi" }, "mpi"],
  "for an unknown name kubectl exec uses the first container": [{ mainContainer: "other" }, "sidecar"],
} as const;
for (const [name, [kindSpec, main]] of Object.entries(mains)) {
  test(`${name}: it sleeps in workers and has the hosts in the launcher`, () => {
    const made = madeOf({
      ...mpi(1, kindSpec),
      replicaSpecs: { Launcher: { template: twoContainers }, Worker: { replicas: 1, template: twoContainers } },
    });
    const having = (pod: string, member: string) =>
      arrayAt(objectAt(made[pod], "spec"), "containers").flatMap((one) =>
        arrayAt(one, member).length > 0 ? [stringAt(one, "name")] : [],
      );
    assert.deepEqual(having("Pod/j-worker-0", "command"), [main]);
    assert.deepEqual(having("Pod/j-worker-0", "volumeMounts"), [main]);
    assert.deepEqual(having("Pod/j-launcher", "volumeMounts"), [main]);
  });
}

test("the template may set the variables of Intel MPI", () => {
  const env = [{ name: "I_MPI_HYDRA_BOOTSTRAP", value: "ssh" }];
  const made = madeOf(mpi(1, {}, { spec: { containers: [{ name: "mpi", image: "i", env }] } }));
  const [container] = arrayAt(objectAt(made["Pod/j-launcher"], "spec"), "containers");
  const values = arrayAt(container, "env").flatMap((one) =>
    stringAt(one, "name")?.startsWith("I_MPI_") ? [stringAt(one, "value")] : [],
  );
  assert.deepEqual(values, ["ssh", "/etc/mpi/kubexec.sh"]);
});

test("if the launcher's template names an account, Gangway binds that and creates none", () => {
  const made = madeOf(
    mpi(1, {}, { spec: { serviceAccountName: "trainer", containers: [{ name: "mpi", image: "i" }] } }),
  );
  assert.equal(made["ServiceAccount/j-launcher"], undefined);
  assert.deepEqual(made["RoleBinding/j-launcher"]?.["subjects"], [
    { kind: "ServiceAccount", name: "trainer", namespace: "ns" },
  ]);
  assert.equal(objectAt(made["Pod/j-launcher"], "spec")["serviceAccountName"], "trainer");
});

test("a worker without a command sleeps; only the launcher hides GPUs that it did not request", () => {
  const own = { spec: { containers: [{ name: "mpi", image: "i", command: ["/usr/sbin/sshd"], args: ["-D"] }] } };
  const sent = { ...mpi(), replicaSpecs: { ...mpi().replicaSpecs, Worker: { replicas: 1, template: own } } };
  const [container] = arrayAt(objectAt(madeOf(sent)["Pod/j-worker-0"], "spec"), "containers");
  assert.deepEqual(objectAt({ container }, "container")["args"], ["-D"]);
  const names = (sent: ReturnType<typeof mpi>) =>
    arrayAt(arrayAt(objectAt(madeOf(sent)["Pod/j-launcher"], "spec"), "containers")[0], "env").map((one) =>
      stringAt(one, "name"),
    );
  assert.ok(names(mpi()).includes("NVIDIA_VISIBLE_DEVICES"));
  assert.ok(!names(mpi(1, {}, gpuLauncher)).includes("NVIDIA_VISIBLE_DEVICES"));
});

test("a lost config map is created again with the other objects; at the end all are deleted", () => {
  const scene = new Scene(mpi());
  scene.start();
  assert.equal(scene.job.status.phase, "RUNNING");
  scene.cluster.things = scene.cluster.things.filter(({ kind }) => kind !== "configMap");
  const { actions } = scene.step();
  assert.deepEqual(
    actions.map((action) => [action.kind, "manifest" in action ? action.manifest["kind"] : null]),
    ["ConfigMap", "ServiceAccount", "Role", "RoleBinding"].map((kind) => ["createPart", kind]),
  );
  scene.set("j-launcher", "Succeeded", { exitCode: 0 });
  scene.rest();
  assert.equal(scene.job.status.phase, "SUCCEEDED");
  assert.deepEqual(scene.podNames, ["j-launcher"], "workers go by policy Running");
  scene.job = { ...scene.job, deleteTimeMs: scene.nowMs };
  scene.rest();
  assert.deepEqual(
    scene.cluster.things.map(({ name }) => name),
    [],
  );
});

test("the launcher leads: workers that end are ignored, but one that fails for good fails the job", () => {
  const { verdict } = OWN_KINDS.kindOf("MPIJob")!;
  const state = { members: 1, active: 0, succeeded: 0, failedForGood: 0, firstExitedZero: false };
  const launcher = { ...state, role: "Launcher" };
  const worker = { ...state, role: "Worker" };
  assert.equal(
    verdict(
      [
        { ...launcher, active: 1 },
        { ...worker, succeeded: 1 },
      ],
      {},
    ),
    "running",
  );
  assert.equal(verdict([launcher, { ...worker, active: 1 }], {}), null);
  assert.equal(
    verdict(
      [
        { ...launcher, active: 1 },
        { ...worker, failedForGood: 1 },
      ],
      {},
    ),
    "failed",
  );
  assert.equal(
    verdict(
      [
        { ...launcher, succeeded: 1 },
        { ...worker, failedForGood: 1 },
      ],
      {},
    ),
    "succeeded",
  );
});

test("failures of dynamic workers of a TFJob are ignored until none is left to lead", () => {
  const { verdict } = OWN_KINDS.kindOf("TFJob")!;
  const dynamic = { enableDynamicWorker: true };
  const worker = { role: "Worker", members: 2, active: 1, succeeded: 0, failedForGood: 1, firstExitedZero: false };
  const chief = { ...worker, role: "Chief", members: 1, active: 1, failedForGood: 0 };
  assert.equal(verdict([worker], dynamic), "running");
  assert.equal(verdict([worker], {}), "failed");
  assert.equal(verdict([{ ...worker, active: 0, failedForGood: 2 }], dynamic), "failed");
  assert.equal(verdict([{ ...worker, active: 0, succeeded: 1 }], dynamic), "failed");
  assert.equal(verdict([chief, { ...worker, active: 0, failedForGood: 2 }], dynamic), "running");
  assert.equal(verdict([{ ...chief, role: "PS", failedForGood: 1 }, worker], dynamic), "failed");
});

test("a dynamic worker that failed for good does not undo its gang", () => {
  const scene = new Scene({
    kind: "TFJob",
    replicaSpecs: {
      PS: { template: template("tensorflow") },
      Worker: { replicas: 2, template: template("tensorflow") },
    },
    kindSpec: { enableDynamicWorker: true },
  });
  scene.start();
  scene.set("j-worker-1", "Failed", { exitCode: 1 });
  scene.step();
  scene.nowMs += 3_600_000;
  scene.step();
  assert.equal(scene.job.status.phase, "RUNNING");
  assert.equal(scene.job.admissions.at(-1)?.state, "live");
  assert.equal(scene.job.admissions.at(-1)?.belowMinSinceMs, null);
});
