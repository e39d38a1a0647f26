/** A database that was restored from a back-up: what runs and is not in the back-up waits for an operator. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { RunningService } from "../../src/cli/service/up.ts";
import { startEmbedded } from "../../src/compose/embedded.ts";
import { markRestoredFolder } from "../../src/compose/restored-folder.ts";
import { readConfig } from "../../src/config/config.ts";
import { LABEL } from "../../src/core/job/labels.ts";
import { arrayAt, objectAt, stringAt, stringMapAt } from "../../src/runtime/json.ts";
import { clientOf, gpuNodes, startSim, until } from "../cluster/harness.ts";
import { newDataFolder } from "../support/data-folder.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { run } from "./harness.ts";
import { longJob } from "./long-job.ts";

const FLAVOR = "gpu/h100=nvidia.com/gpu:nvidia.com/gpu.product=h100";
const data = newDataFolder("gangway-adopt-");
const backup = mkdtempSync(join(tmpdir(), "gangway-adopt-backup-"));
const files: Record<string, string> = {};
const sim = await startSim(gpuNodes(1), 77);
const config = readConfig(data, {
  GANGWAY_CREDENTIALS_KEY: randomBytes(32).toString("base64"),
  GANGWAY_LOG_LEVEL: "silent",
});
let service: RunningService | null = null;

const gangway = (line: string) => run(line.split(" "), { address: service?.address ?? "", files });
const ok = async (line: string): Promise<string> => {
  const ran = await gangway(line);
  assert.equal(ran.exitCode, 0, `gangway ${line}: ${ran.stderr}${ran.stdout}`);
  return ran.stdout;
};
const phaseOf = async (name: string): Promise<string> => JSON.parse(await ok(`get ${name} -o json`)).status.phase;
const runs = (name: string) => until(async () => (await phaseOf(name)).endsWith("RUNNING"), `${name} runs`);

async function serve(): Promise<void> {
  const options = { exit: false, examples: false, listen: "127.0.0.1:0", data, insecure: false, simulate: false };
  service = await startEmbedded(options, config, OWN_KINDS);
}

async function stop(): Promise<void> {
  await service?.close();
  service = null;
}

after(async () => {
  await stop();
  await sim.close();
  for (const folder of [data, backup]) rmSync(folder, { recursive: true, force: true });
});

/** The uids of the pods of a job that are not being deleted, each with the fence that it names. */
async function podsOf(job: string): Promise<ReadonlyMap<string, string>> {
  const client = clientOf(sim.kubeconfig());
  const listed = await client.request({ method: "GET", path: "/api/v1/namespaces/default/pods" });
  await client.close();
  assert.ok(listed.kind === "ok");
  const metadata = arrayAt(listed.object, "items").map((pod) => objectAt(pod, "metadata"));
  const own = metadata.filter(
    (one) => stringMapAt(one, "labels")[LABEL.jobName] === job && stringAt(one, "deletionTimestamp") === undefined,
  );
  return new Map(own.map((one) => [stringAt(one, "uid") ?? "", stringMapAt(one, "labels")[LABEL.fence] ?? ""]));
}

test("after a restore nothing that the back-up does not know is deleted, and no gang starts, until adopt", async () => {
  for (const name of ["known", "brief", "later", "new", "fresh"])
    files[`${name}.yaml`] = longJob(name, { replicas: 1, gpus: 1 });
  files["east.yaml"] = sim.kubeconfig();
  await serve();
  await ok(`cluster add east --kubeconfig east.yaml --flavor ${FLAVOR}`);
  await until(async () => /east +ready/.test(await ok("cluster list")), "east is ready");
  await ok("submit -f known.yaml");
  await ok("submit -f brief.yaml");
  await ok("submit -f later.yaml --suspended");
  for (const name of ["known", "brief"]) await runs(name);
  await stop();
  cpSync(data, backup, { recursive: true });

  await serve();
  await ok("resume later");
  await ok("submit -f new.yaml");
  for (const name of ["later", "new"]) await runs(name);
  const before = { later: await podsOf("later"), new: await podsOf("new"), known: await podsOf("known") };
  await stop();
  rmSync(data, { recursive: true });
  cpSync(backup, data, { recursive: true });
  assert.equal((await markRestoredFolder(data)).kind, "migrated");

  await serve();
  await until(async () => /east +unadopted/.test(await ok("cluster list")), "it waits for an operator");
  await ok("resume later");
  await ok("delete brief");
  await until(async () => (await podsOf("brief")).size === 0, "what is known goes on, and ends");
  const ahead = "2 gangs would be deleted, 1 would stay\n  default/later\n  default/new\n";
  assert.equal(await ok("cluster adopt east --dry-run"), ahead);
  await ok("submit -f fresh.yaml");
  const waits = async () => /the database was restored/.test(await ok("explain fresh"));
  await until(waits, "it says why no gang is admitted");
  assert.match(await ok("explain fresh"), /clusters take gangs once each of them is adopted/);
  const now = { later: await podsOf("later"), new: await podsOf("new"), known: await podsOf("known") };
  assert.deepEqual(now, before, "nothing that runs was touched");
  assert.doesNotMatch(await ok("audit list"), /AdoptCluster/, "a dry run is not a change");

  assert.equal(await ok("cluster adopt east"), "cluster/east adopted\n");
  await until(async () => (await podsOf("new")).size === 0, "the job of after the back-up is gone");
  await until(async () => /east +ready/.test(await ok("cluster list")), "it takes gangs again");
  for (const name of ["later", "fresh"]) await runs(name);
  const [[uid = "", fence = ""] = []] = await podsOf("later");
  assert.ok(!before.later.has(uid), "its pods of before were deleted");
  assert.ok(BigInt(fence) > BigInt([...before.later.values()][0] ?? ""), "and its fence is higher");
  assert.deepEqual(await podsOf("known"), before.known);
  await ok("cluster adopt east");
  assert.equal((await ok("audit list")).match(/AdoptCluster/g)?.length, 1, "a second call changes nothing");
  assert.match((await gangway("cluster adopt nowhere")).stderr, /cluster nowhere does not exist/);
});
