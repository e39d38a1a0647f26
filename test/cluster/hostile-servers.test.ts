import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { AllowedHosts } from "../../src/adapters/cluster/allowed-hosts.ts";
import { DEFAULT_CLUSTER_HOSTS, parseAllowedHosts } from "../../src/adapters/cluster/allowed-hosts.ts";
import { checkCluster } from "../../src/adapters/cluster/check-cluster.ts";
import { createKubeClient } from "../../src/adapters/cluster/client.ts";
import { type Cluster, connectCluster } from "../../src/adapters/cluster/cluster.ts";
import { createClusters } from "../../src/adapters/cluster/clusters.ts";
import { fastClock, INSTALLATION, kubeconfigOf, seededRandom, startProxy, startSim, until } from "./harness.ts";

const SECRET = "words-of-the-server";
const signal = new AbortController().signal;

/** What a server does with a connection once a request has begun. `path` is the request's. */
type Behaviour = (socket: Socket, path: string) => void;

const answer = (body: string | Buffer, headers = "", status = "200 OK") =>
  Buffer.concat([
    Buffer.from(`HTTP/1.1 ${status}\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n`),
    Buffer.from(body),
  ]);
const json = (value: unknown, headers = "", status = "200 OK") => answer(JSON.stringify(value), headers, status);
const endless = (socket: Socket, head: string, chunk: string) => {
  const piece = Buffer.from(chunk);
  const send = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.write(head);
  socket.on("drain", send);
  send();
};
const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const inChunks = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const listOf = (items: unknown, metadata: object = { resourceVersion: "1" }) => ({ kind: "List", items, metadata });
const isWatch = (path: string) => path.includes("watch=true");
/** Lists nothing, and does something else with watches. */
const watches =
  (behaviour: Behaviour): Behaviour =>
  (socket, path) =>
    isWatch(path) ? behaviour(socket, path) : void socket.write(json(listOf([])));

