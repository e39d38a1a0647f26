import assert from "node:assert/strict";
import { test } from "node:test";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import type { Json, JsonObject } from "../../../src/runtime/json.ts";
import { arrayAt, objectAt, stringAt } from "../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { admit, CONFIG, jobOf, START_MS } from "./world.ts";

type JobShape = {
  readonly kind: string;
  readonly replicas: Readonly<Record<string, number>>;
  readonly kindSpec?: JsonObject;
  /** The port that each default container declares under its kind's name. */
  readonly port?: number;
  readonly podSpec?: JsonObject;
  /** The variables of both containers. */
  readonly env?: readonly JsonObject[];
};

/** The pods that a fresh gang gets, by name. */
function podsOf({
  kind: name,
  replicas,
  kindSpec = {},
  port,
  podSpec = {},
  env = [],
}: JobShape): Record<string, JsonObject> {
  const kind = OWN_KINDS.kindOf(name)!;
  const ports = port === undefined ? [] : [{ name: kind.defaultPort!.name, containerPort: port }];
  const containers = [
    { name: kind.defaultContainer ?? "main", image: "img", ports, env },
    { name: "sidecar", image: "img", env },
  ];
  const template = { spec: { containers, ...podSpec } };
  const replicaSpecs = Object.fromEntries(
    Object.entries(replicas).map(([role, count]) => [role, { replicas: count, template }]),
  );
  const job = admit(jobOf({ kind: name, replicaSpecs, kindSpec }), { cluster: "c", nowMs: START_MS, number: 1 });
  const seen = { cluster: "c", pods: [], services: [], configMaps: [] };
  const { actions } = reconcile(job, [seen], START_MS, CONFIG);
  const made = actions.flatMap((action) => (action.kind === "createPod" ? [action.manifest] : []));
  return Object.fromEntries(made.map((pod) => [stringAt(objectAt(pod, "metadata"), "name") ?? "", pod]));
}

/** The environment of a container, without the variables that every container gets. */
function envOf(pod: JsonObject | undefined, container: number): Record<string, Json> {
  const all = arrayAt(arrayAt(objectAt(pod, "spec"), "containers")[container], "env");
  const env = all.filter((one) => !stringAt(one, "name")?.startsWith("GANGWAY_"));
  return Object.fromEntries(
    env.map((one) => [stringAt(one, "name") ?? "", stringAt(one, "value") ?? objectAt(one, "valueFrom")]),
  );
}

const podIp = { fieldRef: { fieldPath: "status.podIP" } };
const python = { PYTHONUNBUFFERED: "1" };
const cases: Readonly<
  Record<string, { shape: JobShape; env: Readonly<Record<string, Readonly<Record<string, Json>>>> }>
> = {
  "elastic workers with a master meet at worker 0, on its own port": {
    shape: {
      kind: "PyTorchJob",
      replicas: { Master: 1, Worker: 2 },
      port: 5000,
      kindSpec: { elasticPolicy: { maxReplicas: 4, standalone: true, nProcPerNode: 2 } },
    },
    env: {
      "j-worker-1": {
        ...python,
        MASTER_PORT: "5000",
        PET_MASTER_PORT: "5000",
        MASTER_ADDR: "j-master-0",
        PET_MASTER_ADDR: "j-master-0",
        WORLD_SIZE: "3",
        RANK: "2",
        PET_NODE_RANK: "2",
        PET_NPROC_PER_NODE: "2",
        PET_RDZV_ENDPOINT: "j-worker-0:5000",
        PET_RDZV_BACKEND: "c10d",
        PET_NNODES: "4:4",
        PET_STANDALONE: "",
      },
    },
  },
  "under an empty elastic policy the number of workers is both bounds": {
    shape: { kind: "PyTorchJob", replicas: { Worker: 2 }, kindSpec: { elasticPolicy: {} } },
    env: {
      "j-worker-0": {
        ...python,
        PET_NPROC_PER_NODE: "auto",
        PET_RDZV_ENDPOINT: "j-worker-0:23456",
        PET_RDZV_BACKEND: "c10d",
        PET_NNODES: "2:2",
      },
    },
  },
  "XGBoost and LightGBM: the master is rank 0, workers follow, and each knows all workers": {
    shape: { kind: "XGBoostJob", replicas: { Master: 1, Worker: 2 }, port: 9991 },
    env: Object.fromEntries(
      [
        ["j-master-0", "0"],
        ["j-worker-0", "1"],
        ["j-worker-1", "2"],
      ].map(([name, rank]) => [
        name,
        {
          ...python,
          MASTER_ADDR: "j-master-0",
          MASTER_PORT: "9991",
          WORLD_SIZE: "3",
          RANK: rank ?? "",
          WORKER_PORT: "9991",
          WORKER_ADDRS: "j-worker-0,j-worker-1",
        },
      ]),
    ),
  },
  "PaddlePaddle in collective mode: all workers meet at worker 0": {
    shape: { kind: "PaddleJob", replicas: { Worker: 2 }, port: 37777 },
    env: {
      "j-worker-0": {
        ...python,
        PADDLE_JOB_ID: "j",
        PADDLE_NNODES: "2",
        POD_IP_DUMMY: podIp,
        PADDLE_MASTER: "$(POD_IP_DUMMY):37777",
      },
      "j-worker-1": { ...python, PADDLE_JOB_ID: "j", PADDLE_NNODES: "2", PADDLE_MASTER: "j-worker-0:37777" },
    },
  },
  "PaddlePaddle with parameter servers: the second one joins the first": {
    shape: { kind: "PaddleJob", replicas: { Master: 2, Worker: 1 } },
    env: {
      "j-master-1": {
        ...python,
        PADDLE_JOB_ID: "j",
        PADDLE_NNODES: "3",
        PADDLE_MASTER: "j-master-0:36543",
        PADDLE_SERVER_NUM: "1",
      },
      "j-worker-0": {
        ...python,
        PADDLE_JOB_ID: "j",
        PADDLE_NNODES: "3",
        PADDLE_MASTER: "j-master-0:36543",
        PADDLE_TRAINER_NUM: "1",
      },
    },
  },
  "JAX: processes are workers by index": {
    shape: { kind: "JAXJob", replicas: { Worker: 2 } },
    env: {
      "j-worker-1": {
        ...python,
        COORDINATOR_ADDRESS: "j-worker-0",
        COORDINATOR_PORT: "6666",
        NUM_PROCESSES: "2",
        PROCESS_ID: "1",
      },
    },
  },
  "Caffe2: shards are workers by index, and each admission has its own run id": {
    shape: { kind: "Caffe2Job", replicas: { Worker: 2 } },
    env: {
      "j-worker-1": {
        SHARD_ID: "1",
        NUM_SHARDS: "2",
        RUN_ID: "j-1",
        CAFFE2_CONFIG:
          '{"cluster":{"worker":["j-worker-0:2222","j-worker-1:2222"]},"task":{"type":"worker","index":1}}',
      },
    },
  },
};
for (const [name, { shape, env }] of Object.entries(cases)) {
  test(name, () => {
    const pods = podsOf(shape);
    for (const [pod, wanted] of Object.entries(env)) {
      assert.deepEqual(envOf(pods[pod], 0), wanted);
      assert.deepEqual(envOf(pods[pod], 1), wanted, "every container of the pod has it");
    }
  });
}

