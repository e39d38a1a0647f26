/** Clusters whose kubeconfigs are in Secrets of another cluster. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { after, before, test } from "node:test";
import type { KubeClient } from "../../src/adapters/cluster/client.ts";
import type { SimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import type { RunningService } from "../../src/cli/service/up.ts";
import { startEmbedded } from "../../src/compose/embedded.ts";
import { readConfig } from "../../src/config/config.ts";
import {
  clientOf,
  create,
  gpuNodes,
  type Proxy as KubeProxy,
  remove,
  startProxy,
  startSim,
  until,
} from "../cluster/harness.ts";
import { newDataFolder } from "../support/data-folder.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { type Ran, run } from "./harness.ts";

const data = newDataFolder("gangway-cluster-secret-");
const TOKEN = `token-${randomBytes(16).toString("hex")}`;
let service: RunningService;
let hub: SimCluster;
let west: SimCluster;
let client: KubeClient;
let proxies: readonly KubeProxy[];

const config = readConfig(data, {
  GANGWAY_CREDENTIALS_KEY: randomBytes(32).toString("base64"),
  GANGWAY_LOG_LEVEL: "silent",
});
const options = { exit: false, examples: false, listen: "127.0.0.1:0", data, insecure: false, simulate: false };

before(async () => {
  hub = await startSim(gpuNodes(1), 21);
  west = await startSim(gpuNodes(1), 22);
  client = clientOf(hub.kubeconfig());
  proxies = [await startProxy(west.url, () => "pass"), await startProxy(west.url, () => "pass")];
  service = await startEmbedded(options, config, OWN_KINDS);
});

after(async () => {
  await service.close();
  await client.close();
  for (const proxy of proxies) await proxy.close();
  for (const sim of [hub, west]) await sim.close();
  rmSync(data, { recursive: true, force: true });
});

const gangway = (line: string): Promise<Ran> =>
  run(line.split(" "), { address: service.address, files: { "hub.yaml": hub.kubeconfig() } });
const ok = async (line: string): Promise<string> => {
  const { exitCode, stdout, stderr } = await gangway(line);
  assert.equal(exitCode, 0, `${line}: ${stderr}${stdout}`);
  return stdout;
};
const isReady = async () => /^west +ready/m.test(await ok("cluster list"));

/** Writes the kubeconfig of west by way of a proxy into the Secret of the hub. */
async function putSecret(proxy: KubeProxy | undefined): Promise<void> {
  const kubeconfig = JSON.parse(proxy?.kubeconfig ?? "");
  kubeconfig.users[0].user = { token: TOKEN };
  await remove(client, "secrets", "west");
  const value = Buffer.from(JSON.stringify(kubeconfig)).toString("base64");
  const made = await create(client, "secrets", { metadata: { name: "west" }, data: { value } });
  assert.equal(made.kind, "ok", JSON.stringify(made));
}

async function restart(): Promise<void> {
  await service.close();
  service = await startEmbedded(options, config, OWN_KINDS);
}

test("a reference that leads to no kubeconfig is refused with its reason, and nothing is registered", async () => {
  const wrong: readonly (readonly [flags: string, says: RegExp, exitCode?: number])[] = [
    ["--secret default/west --secret-cluster hub", /not found: cluster hub does not exist/],
    ["--secret default/west", /credentials\.secret: this process does not run in a Kubernetes cluster/],
    ["--secret west --secret-cluster hub", /It must be NAMESPACE\/NAME or NAMESPACE\/NAME\/KEY/, 2],
    ["--secret default/west --kubeconfig hub.yaml", /give one of --kubeconfig, --secret and --server-file/, 2],
    ["--kubeconfig hub.yaml --secret-cluster hub", /--secret-cluster needs --secret/, 2],
    ["--secret Default/West --secret-cluster hub", /credentials\.secret\.namespace: must be a DNS label/],
  ];
  for (const [flags, says, status = 3] of wrong) {
    const { exitCode, stderr } = await gangway(`cluster add west ${flags}`);
    assert.match(stderr, says);
    assert.equal(exitCode, status, stderr);
  }
  await ok("cluster add hub --kubeconfig hub.yaml");
  const missing = await gangway("cluster add west --secret default/west --secret-cluster hub");
  assert.match(missing.stderr, /credentials\.secret: the Secret default\/west of cluster hub does not exist/);
  await putSecret(proxies[0]);
  const noKey = await gangway("cluster add west --secret default/west --secret-cluster hub");
  assert.match(noKey.stderr, /credentials\.secret: the Secret default\/west of cluster hub has no key kubeconfig/);
  assert.equal((await gangway("cluster get west")).exitCode, 3);
});

test("a cluster is registered by its Secret, which is read anew when it changes and after a restart", async () => {
  const flags = "--secret default/west/value --secret-cluster hub";
  assert.match(await ok(`cluster add west ${flags} --dry-run`), /checked \(dry run\)\nok: answers/);
  assert.match(await ok(`cluster add west ${flags}`), /^cluster\/west registered\nok: answers/);
  await until(isReady, "it is connected");
  assert.match(await ok("cluster check west"), /^ok: answers/);
  const calls = () => proxies.map(({ seen }) => seen.filter(({ path }) => path === "/api/v1/nodes").length);
  assert.ok((calls()[0] ?? 0) > 0);
  assert.equal(calls()[1], 0);
  await putSecret(proxies[1]);
  await until(() => (calls()[1] ?? 0) > 0, "it is connected by the new kubeconfig");
  await until(isReady, "it is ready by it");
  await proxies[0]?.close();
  assert.match(await ok("cluster check west"), /^ok: answers/);
  const before = calls()[1] ?? 0;
  await restart();
  await until(() => (calls()[1] ?? 0) > before, "it is connected after a restart");
  await until(isReady, "it is ready after a restart");
});

test("a Secret that is gone is told by a check, while the cluster stays connected", async () => {
  await remove(client, "secrets", "west");
  const checked = await gangway("cluster check west");
  assert.equal(checked.exitCode, 3);
  assert.match(checked.stdout, /^error: BadCredentials: the Secret default\/west of cluster hub does not exist$/m);
  assert.ok(await isReady());
  await restart();
  const shown = async () => ok("cluster get west -o yaml");
  await until(async () => (await shown()).includes("Secret default/west of cluster hub does not exist"), "told why");
  assert.match(await ok("cluster list"), /^west +.*unusable/m);
  await putSecret(proxies[1]);
  await until(isReady, "it is connected once the Secret is back");
});

test("the cluster with the Secret stays until no kubeconfig is there, and the log shows names alone", async () => {
  const refused = await gangway("cluster remove hub");
  assert.equal(refused.exitCode, 3);
  assert.match(refused.stderr, /in use by cluster west, whose kubeconfig is in a Secret there/);
  const chained = await gangway("cluster update hub --secret default/x --secret-cluster west");
  assert.match(chained.stderr, /credentials\.secret\.cluster: cluster west has its own kubeconfig in a Secret, too/);
  const log = await ok("audit list -o json");
  assert.match(log, /"namespace": "default"/);
  for (const text of [log, await ok("cluster get west -o json")]) assert.ok(!text.includes(TOKEN));
  await ok("cluster remove west");
  await ok("cluster remove hub");
});