const BOMB = gzipSync(Buffer.alloc(50_000_000));
let counter = 0;
const behaviours: Record<string, Behaviour> = {
  "never answers": () => undefined,
  "closes each connection": (socket) => socket.destroy(),
  "resets each connection": (socket) => socket.resetAndDestroy(),
  "sends bytes that are no HTTP": (socket) => socket.end(Buffer.from([0, 1, 2, 255, 254, 13, 10, 13, 10])),
  "sends a status that is no number": (socket) => socket.end("HTTP/1.1 abc OK\r\n\r\n"),
  "switches protocols": (socket) => socket.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n"),
  "sends a second answer that was not asked for": (socket) => socket.write(Buffer.concat([json({}), json({})])),
  "sends two lengths": (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"),
  "sends less than it promises": (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{}"),
  "sends huge headers": (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(1_000_000)}\r\n\r\n`),
  "sends headers for ever": (socket) => endless(socket, "HTTP/1.1 200 OK\r\n", `x: ${"y".repeat(1000)}\r\n`),
  "sends hints for ever": (socket) => endless(socket, "", "HTTP/1.1 103 Early Hints\r\n\r\n"),
  "sends a body for ever": (socket) => endless(socket, chunked, inChunks(" ".repeat(65_536))),
  "sends brackets for ever": (socket) => endless(socket, chunked, inChunks("[".repeat(65_536))),
  "sends a gzip bomb": (socket) => socket.write(answer(BOMB, "content-encoding: gzip\r\n")),
  "sends HTML": (socket) => socket.write(answer(`<html>${SECRET}</html>`)),
  "sends broken JSON": (socket) => socket.write(answer(`{"items": [${SECRET}`)),
  "sends another object": (socket) => socket.write(json({ message: SECRET, gitVersion: SECRET })),
  "sends a list of wrong things": (socket) => socket.write(json(listOf({ 0: SECRET }))),
  "sends items that are null": (socket) => socket.write(json(listOf([null, 1, SECRET]))),
  "sends items without names": (socket) => socket.write(json(listOf([{ metadata: null }, { metadata: {} }]))),
  "sends items of wrong types": (socket) =>
    socket.write(json(listOf([{ metadata: { name: "a", labels: 5, ownerReferences: {} }, spec: [], status: "x" }]))),
  "always names a next page": (socket) => {
    counter += 1;
    socket.write(json(listOf([{ metadata: { name: `n${counter}` } }], { continue: "more", resourceVersion: "1" })));
  },
  "sends a list of a million small objects": (socket) =>
    endless(
      socket,
      `${chunked}${inChunks('{"kind":"List","items":[')}`,
      inChunks(`${JSON.stringify({ metadata: { name: "a" } })},`.repeat(1_000)),
    ),
  "sends an object that is too large": (socket) =>
    endless(socket, `${chunked}${inChunks('{"items":[{"a":"')}`, inChunks("x".repeat(65_536))),
  "asks for a wait without end": (socket) =>
    socket.write(json({}, "retry-after: Infinity\r\n", "429 Too Many Requests")),
  "asks for a wait of years": (socket) => socket.write(json({}, "retry-after: 99999999999\r\n", "503 Unavailable")),
  redirects: (socket) => socket.write(json({}, "location: http://127.0.0.1:1/\r\n", "302 Found")),
  "refuses in its own words": (socket) =>
    socket.write(json({ kind: "Status", reason: `x ${SECRET}`, message: SECRET }, "", "403 Forbidden")),
  "refuses at length": (socket) => socket.write(json({ message: SECRET.repeat(100_000) }, "", "500 Oops")),
  "watches: closes": watches((socket) => socket.destroy()),
  "watches: lines that are no JSON": watches((socket) => endless(socket, chunked, inChunks(`${SECRET}\n`))),
  "watches: lines of wrong types": watches((socket) =>
    socket.end(`${chunked}${inChunks('5\n[]\n{"type":5}\n{"type":"ADDED","object":7}\n')}0\r\n\r\n`),
  ),
  "watches: a line without end": watches((socket) => endless(socket, chunked, inChunks("x".repeat(65_536)))),
  "watches: single bytes": watches((socket) => endless(socket, chunked, inChunks("x").repeat(10_000))),
  "watches: an error of wrong types": watches((socket) =>
    socket.end(`${chunked}${inChunks('{"type":"ERROR","object":{"code":"x","reason":5}}\n')}0\r\n\r\n`),
  ),
};

/** A server that answers each request by a behaviour. Its connections are cut after the test. */
async function serve(t: TestContext, behave: Behaviour): Promise<{ url: string; requests: () => number }> {
  const sockets = new Set<Socket>();
  let requests = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", (data) => {
      const [, path] = /^[A-Z]+ (\S+) HTTP/.exec(data.toString("latin1")) ?? [];
      requests += 1;
      behave(socket, path ?? "");
    });
  });
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return { url: `http://127.0.0.1:${address.port}`, requests: () => requests };
}

function connectTo(t: TestContext, kubeconfig: string, hosts?: AllowedHosts, keptCharsMax?: number) {
  const errors: unknown[] = [];
  const cluster: Cluster = connectCluster({
    name: "hostile",
    kubeconfig,
    ...(hosts === undefined ? {} : { hosts }),
    ...(keptCharsMax === undefined ? {} : { keptCharsMax }),
    installation: INSTALLATION,
    clock: fastClock(50),
    random: seededRandom(3),
    createNamespaces: false,
    requestTimeoutMs: 1_000,
    silenceMsMax: 1_000,
    onJobChanged: () => undefined,
    onCapacity: async () => null,
    onError: (error) => errors.push(error),
  });
  t.after(() => cluster.close());
  cluster.start();
  return { cluster, errors };
}

for (const [name, behave] of Object.entries(behaviours)) {
  test(`a cluster whose server ${name} fails by itself, and tells nothing of its words`, async (t) => {
    const { url, requests } = await serve(t, behave);
    const { cluster, errors } = connectTo(t, kubeconfigOf(url));
    await until(() => requests() >= 4 && (errors.length > 0 || cluster.synced()), "it was tried again");
    if (!name.startsWith("watches") && name !== "sends items of wrong types") assert.equal(cluster.synced(), false);
    const check = await checkCluster(kubeconfigOf(url), { clock: fastClock(50), namespaces: [] });
    assert.ok(check.findings.length > 0);
    assert.ok(!JSON.stringify(check).includes(SECRET), JSON.stringify(check));
  });
}

for (const [name, text] of Object.entries({
  garbage: "\x00\x01garbage",
  plain: "HTTP/1.1 200 OK\r\n\r\n",
  nothing: "",
})) {
  test(`a server that answers TLS with ${name} is unreachable`, async (t) => {
    const { url } = await serve(t, (socket) => (text === "" ? undefined : socket.end(text)));
    const client = createKubeClient({
      kubeconfig: kubeconfigOf(url.replace("http:", "https:")),
      connectionsMax: 4,
      requestTimeoutMs: 300,
    });
    t.after(() => client.close());
    const failed = await client.request({ method: "GET", path: "/version" });
    assert.ok(failed.kind === "failed" && failed.status === 0);
  });
}

test("a redirect is not followed", async (t) => {
  const target = await serve(t, (socket) => socket.write(json({})));
  const from = await serve(t, (socket) => socket.write(json({}, `location: ${target.url}/\r\n`, "307 Redirect")));
  const client = createKubeClient({ kubeconfig: kubeconfigOf(from.url), connectionsMax: 1, requestTimeoutMs: 5_000 });
  t.after(() => client.close());
  const failed = await client.request({ method: "GET", path: "/version" });
  assert.ok(failed.kind === "failed" && failed.status === 307);
  assert.equal(target.requests(), 0);
});

test("a name that leads to a refused address gets no connection, and the error names the rule", async (t) => {
  const { url, requests } = await serve(t, (socket) => socket.write(json({})));
  const { port } = new URL(url);
  for (const host of ["localhost", "127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"]) {
    const kubeconfig = kubeconfigOf(`http://${host}:${port}`);
    const hosts = parseAllowedHosts("*");
    const client = createKubeClient({ kubeconfig, hosts, connectionsMax: 1, requestTimeoutMs: 5_000 });
    const failed = await client.request({ method: "GET", path: "/version" });
    await client.close();
    assert.ok(failed.kind === "failed" && failed.status === 0);
    assert.match(failed.message, /leads to a loopback address: GANGWAY_CLUSTER_HOSTS must list a range inside/);
    const { findings } = await checkCluster(kubeconfig, { clock: fastClock(1), namespaces: [], hosts });
    assert.match(findings[0]?.message ?? "", /GANGWAY_CLUSTER_HOSTS must list/);
  }
  assert.equal(requests(), 0);
});

test("a name that leads elsewhere later is judged again at the next connection", async (t) => {
  const { url, requests } = await serve(t, (socket) => socket.end(json({}, "connection: close\r\n")));
  let moved = false;
  const rule = parseAllowedHosts(DEFAULT_CLUSTER_HOSTS);
  const hosts: AllowedHosts = {
    ...rule,
    refusal: (host, address) => rule.refusal(host, moved ? "169.254.169.254" : address),
  };
  const kubeconfig = kubeconfigOf(url.replace("127.0.0.1", "localhost"));
  const client = createKubeClient({ kubeconfig, hosts, connectionsMax: 1, requestTimeoutMs: 5_000 });
  t.after(() => client.close());
  assert.equal((await client.request({ method: "GET", path: "/version" })).kind, "ok");
  moved = true;
  const failed = await client.request({ method: "GET", path: "/version" });
  assert.ok(failed.kind === "failed");
  assert.match(failed.message, /link-local/);
  assert.equal(requests(), 1);
});

test("a cluster that has new objects for ever is given up once they are too many", async (t) => {
  let made = 0;
  const lines = () => {
    made += 1;
    const metadata = { name: `n${made}`, resourceVersion: String(made), labels: { a: "b".repeat(5_000) } };
    return inChunks(`${JSON.stringify({ type: "ADDED", object: { metadata } })}\n`);
  };
  const { url } = await serve(
    t,
    watches((socket) => {
      socket.write(chunked);
      const send = () => {
        while (!socket.destroyed && socket.write(lines()));
      };
      socket.on("drain", send);
      send();
    }),
  );
  const { cluster, errors } = connectTo(t, kubeconfigOf(url), undefined, 1_000_000);
  const isTooLarge = (error: unknown) => (error as { reason?: unknown }).reason === "TooLarge";
  await until(() => errors.some(isTooLarge), "it is too large");
  assert.equal(cluster.synced(), true, "what was listed before is still there");
});

test("a cluster that never answers keeps no process from being ready", async (t) => {
  const { url } = await serve(t, () => undefined);
  const { cluster } = connectTo(t, kubeconfigOf(url));
  const clusters = createClusters([cluster]);
  assert.equal(clusters.synced(), false);
  await until(() => clusters.synced(), "it counts as unreachable");
  assert.equal(cluster.synced(), false);
  assert.equal(clusters.observe({ uid: "a", clusters: ["hostile"] }), null, "its objects are still not known");
});

test("a hostile cluster keeps no other one of the process from its work", async (t) => {
  const { url } = await serve(t, (socket) => endless(socket, chunked, inChunks("[".repeat(65_536))));
  connectTo(t, kubeconfigOf(url));
  const sim = await startSim();
  t.after(() => sim.close());
  const proxy = await startProxy(sim.url, () => "pass");
  t.after(() => proxy.close());
  const { cluster } = connectTo(t, proxy.kubeconfig);
  await until(() => cluster.synced(), "the other cluster is listed");
  assert.notEqual(await cluster.listJob("a", signal), null);
});