test("a dynamic worker of a TFJob knows itself and the parameter servers; a parameter server knows itself", () => {
  const pods = podsOf({
    kind: "TFJob",
    replicas: { Chief: 1, PS: 1, Worker: 2 },
    kindSpec: { enableDynamicWorker: true },
  });
  const cluster = (name: string) => JSON.parse(String(envOf(pods[name], 0)["TF_CONFIG"])).cluster;
  assert.deepEqual(cluster("j-worker-1"), { worker: { 1: "j-worker-1.ns.svc:2222" }, ps: ["j-ps-0.ns.svc:2222"] });
  assert.deepEqual(cluster("j-ps-0"), { worker: {}, ps: ["j-ps-0.ns.svc:2222"] });
  assert.deepEqual(cluster("j-chief-0"), { worker: {}, ps: [] });
  assert.deepEqual(envOf(pods["j-worker-1"], 1), {}, "only the default container has it");
});

test("masters carry the job role; without masters, worker 0 does", () => {
  const masters = (kind: string, replicas: Record<string, number>) =>
    Object.entries(podsOf({ kind, replicas }))
      .filter(([, pod]) => objectAt(objectAt(pod, "metadata"), "labels")["training.kubeflow.org/job-role"] === "master")
      .map(([name]) => name);
  assert.deepEqual(masters("PaddleJob", { Master: 2, Worker: 1 }), ["j-master-0", "j-master-1"]);
  assert.deepEqual(masters("PaddleJob", { Worker: 2 }), ["j-worker-0"]);
  assert.deepEqual(masters("JAXJob", { Worker: 2 }), ["j-worker-0"]);
  assert.deepEqual(masters("MPIJob", { Launcher: 1, Worker: 1 }), ["j-launcher"]);
});

test("no container of any kind has a variable twice, and PYTHONUNBUFFERED is the template's", () => {
  for (const kind of OWN_KINDS.all) {
    const replicas = Object.fromEntries((kind.roles ?? [{ name: "Worker" }]).map(({ name }) => [name, 1]));
    const known = containersOf(podsOf({ kind: kind.name, replicas })).flatMap(namesOf);
    const env = [...new Set([...known, "PYTHONUNBUFFERED"])].map((name) => ({ name, value: "mine" }));
    for (const container of containersOf(podsOf({ kind: kind.name, replicas, env }))) {
      const names = namesOf(container);
      assert.deepEqual(names, [...new Set(names)], kind.name);
      const python = arrayAt(container, "env").find((one) => stringAt(one, "name") === "PYTHONUNBUFFERED");
      assert.equal(stringAt(python, "value"), "mine");
    }
  }
});

function containersOf(pods: Readonly<Record<string, JsonObject>>): readonly (Json | undefined)[] {
  return Object.values(pods).flatMap((pod) => arrayAt(objectAt(pod, "spec"), "containers"));
}

function namesOf(container: Json | undefined): readonly string[] {
  return arrayAt(container, "env").map((one) => stringAt(one, "name") ?? "");
}
