/** Simulated clusters beside real ones, on the embedded service. A simulator that is registered counts as real. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { promisify } from "node:util";
import type { SimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import type { RunningService } from "../../src/cli/service/up.ts";
import { startEmbedded } from "../../src/compose/embedded.ts";
import { readConfig } from "../../src/config/config.ts";
import { gpuNodes, startSim, until } from "../cluster/harness.ts";
import { newDataFolder } from "../support/data-folder.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { type Ran, run } from "./harness.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const ONLY = "only simulated clusters may take the job, and no program runs there: a100-west, h100-east";

function manifest(name: string, { cluster = "", runs = "0s", timeoutSeconds = 600 } = {}): string {
  return `apiVersion: gangway.dev/v1
kind: Job
metadata: {name: ${name}}
spec:
  placement: {clusters: [${cluster}]}
  runPolicy: {cleanPodPolicy: None, schedulingPolicy: {scheduleTimeoutSeconds: ${timeoutSeconds}}}
  replicaSpecs:
    Worker:
      replicas: 1
      template:
        metadata: {annotations: {sim.gangway.dev/run: ${runs}}}
        spec:
          containers: [{name: main, image: example.com/train, resources: {limits: {nvidia.com/gpu: 1}}}]
`;
}

suite("simulated clusters, until a real one is registered", () => {
  const data = newDataFolder("gangway-simulated-");
  const variables = { GANGWAY_CREDENTIALS_KEY: randomBytes(32).toString("base64"), GANGWAY_DATA: data };
  const files: Record<string, string> = {
    "first.yaml": manifest("first"),
    "stays.yaml": manifest("stays", { cluster: "h100-east", runs: "forever" }),
    "second.yaml": manifest("second"),
    "asks.yaml": manifest("asks", { cluster: "h100-east" }),
    "third.yaml": manifest("third"),
    "moves.yaml": manifest("moves", { cluster: "a100-west, real", runs: "forever", timeoutSeconds: 3 }),
  };
  let real: SimCluster;
  let service: RunningService;

  const start = async (simulate = false) => {
    const options = { exit: false, examples: false, listen: "127.0.0.1:0", data: null, insecure: false, simulate };
    service = await startEmbedded(options, readConfig(data, variables), OWN_KINDS);
  };
  const restart = async (simulate = false) => {
    await service.close();
    await start(simulate);
  };
  const gangway = (line: string): Promise<Ran> => run(line.split(" "), { address: service.address, files });
  const ok = async (line: string): Promise<Ran> => {
    const ran = await gangway(line);
    assert.equal(ran.exitCode, 0, `gangway ${line}: ${ran.stderr}${ran.stdout}`);
    return ran;
  };
  const stdout = async (line: string) => (await ok(line)).stdout;
  const clusters = async () => (await stdout("cluster list -o name")).trim().split("\n").sort();
  const addReal = () =>
    stdout("cluster add real --kubeconfig real.yaml --flavor gpu/h100=nvidia.com/gpu:nvidia.com/gpu.product=h100");

  before(async () => {
    real = await startSim(gpuNodes(2));
    files["real.yaml"] = real.kubeconfig();
    await start();
  });
  after(async () => {
    await service.close();
    await real.close();
    rmSync(data, { recursive: true, force: true });
  });

  test("alone, they take jobs: every answer says that they are simulated", async () => {
    assert.match(service.inUse, /clusters: a100-west, h100-east \(simulated\)$/);
    const { stderr } = await ok("submit first.yaml --strict --wait");
    assert.equal(stderr, `warning: first.yaml, document 1: spec.placement: ${ONLY}\n`);
    const { stdout: dry } = await ok("submit first.yaml --dry-run -o json");
    assert.ok(dry.includes(ONLY));
    assert.match(await stdout("list"), /first +Job .* SUCCEEDED +(h100-east|a100-west) \(simulated\) /);
    const explained = await stdout("explain first");
    assert.match(explained, /^default\/first succeeded on simulated cluster (h100-east|a100-west)/);
    assert.match(explained, /^Admission: 1 on simulated (h100-east|a100-west) \(1 Worker\)/m);
    assert.match(await stdout("get first -o jsonpath={.status.admission.simulated}"), /^true/);
    assert.match(await stdout("events first"), /is admitted to simulated cluster (h100-east|a100-west) under gpu/);
    assert.match(await stdout("cluster list"), /^a100-west +ready, simulated .*\nh100-east +ready, simulated /m);
  });

  test("from the registration of a real cluster on, they take no gangs; one without gangs goes away", async () => {
    await ok("submit stays.yaml");
    await until(async () => (await stdout("explain stays")).startsWith("default/stays runs on simulated"), "it runs");
    assert.match(
      await addReal(),
      /^cluster\/real registered\nok: .*\nsimulated clusters take no more gangs, and .*: a100-west, h100-east\n$/,
    );
    await until(async () => !(await clusters()).includes("cluster/a100-west"), "the empty one is gone");
    assert.match(await stdout("cluster list"), /^h100-east +retired, simulated .*\nreal +(ready|unreachable) /m);
    const { stderr } = await ok("submit second.yaml --wait");
    assert.equal(stderr, "", "nothing is simulated any more");
    assert.match(await stdout("list"), /second +Job .* SUCCEEDED +real {2}/);
    assert.match(await stdout("explain second"), /^default\/second succeeded on cluster real/);
    assert.match(await stdout("explain stays"), /runs on simulated cluster h100-east/, "its gang continues");
  });

  test("a job that asks for a retired cluster is told why it waits", async () => {
    await ok("submit asks.yaml");
    const why = /h100-east \(simulated\): it is simulated, and takes no gangs since a real cluster is registered/;
    await until(async () => why.test(await stdout("explain asks")), "it is told");
    assert.match(await stdout("explain asks"), /^h100-east \(simulated\) +- +Retired /m);
    await ok("delete asks --wait");
  });

  test("it goes away once its last gang has ended, and what ran there is still shown as simulated", async () => {
    await ok("cancel stays");
    await until(async () => (await clusters()).join() === "cluster/real", "only the real one is left");
    assert.equal((await gangway("cluster get h100-east")).exitCode, 3);
    assert.match(await stdout("list"), /stays .* CANCELLED +h100-east \(simulated\) /);
  });

  test("after a restart none is simulated, and the examples do not run", async () => {
    await restart();
    assert.match(service.inUse, /clusters: real$/);
    assert.deepEqual(await clusters(), ["cluster/real"]);
    await service.close();
    const env = { ...process.env, ...variables, DATABASE_URL: "", REDIS_URL: "" };
    const up = promisify(execFile)(process.execPath, [MAIN, "up", "--exit", "--listen", "127.0.0.1:0"], { env });
    await assert.rejects(up, ({ code, stderr }: { code: number; stderr: string }) => {
      assert.equal(code, 3);
      assert.match(stderr, /error: the examples run only while no real cluster is registered: there is real\n$/);
      return true;
    });
    await start();
    assert.equal((await stdout("list -o name")).includes("llama"), false);
  });

  test("with --simulate they take gangs beside the real one", async () => {
    await restart(true);
    assert.match(service.inUse, /clusters: a100-west, h100-east \(simulated\); real$/);
    const { stderr } = await ok("submit third.yaml --wait");
    const message = "simulated clusters may take the job, and no program runs there: a100-west, h100-east";
    assert.equal(stderr, `warning: third.yaml, document 1: spec.placement: ${message}\n`);
    assert.match(await stdout("cluster list"), /a100-west +ready, simulated/);
  });

  test("gangs that ran on simulated clusters wait again after a restart without it", async () => {
    await ok("cluster cordon real");
    await ok("submit moves.yaml");
    await until(async () => / runs on simulated cluster a100-west/.test(await stdout("explain moves")), "it runs");
    await ok("cluster uncordon real");
    await restart();
    assert.deepEqual(await clusters(), ["cluster/real"]);
    const undone = /Admission 1 to .*a100-west is undone: the cluster was given up/;
    await until(async () => undone.test(await stdout("events moves")), "it waits again, at once");
    await ok("delete moves --wait");
  });

  test("one that is removed stays away over restarts; others come back without a real one", async () => {
    await restart(true);
    assert.deepEqual(await clusters(), ["cluster/a100-west", "cluster/h100-east", "cluster/real"]);
    await ok("cluster remove h100-east");
    assert.deepEqual(await clusters(), ["cluster/a100-west", "cluster/real"]);
    await restart(true);
    assert.deepEqual(await clusters(), ["cluster/a100-west", "cluster/real"]);
    await ok("delete --all --yes --wait");
    await until(async () => (await gangway("cluster remove real")).exitCode === 0, "nothing of ours is left there");
    await restart();
    assert.deepEqual(await clusters(), ["cluster/a100-west"]);
  });
});
