import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { createServer as createHttp2Server } from "node:http2";
import { createServer } from "node:https";
import { after, before, test } from "node:test";
import type { SimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import type { RunningService } from "../../src/cli/service/up.ts";
import { startEmbedded } from "../../src/compose/embedded.ts";
import { readConfig } from "../../src/config/config.ts";
import { deadServer, gpuNodes, kubeconfigOf, startProxy, startSim, until } from "../cluster/harness.ts";
import { Certificates, hasOpenssl } from "../support/certificates.ts";
import { newDataFolder } from "../support/data-folder.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { type Ran, run } from "./harness.ts";

const data = newDataFolder("gangway-cluster-add-");
let service: RunningService;
let sim: SimCluster;
let other: SimCluster;

before(async () => {
  sim = await startSim(gpuNodes(1), 11);
  other = await startSim(gpuNodes(1), 12);
  const config = readConfig(data, {
    GANGWAY_CREDENTIALS_KEY: randomBytes(32).toString("base64"),
    GANGWAY_LOG_LEVEL: "silent",
  });
  const options = { exit: false, examples: false, listen: "127.0.0.1:0", data, insecure: false, simulate: false };
  service = await startEmbedded(options, config, OWN_KINDS);
});

after(async () => {
  await service.close();
  await sim.close();
  await other.close();
  rmSync(data, { recursive: true, force: true });
});

const gangway = (line: string, kubeconfig = ""): Promise<Ran> =>
  run(line.split(" "), { address: service.address, files: { "k.yaml": kubeconfig } });
const isRegistered = async (name: string) => (await gangway(`cluster get ${name}`)).exitCode === 0;

type Server = { readonly kubeconfig: string; readonly close?: () => Promise<void> };
const unusable: Record<string, { server: () => Promise<Server>; finds: RegExp; skip?: boolean }> = {
  "does not listen": {
    server: async () => ({ kubeconfig: kubeconfigOf(deadServer()) }),
    finds: /^error: Unreachable: .*no answer \(ECONNREFUSED\): nothing listens at the address of the kubeconfig$/m,
  },
  "does not know its token": {
    server: () => startProxy(sim.url, () => ({ status: 401 })),
    finds: /^error: Unauthorized: .*status 401, Unauthorized: the server does not accept the credentials/m,
  },
  "lets its account do nothing": {
    server: () => startProxy(sim.url, () => ({ status: 403 })),
    finds: /^error: Forbidden: .*status 403, Forbidden: the account of the kubeconfig may not call the server$/m,
  },
  "has a certificate of another authority": {
    server: startForeign,
    finds: /^error: Unreachable: .*certificate-authority-data of the kubeconfig is not the authority/m,
    skip: !hasOpenssl(),
  },
  "cuts every connection": {
    server: () => startProxy(sim.url, () => "cut"),
    finds: /^error: Unreachable: .*no answer/m,
  },
};
for (const [does, { server, finds, skip = false }] of Object.entries(unusable)) {
  test(`a cluster that ${does} is registered with exit status 5, and with 3 in a dry run not`, { skip }, async (t) => {
    const { kubeconfig, close } = await server();
    t.after(() => close?.());
    const tried = await gangway("cluster add east --kubeconfig k.yaml --dry-run", kubeconfig);
    assert.equal(tried.exitCode, 3, tried.stderr);
    assert.match(tried.stdout, finds);
    assert.equal(await isRegistered("east"), false);
    const added = await gangway("cluster add east --kubeconfig k.yaml", kubeconfig);
    assert.equal(added.exitCode, 5, added.stderr);
    assert.match(added.stdout, /^cluster\/east registered, but it cannot run gangs yet\n/);
    assert.match(added.stdout, finds);
    assert.match(added.stderr, /gangway cluster check east\. Or remove it again: gangway cluster remove east\n$/);
    assert.equal(await isRegistered("east"), true);
    assert.equal((await gangway("cluster remove east")).exitCode, 0);
  });
}

/** A server with a certificate that the authority of its kubeconfig has not signed. */
async function startForeign(): Promise<Server> {
  const [trusted, foreign] = [new Certificates(), new Certificates()];
  const { certFile, keyFile } = foreign.sign("server", "IP:127.0.0.1");
  const server = createServer({ cert: foreign.read(certFile), key: foreign.read(keyFile) }, (_request, response) => {
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const kubeconfig = JSON.parse(kubeconfigOf(`https://127.0.0.1:${address.port}`));
  const authority = Buffer.from(trusted.read(trusted.caFile)).toString("base64");
  kubeconfig.clusters[0].cluster = {
    server: `https://127.0.0.1:${address.port}`,
    "certificate-authority-data": authority,
  };
  return {
    kubeconfig: JSON.stringify(kubeconfig),
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      for (const authority of [trusted, foreign]) authority.remove();
    },
  };
}

test("one cluster is registered once, whatever its address is", async (t) => {
  const proxy = await startProxy(sim.url, () => "pass");
  t.after(() => proxy.close());
  const first = await gangway("cluster add first --kubeconfig k.yaml", sim.kubeconfig());
  assert.deepEqual([first.exitCode, first.stderr], [0, ""]);
  assert.match(first.stdout, /^cluster\/first registered\nok: answers, /);
  const again = await gangway("cluster add second --kubeconfig k.yaml", proxy.kubeconfig);
  assert.equal(again.exitCode, 3);
  const uid = `the uid of its namespace kube-system is ${sim.uid}`;
  const same = `cluster second is the same Kubernetes cluster as first: ${uid}`;
  assert.ok(again.stderr.startsWith(`error: already exists: ${same}. `), again.stderr);
  const tried = await gangway("cluster add second --kubeconfig k.yaml --dry-run", proxy.kubeconfig);
  assert.equal(tried.exitCode, 3);
  assert.ok(tried.stdout.includes(`error: SameCluster: ${same}`), tried.stdout);
  assert.equal(await isRegistered("second"), false);
  const moved = await gangway("cluster update first --kubeconfig k.yaml", proxy.kubeconfig);
  assert.deepEqual([moved.exitCode, moved.stdout.split("\n")[0]], [0, "cluster/first updated"], "another address");
  const changed = await gangway("cluster update first --kubeconfig k.yaml", other.kubeconfig());
  assert.equal(changed.exitCode, 3);
  assert.match(changed.stderr, /^error: failed precondition: cluster first is another Kubernetes cluster than the/);
  assert.ok(changed.stderr.includes(other.uid) && changed.stderr.includes(sim.uid), changed.stderr);
  assert.match((await gangway("cluster check first")).stdout, /^ok: answers/);
  assert.ok((await gangway("cluster get first -o yaml")).stdout.includes(`uid: ${sim.uid}\n`));
  assert.equal((await gangway("cluster remove first")).exitCode, 0);
});

test("a cluster that could not be reached gets its uid once it can, and is not used under a second name", async (t) => {
  let isAway = true;
  const proxy = await startProxy(sim.url, () => (isAway ? "cut" : "pass"));
  t.after(() => proxy.close());
  assert.equal((await gangway("cluster add late --kubeconfig k.yaml", proxy.kubeconfig)).exitCode, 5);
  assert.equal((await gangway("cluster add first --kubeconfig k.yaml", sim.kubeconfig())).exitCode, 0);
  isAway = false;
  const shown = async () => (await gangway("cluster get late -o yaml")).stdout;
  await until(async () => (await shown()).includes("same Kubernetes cluster as first"), "its problem is shown");
  assert.match((await gangway("cluster list")).stdout, /^late +unusable /m);
  const checked = await gangway("cluster check late");
  assert.equal(checked.exitCode, 3);
  assert.match(checked.stdout, /^error: SameCluster: cluster late is the same Kubernetes cluster as first/m);
  assert.equal((await gangway("cluster remove first")).exitCode, 0);
  await until(async () => (await shown()).includes(`uid: ${sim.uid}`), "it is used once the other name is gone");
  await until(async () => /^late +ready/m.test((await gangway("cluster list")).stdout), "gangs may go there");
  assert.equal((await gangway("cluster remove late")).exitCode, 0);
});

test("a new kubeconfig that does not work is stored with exit status 5", async () => {
  assert.equal((await gangway("cluster add east --kubeconfig k.yaml", sim.kubeconfig())).exitCode, 0);
  const dead = kubeconfigOf(deadServer());
  const updated = await gangway("cluster update east --kubeconfig k.yaml", dead);
  assert.equal(updated.exitCode, 5);
  assert.match(updated.stdout, /^cluster\/east updated, but it cannot run gangs yet\nerror: Unreachable: /);
  assert.equal(updated.stderr, "Repair it, and check it again: gangway cluster check east.\n");
  assert.equal((await gangway("cluster update east --kubeconfig k.yaml --server-file x", dead)).exitCode, 2);
  assert.equal((await gangway("cluster remove east")).exitCode, 0);
});

test("a call that is not answered says whether the cluster may be registered", async (t) => {
  const refused = new URL(deadServer()).host;
  const files = { "k.yaml": sim.kubeconfig() };
  const never = await run("cluster add east --kubeconfig k.yaml".split(" "), { address: refused, files });
  assert.equal(never.exitCode, 4);
  assert.doesNotMatch(never.stderr, /may have made the change/);
  const lost = createHttp2Server().on("stream", ({ session }) => session?.destroy());
  t.after(() => lost.close());
  await new Promise<void>((resolve) => lost.listen(0, "127.0.0.1", resolve));
  const bound = lost.address();
  assert.ok(typeof bound === "object" && bound !== null);
  const address = `127.0.0.1:${bound.port}`;
  const unanswered = await run("cluster add east --kubeconfig k.yaml".split(" "), { address, files });
  assert.equal(unanswered.exitCode, 4);
  assert.match(unanswered.stderr, /\n {2}The service may have made the change: see "gangway cluster get east"\.\n$/);
});
