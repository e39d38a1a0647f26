import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { checkCluster } from "../../src/adapters/cluster/check-cluster.ts";
import { type Cluster, connectCluster } from "../../src/adapters/cluster/cluster.ts";
import { gang } from "./gang.ts";
import {
  clientOf,
  clock,
  gpuNodes,
  INSTALLATION,
  seededRandom,
  startProxy,
  startSim,
  type Treatment,
  until,
} from "./harness.ts";

const signal = new AbortController().signal;
const IDENTITY = "/api/v1/namespaces/kube-system";

/** A cluster under one uid, and the uids that it told. */
function connect(t: TestContext, kubeconfig: string, registered: () => string | null) {
  const told: string[] = [];
  const reachable: boolean[] = [];
  const cluster = connectCluster({
    name: "one",
    kubeconfig,
    installation: INSTALLATION,
    clock,
    random: seededRandom(5),
    createNamespaces: false,
    async claimUid(uid) {
      told.push(uid);
      const mine = registered() ?? uid;
      return uid === mine ? null : `is ${uid}, and was ${mine}`;
    },
    onJobChanged: () => undefined,
    async onCapacity(report) {
      reachable.push(report.reachable);
      return null;
    },
    onError: () => undefined,
  });
  t.after(() => cluster.close());
  cluster.start();
  return { cluster, told, reachable };
}

/** Why the cluster cannot be used. Null: it can. */
function problemOf(cluster: Cluster): string | null {
  const health = cluster.health();
  return health.kind === "unusable" ? health.why : null;
}

async function startTwo(t: TestContext) {
  const sims = [await startSim(gpuNodes(2), 1), await startSim(gpuNodes(2), 2)] as const;
  for (const sim of sims) t.after(() => sim.close());
  assert.notEqual(sims[0].uid, sims[1].uid);
  return sims;
}

test("a cluster tells its uid before anything else, and once while its watches last", async (t) => {
  const [sim] = await startTwo(t);
  const proxy = await startProxy(sim.url, () => "pass");
  t.after(() => proxy.close());
  const { cluster, told } = connect(t, proxy.kubeconfig, () => null);
  await until(() => cluster.synced(), "listed");
  assert.equal(proxy.seen[0]?.path, IDENTITY);
  assert.deepEqual(told, [sim.uid]);
  assert.equal(problemOf(cluster), null);
});

test("nothing is observed of a cluster that is not the registered one, and nothing is sent there", async (t) => {
  const [sim, other] = await startTwo(t);
  let mine = other.uid;
  const proxy = await startProxy(sim.url, () => "pass");
  t.after(() => proxy.close());
  const { cluster, reachable } = connect(t, proxy.kubeconfig, () => mine);
  await until(() => reachable.includes(false), "reported as unreachable at once");
  assert.equal(problemOf(cluster), `is ${sim.uid}, and was ${other.uid}`);
  assert.equal(cluster.synced(), false);
  const acted = await cluster.act(gang().createAnchor, signal);
  assert.ok(acted.kind === "failed");
  assert.equal(acted.reason, "WrongCluster");
  assert.equal(await cluster.listJob(gang().uid, signal), null);
  assert.ok(proxy.seen.every(({ path }) => path === IDENTITY));
  mine = sim.uid;
  await until(() => cluster.synced(), "used once it is the registered one");
  assert.equal(problemOf(cluster), null);
});

test("an address that leads to another cluster later does not make the jobs of the first one vanish", async (t) => {
  const [sim, other] = await startTwo(t);
  let isMoved = false;
  const second = await startProxy(other.url, () => "pass");
  const first = await startProxy(sim.url, () => "pass");
  t.after(() => first.close());
  t.after(() => second.close());
  const one = gang();
  const direct = clientOf(sim.kubeconfig());
  t.after(() => direct.close());
  const turned = await startTurn(t, () => (isMoved ? second.kubeconfig : first.kubeconfig));
  const { cluster } = connect(t, turned.kubeconfig, () => sim.uid);
  await until(() => cluster.synced(), "listed");
  assert.deepEqual(await cluster.act(one.createAnchor, signal), { kind: "done" });
  await until(() => [...cluster.jobUids()].includes(one.uid), "its anchor is seen");
  isMoved = true;
  turned.cutAll();
  await until(() => problemOf(cluster) !== null, "the other cluster is noticed");
  assert.ok([...cluster.jobUids()].includes(one.uid), "the last state of the registered cluster stays");
  assert.ok(second.seen.every(({ path }) => path === IDENTITY));
});

/** A proxy whose target may change between connections. */
async function startTurn(t: TestContext, kubeconfig: () => string) {
  const { createServer, connect: dial } = await import("node:net");
  const sockets = new Set<import("node:net").Socket>();
  const server = createServer((socket) => {
    const target = new URL(JSON.parse(kubeconfig()).clusters[0].cluster.server);
    const onward = dial(Number(target.port), target.hostname);
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      sockets.add(from);
      from.pipe(to);
      from.on("error", () => to.destroy());
      from.on("close", () => to.destroy());
    }
  });
  const cutAll = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  t.after(() => {
    cutAll();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  const made = JSON.parse(kubeconfig());
  made.clusters[0].cluster.server = `http://127.0.0.1:${address.port}`;
  return { kubeconfig: JSON.stringify(made), cutAll };
}

const unreadable: Record<string, Treatment> = { forbids: { status: 403 }, "does not have": { status: 404 } };
for (const [does, treatment] of Object.entries(unreadable)) {
  test(`a cluster that ${does} the namespace is used without its uid`, async (t) => {
    const [sim] = await startTwo(t);
    const proxy = await startProxy(sim.url, ({ path }) => (path === IDENTITY ? treatment : "pass"));
    t.after(() => proxy.close());
    const { cluster, told } = connect(t, proxy.kubeconfig, () => "another");
    await until(() => cluster.synced(), "listed");
    assert.deepEqual([told, problemOf(cluster)], [[], null]);
    assert.equal((await checkCluster(proxy.kubeconfig, { clock, namespaces: [] })).uid, null);
  });
}

test("a check tells the uid", async (t) => {
  const [sim] = await startTwo(t);
  assert.equal((await checkCluster(sim.kubeconfig(), { clock, namespaces: [] })).uid, sim.uid);
});
