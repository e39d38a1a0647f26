import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, suite, test } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { Reflector } from "../../src/adapters/cluster/reflector.ts";
import { isDraining } from "../../src/core/job/job.ts";
import { reasonFor } from "../../src/core/job/reason-for.ts";
import type { SentJob } from "../../src/core/job/request/sent.ts";
import { isTerminal } from "../../src/core/job/status.ts";
import { fromManifest } from "../../src/core/kinds/manifest/from-manifest.ts";
import { type PodView, podView } from "../../src/core/pods/read/pod-view.ts";
import { arrayAt, type JsonObject } from "../../src/runtime/json.ts";
import { clock, startProxy } from "../cluster/harness.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { shippedRuntimeOf } from "../support/shipped-runtimes.ts";
import { controlPlaneBuilt } from "./build.ts";
import type { ControlPlane } from "./control-plane.ts";
import { startControlPlane } from "./control-plane.ts";
import { GPU, type Service, startService } from "./service.ts";
import { FAILS_FIRST, TRAINING_STAGES } from "./stages.ts";
import { addNodes } from "./subject.ts";

const PRODUCT = "nvidia.com/gpu.product";
const GANGS = 12;
const END_MS_MAX = 300_000;

type Place = { readonly name: string; readonly product: string; readonly nodes: number; readonly gpus: number };

const EAST: Place = { name: "east", product: "h100", nodes: 2, gpus: 8 };
const WEST: Place = { name: "west", product: "a100", nodes: 3, gpus: 4 };

async function startPlane({ product, nodes, gpus }: Place): Promise<ControlPlane> {
  const plane = await startControlPlane({ stages: TRAINING_STAGES });
  const allocatable = { cpu: "64", memory: "256Gi", pods: "110", [GPU]: String(gpus) };
  const names = Array.from({ length: nodes }, (_, index) => `${product}-${index}`);
  await addNodes(
    plane,
    names.map((name) => ({ name, labels: { [PRODUCT]: product }, allocatable })),
  );
  return plane;
}

function manifest(file: string): SentJob {
  return sentOf(parse(readFileSync(new URL(`manifests/${file}.yaml`, import.meta.url), "utf8")));
}

const KINDS = new URL("../../examples/kinds/", import.meta.url);

/** The examples of every kind. */
function examples(): readonly SentJob[] {
  const texts = readdirSync(KINDS).map((file) => readFileSync(new URL(file, KINDS), "utf8"));
  return texts.flatMap((text) => parseAllDocuments(text).map((document) => sentOf(document.toJS())));
}

function sentOf(document: JsonObject): SentJob {
  const read = fromManifest(document, OWN_KINDS, { runtimeOf: shippedRuntimeOf });
  assert.ok(read.kind === "read", JSON.stringify(read));
  const { metadata, spec } = read.manifest;
  return { namespace: "training", name: metadata.name ?? "", generateName: "", labels: {}, annotations: {}, spec };
}

/** A gang of GPU workers; every third has a worker that fails once. */
function gangOf(index: number): SentJob {
  const annotations = index % 3 === 0 ? { [FAILS_FIRST]: "yes" } : {};
  const container = { name: "main", image: "registry.example.com/train:1", resources: { limits: { [GPU]: "2" } } };
  const template = { metadata: { annotations }, spec: { containers: [container] } };
  return {
    namespace: "training",
    name: `gang-${index}`,
    generateName: "",
    labels: {},
    annotations: {},
    spec: {
      kind: "Job",
      runPolicy: { cleanPodPolicy: "All" },
      replicaSpecs: { Worker: { replicas: 1 + (index % 4), template } },
    },
  };
}

/** Records every pod of an installation that a control plane ever shows. */
function witness(plane: ControlPlane, installation: string) {
  const uids = new Map<string, Set<string>>();
  const reflector = new Reflector<PodView>({
    client: plane.client,
    path: "/api/v1/pods",
    labelSelector: `gangway.dev/installation=${installation}`,
    clock,
    random: Math.random,
    silenceMsMax: 150_000,
    keep: podView,
    jobOf: () => null,
    onChange: (_key, _before, pod) => {
      if (pod === undefined) return;
      const replica = `${pod.jobUid} admission ${pod.admission} ${pod.role}/${pod.index} attempt ${pod.attempt}`;
      uids.set(replica, (uids.get(replica) ?? new Set()).add(pod.uid));
    },
    onHealth: () => undefined,
    onError: () => undefined,
  });
  reflector.start();
  return { uids, close: () => reflector.close() };
}

