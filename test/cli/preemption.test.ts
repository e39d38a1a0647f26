import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { after, before, test } from "node:test";
import type { SimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import { connect, type GangwayClient } from "../../src/cli/rpc/client.ts";
import type { RunningService } from "../../src/cli/service/up.ts";
import { startEmbedded } from "../../src/compose/embedded.ts";
import { readConfig } from "../../src/config/config.ts";
import { JobPhase } from "../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { gpuNodes, startSim, until } from "../cluster/harness.ts";
import { newDataFolder } from "../support/data-folder.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { run } from "./harness.ts";

const data = newDataFolder("gangway-preemption-");
const FLAVOR = "gpu/h100=nvidia.com/gpu:nvidia.com/gpu.product=h100";
const stop = new AbortController();
let service: RunningService;
let client: GangwayClient;
let sims: readonly SimCluster[];

/** Two clusters of four GPUs each, which count in one pool. */
before(async () => {
  sims = [await startSim(gpuNodes(1, 4), 21), await startSim(gpuNodes(1, 4), 22)];
  const config = readConfig(data, {
    GANGWAY_CREDENTIALS_KEY: randomBytes(32).toString("base64"),
    GANGWAY_LOG_LEVEL: "silent",
  });
  const options = { exit: false, examples: false, listen: "127.0.0.1:0", data, insecure: false, simulate: false };
  service = await startEmbedded(options, config, OWN_KINDS);
  client = connect(service.address, stop.signal);
  for (const [at, name] of ["east", "west"].entries()) {
    await gangway(`cluster add ${name} --kubeconfig k.yaml --flavor ${FLAVOR}`, {
      "k.yaml": sims[at]?.kubeconfig() ?? "",
    });
  }
});

after(async () => {
  stop.abort();
  client.close();
  await service.close();
  for (const sim of sims) await sim.close();
  rmSync(data, { recursive: true, force: true });
});

async function gangway(line: string, files: Readonly<Record<string, string>> = {}): Promise<string> {
  const { exitCode, stdout, stderr } = await run(line.split(" "), { address: service.address, files });
  assert.equal(exitCode, 0, `${line}: ${stdout}${stderr}`);
  return stdout;
}

type PodScript = { readonly gpus: number; readonly run: string; readonly exitCode?: string };

/** A master with most of the GPUs, and a worker. */
function manifest(name: string, of: { queue: string; cluster: string; master: PodScript; worker: PodScript }): string {
  const role = ({ gpus, run: lasts, exitCode = "0" }: PodScript) => `{
      replicas: 1, restartPolicy: OnFailure, template: {
        metadata: {annotations: {sim.gangway.dev/run: ${lasts}, sim.gangway.dev/exit-code: "${exitCode}",
          sim.gangway.dev/pull: 1ms, sim.gangway.dev/start: 1ms, sim.gangway.dev/termination-grace: 1ms}},
        spec: {containers: [{name: pytorch, image: train, resources: {limits: {nvidia.com/gpu: ${gpus}}}}]}}}`;
  return `apiVersion: gangway.dev/v1
kind: PyTorchJob
metadata: {name: ${name}}
spec:
  runPolicy: {schedulingPolicy: {queue: ${of.queue}}}
  placement: {clusters: [${of.cluster}]}
  replicaSpecs:
    Master: ${role(of.master)}
    Worker: ${role(of.worker)}
`;
}

async function status(name: string) {
  const { job } = await client.call(JobService.method.getJob, { name });
  return job?.status ?? assert.fail(`job ${name} is gone`);
}

const reaches = (name: string, phase: JobPhase) => {
  return until(async () => (await status(name)).phase === phase, `${name} is in phase ${phase}`);
};

test("a team takes back its quota from a gang in another cluster, which comes back with its attempts", async () => {
  await gangway("queue create org --quota gpu/h100=nvidia.com/gpu:0");
  await gangway("queue create owner --parent org --quota gpu/h100=nvidia.com/gpu:4 --reclaim-within-tree any");
  await gangway("queue create borrower --parent org --quota gpu/h100=nvidia.com/gpu:0");
  const borrows = {
    queue: "borrower",
    cluster: "west",
    master: { gpus: 3, run: "forever" },
    // Restarts are counted while the pod runs, so a busy machine must see it run again.
    worker: { gpus: 1, run: "5s", exitCode: "1,0" },
  };
  await gangway("submit borrows.yaml", { "borrows.yaml": manifest("borrows", borrows) });
  await until(async () => (await status("borrows")).attempts?.user === 1, "its worker has failed once");
  await reaches("borrows", JobPhase.RUNNING);

  const owns = { gpus: 2, run: "2s" };
  const owner = { queue: "owner", cluster: "east", master: owns, worker: owns };
  await gangway("submit owns.yaml", { "owns.yaml": manifest("owns", owner) });
  await until(async () => (await status("borrows")).attempts?.preemptions === 1, "it is preempted");
  const preempted = (await status("borrows")).conditions.find(({ type }) => type === "Preempted");
  assert.equal(preempted?.reason, "InCohortReclamation");
  assert.match(preempted.message, /^Admission 1 to cluster west is undone: it was preempted for default\/owns,/);
  await reaches("owns", JobPhase.SUCCEEDED);
  assert.equal((await status("owns")).admission?.cluster, "east");

  await reaches("borrows", JobPhase.RUNNING);
  const back = await status("borrows");
  assert.deepEqual([back.admission?.number, back.admission?.cluster], [2, "west"]);
  assert.ok((back.attempts?.user ?? 0) >= 1, "its attempts are kept");
  assert.equal(back.attempts?.preemptions, 1);
  const now = back.conditions.find(({ type }) => type === "Preempted");
  assert.deepEqual([now?.status, now?.reason], ["False", "Admitted"]);
  assert.match(await gangway("events owns"), /Preempting/);
  assert.match(await gangway("events borrows"), /PyTorchJobPreempted/);
});
