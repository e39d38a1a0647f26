import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { after, before, test } from "node:test";
import type { SimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import type { RunningService } from "../../src/cli/service/up.ts";
import { startEmbedded } from "../../src/compose/embedded.ts";
import { readConfig } from "../../src/config/config.ts";
import { gpuNodes, startSim, until } from "../cluster/harness.ts";
import { newDataFolder } from "../support/data-folder.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { type Ran, run, type World } from "./harness.ts";

const data = newDataFolder("gangway-flavor-warnings-");
let service: RunningService;
let sim: SimCluster;

before(async () => {
  sim = await startSim(gpuNodes(2), 21);
  const config = readConfig(data, {
    GANGWAY_CREDENTIALS_KEY: randomBytes(32).toString("base64"),
    GANGWAY_LOG_LEVEL: "silent",
  });
  const options = { exit: false, examples: false, listen: "127.0.0.1:0", data, insecure: false, simulate: true };
  service = await startEmbedded(options, config, OWN_KINDS);
});

after(async () => {
  await service.close();
  await sim.close();
  rmSync(data, { recursive: true, force: true });
});

const PRODUCT = "nvidia.com/gpu.product";
const job = (resource: string) => `apiVersion: gangway.dev/v1
kind: Job
metadata: {name: typo}
spec:
  replicaSpecs:
    Worker: {template: {spec: {containers: [{name: main, image: i, resources: {limits: {${resource}: 8}}}]}}}
`;
const gangway = (line: string, world: World = {}): Promise<Ran> =>
  run(line.split(" "), {
    address: service.address,
    files: {
      "k.yaml": sim.kubeconfig(),
      "typo.yaml": job("nvidia.co/gpu"),
      "right.yaml": job("nvidia.com/gpu"),
    },
    ...world,
  });

const observed = (flavors: string) =>
  until(async () => (await gangway("cluster list")).stdout.includes(flavors), `the list shows ${flavors}`);

test("a flavor that no node belongs to is a warning wherever its cluster is shown or changed", async () => {
  const flavors =
    `--flavor gpu/b=nvidia.com/gpu:${PRODUCT}=B200 ` +
    "--flavor gpu/typo=nvidia.co/gpu --flavor gpu/good=nvidia.com/gpu";
  const label = `flavor gpu/b: no node carries label ${PRODUCT}=B200; there is ${PRODUCT}=h100`;
  const resource = "flavor gpu/typo: no node has nvidia.co/gpu; did you mean nvidia.com/gpu?";
  const found = `warning: FlavorWithoutNodes: ${label}\nwarning: FlavorWithoutNodes: ${resource}\n`;
  const tried = await gangway(`cluster add extra --kubeconfig k.yaml --dry-run ${flavors}`);
  assert.deepEqual([tried.exitCode, tried.stdout.split("\n").slice(2).join("\n")], [0, found]);
  const added = await gangway(`cluster add extra --kubeconfig k.yaml ${flavors}`);
  assert.deepEqual([added.exitCode, added.stdout.split("\n").slice(2).join("\n")], [0, found]);
  assert.match(added.stdout, /^cluster\/extra registered\n/);
  assert.ok((await gangway("cluster check extra")).stdout.endsWith(found));

  await observed("gpu/b no nodes, gpu/typo 0/0, gpu/good 16/16");
  const listed = await gangway("cluster list", { isTty: true });
  assert.deepEqual(listed.stderr.split("\n"), [
    `warning: flavor gpu/b of cluster extra: ${label.slice("flavor gpu/b: ".length)}`,
    `warning: flavor gpu/typo of cluster extra: ${resource.slice("flavor gpu/typo: ".length)}`,
    "",
  ]);
  assert.equal((await gangway("cluster list -o name")).exitCode, 0);

  const updated = await gangway(`cluster update extra --flavor gpu/b=nvidia.com/gpu:${PRODUCT}=b200`);
  assert.deepEqual(
    [updated.stdout, updated.stderr],
    [
      "cluster/extra updated\n",
      `warning: flavor gpu/b of cluster extra: no node carries label ${PRODUCT}=b200; there is ${PRODUCT}=h100\n`,
    ],
  );
  const repaired = await gangway(`cluster update extra --flavor gpu/b=nvidia.com/gpu:${PRODUCT}=h100`);
  assert.deepEqual([repaired.stdout, repaired.stderr], ["cluster/extra updated\n", ""]);
  const json = JSON.parse((await gangway("cluster get extra -o json")).stdout);
  const { nodes, allocatable, free } = json.flavors[0];
  assert.deepEqual([nodes, allocatable, free], [2, "16", "16"]);
  assert.equal((await gangway("cluster remove extra")).exitCode, 0);
});

test("a quota of a flavor that no cluster has with its resource is a warning, and is kept", async () => {
  const missing = "warning: no cluster in the list has flavor";
  const created = await gangway(
    "queue create typed --quota gpu/h10=nvidia.com/gpu:8 --quota gpu/h100=nvidia.com/gpu:8",
  );
  assert.deepEqual(
    [created.exitCode, created.stdout, created.stderr],
    [0, "queue/typed created\n", `${missing} gpu/h10 of nvidia.com/gpu yet\n`],
  );
  const updated = await gangway("queue update typed --quota gpu/h100=nvidia.com/gqu:8");
  assert.deepEqual(
    [updated.exitCode, updated.stderr],
    [0, `${missing} gpu/h100 of nvidia.com/gqu yet; it is there of nvidia.com/gpu\n`],
  );
  assert.equal((await gangway("queue update typed --strategy strict")).stderr, "");
  assert.match((await gangway("queue get typed")).stdout, /gpu\/h100 0\/8/);
  assert.equal((await gangway("queue delete typed")).exitCode, 0);
});

test("a queue that uses a flavor without a quota for it is a warning", async () => {
  const quota = (flavor: string) => gangway(`queue update used --quota ${flavor}=nvidia.com/gpu:8`);
  assert.equal((await gangway("queue create used --quota gpu/h100=nvidia.com/gpu:8")).exitCode, 0);
  assert.equal((await gangway("alloc gpu/h100 held --amount 3 --queue used")).exitCode, 0);
  assert.deepEqual((await quota("gpu/a100")).stderr.split("\n"), [
    "warning: queue used uses 3 of gpu/h100 without a quota, so no queue above counts that or takes it back; " +
      "a quota of 0 would let them",
    "",
  ]);
  assert.equal((await quota("gpu/h100")).stderr, "");
  assert.equal((await gangway("release gpu/h100 held")).exitCode, 0);
  assert.equal((await quota("gpu/a100")).stderr, "");
  assert.equal((await gangway("queue delete used")).exitCode, 0);
});

test("a job that requests a resource of no node is submitted with a warning", async () => {
  await observed("gpu/h100 ");
  const warning = "no node of any cluster has nvidia.co/gpu; did you mean nvidia.com/gpu?";
  const path = 'spec.replicaSpecs.Worker.template.spec.containers[0].resources.limits["nvidia.co/gpu"]';
  const simulated = "only simulated clusters may take the job, and no program runs there: a100-west, h100-east";
  const always = (file: string) => `warning: ${file}, document 1: spec.placement: ${simulated}\n`;
  const ran = await gangway("submit typo.yaml --dry-run");
  const warnings = `warning: typo.yaml, document 1: ${path}: ${warning}\n${always("typo.yaml")}`;
  // The first one says that it can never run, unless the fleet is not known in time.
  assert.deepEqual(
    [ran.exitCode, ran.stderr.replace(/^.*: spec: can never run as things are: .*\n/, "")],
    [0, warnings],
  );
  assert.equal((await gangway("submit right.yaml --dry-run")).stderr, always("right.yaml"));
  const strict = await gangway("submit typo.yaml --dry-run --strict");
  assert.equal(strict.exitCode, 3);
  assert.ok(strict.stderr.includes(warning));
  const judged = await gangway("can-run typo.yaml", { isTty: true });
  assert.equal(judged.exitCode, 1);
  assert.ok(judged.stderr.includes(warning));
  assert.match(judged.stdout, /nvidia\.co\/gpu \(needs 8,\s+has none\)/);
  assert.equal((await gangway("submit typo.yaml")).exitCode, 0);
  const why = () => gangway("explain typo");
  await until(async () => (await why()).stdout.includes("TooLarge"), "the planner has judged it");
  assert.match((await why()).stdout, /can ever take a Worker pod: .* lack nvidia\.co\/gpu \(needs 8, has none\)/);
});