async function whenAllEnded(service: Service, count: number): Promise<void> {
  const endMs = clock.monotonicMs() + END_MS_MAX;
  for (;;) {
    const jobs = await service.jobs();
    if (jobs.length === count && jobs.every((job) => isTerminal(job.status) && !isDraining(job))) return;
    const open = jobs.filter((job) => !isTerminal(job.status) || isDraining(job));
    const said = open.map((job) => `${job.name} ${job.status.phase}`).join(", ");
    assert.ok(clock.monotonicMs() < endMs, `not ended: ${said}; ${service.errors.map(String).join(", ")}`);
    await clock.sleep(100);
  }
}

/** Uids of the objects of our installation in a cluster. */
async function left(plane: ControlPlane, installation: string): Promise<number> {
  const query = { labelSelector: `gangway.dev/installation=${installation}` };
  const lists = ["pods", "services", "configmaps"].map((resource) =>
    plane.client.request({ method: "GET", path: `/api/v1/${resource}`, query }),
  );
  const found = await Promise.all(lists);
  return found.reduce((sum, list) => {
    assert.equal(list.kind, "ok");
    return sum + arrayAt(list.kind === "ok" ? list.object : {}, "items").length;
  }, 0);
}

suite("the main job on two real API servers", { skip: !controlPlaneBuilt() }, () => {
  let east: ControlPlane;
  let west: ControlPlane;
  let proxy: Awaited<ReturnType<typeof startProxy>>;
  let service: Service;
  let witnesses: readonly ReturnType<typeof witness>[];

  before(async () => {
    [east, west] = await Promise.all([startPlane(EAST), startPlane(WEST)]);
    proxy = await startProxy(east.url, () => "pass", { certificate: east.certificate, token: "admin" });
    const flavor = ({ product }: Place) => [
      { name: `gpu/${product}`, resource: GPU, nodeLabels: { [PRODUCT]: product } },
    ];
    service = await startService(
      [
        { name: EAST.name, kubeconfig: proxy.kubeconfig, flavors: flavor(EAST) },
        { name: WEST.name, kubeconfig: west.kubeconfig(), flavors: flavor(WEST) },
      ],
      [{ name: "default", quotas: { "gpu/h100": 12, "gpu/a100": 8 } }],
    );
    witnesses = [witness(east, service.installation), witness(west, service.installation)];
  });

  after(async () => {
    for (const one of witnesses) await one.close();
    await service.close();
    await proxy.close();
    await Promise.all([east.stop(), west.stop()]);
  });

  test("jobs of every kind and gangs end although watches are cut and an API server is restarted", async () => {
    const jobs = [
      ...["pytorch-simple", "tensorflow-simple", "pytorch-nccl"].map(manifest),
      ...examples(),
      ...Array.from({ length: GANGS }, (_, index) => gangOf(index)),
    ];
    for (const job of jobs.slice(0, 8)) await service.submit(job);
    for (let cut = 0; cut < 5; cut += 1) {
      await clock.sleep(300);
      proxy.cutAll();
    }
    await west.stopApiServer();
    for (const job of jobs.slice(8)) await service.submit(job);
    proxy.cutAll();
    await west.startApiServer();
    await whenAllEnded(service, jobs.length);

    for (const job of await service.jobs()) {
      assert.equal(job.status.phase, "SUCCEEDED", `${job.name}: ${JSON.stringify(job.status)}`);
      const reasons = (await service.eventsOf(job)).map(({ reason }) => reason);
      const succeeded = reasonFor(job.spec.kind, "Succeeded");
      assert.equal(reasons.filter((reason) => reason === succeeded).length, 1, reasons.join());
    }
    assert.deepEqual(service.errors, []);
    for (const queue of Object.values(await service.used())) {
      assert.deepEqual(
        Object.values(queue).filter((used) => used !== 0),
        [],
        "all tokens are free",
      );
    }
  });

  test("no replica was started twice in one attempt, and each failure was counted once", async () => {
    const seen = witnesses.flatMap(({ uids }) => [...uids]);
    assert.ok(seen.length >= GANGS, "pods were seen");
    assert.deepEqual(
      seen.filter(([, uids]) => uids.size > 1).map(([replica]) => replica),
      [],
    );
    for (const job of await service.jobs()) {
      const fails = job.name.startsWith("gang-") && Number(job.name.slice("gang-".length)) % 3 === 0;
      assert.equal(job.status.attempts.user + job.status.attempts.system > 0, fails, job.name);
    }
  });

  test("nothing is left in either cluster", async () => {
    const endMs = clock.monotonicMs() + 30_000;
    const remaining = async () => (await left(east, service.installation)) + (await left(west, service.installation));
    while ((await remaining()) > 0) {
      assert.ok(clock.monotonicMs() < endMs, "objects are left");
      await clock.sleep(200);
    }
    assert.equal(await remaining(), 0);
  });
});
