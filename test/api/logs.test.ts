import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { Client, credentials } from "@grpc/grpc-js";
import { createPodLogs } from "../../src/adapters/cluster/pod-logs.ts";
import type { SimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import type { JobLogs } from "../../src/api/ports.ts";
import { FOLLOWED_LOGS_MAX } from "../../src/core/job/container-log.ts";
import type { Job } from "../../src/core/job/job.ts";
import { LABEL } from "../../src/core/job/labels.ts";
import type { JobPhase } from "../../src/core/job/status.ts";
import { JobService, type LogLine, type StreamJobLogsRequest } from "../../src/gen/gangway/v1/job_service_pb.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { run } from "../cli/harness.ts";
import {
  fastClock,
  gpuNodes,
  INSTALLATION,
  startProxy,
  startSim,
  type Proxy as TestProxy,
  until,
} from "../cluster/harness.ts";
import { create, destroy, pod, podManifest } from "../simcluster/support.ts";
import { WAIT_MS_MAX, within } from "../support/bounded.ts";
import { callsOf, readRefusal, startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";

const { method } = JobService;

/**
 * A served job `mnist` (one master, two workers) that is admitted to a simulated cluster, whose pods the test makes.
 */
async function start(t: TestContext) {
  const sim = await startSim(gpuNodes(1), 1, fastClock(20));
  const proxy = await startProxy(sim.url, () => "pass");
  const logs = createPodLogs({ kubeconfig: proxy.kubeconfig, requestTimeoutMs: 60_000 }, INSTALLATION);
  const fixture = await startFixture(t, { logs });
  t.after(async () => {
    await logs.close();
    await proxy.close();
    await sim.close();
  });
  await fixture.call(method.createJob, { job: pytorchJob("mnist") });
  const job = () => fixture.store.jobs.get("default/mnist")!.job;
  const move = (phase: JobPhase, admission: number | null = 1) => {
    const admissions: Job["admissions"] = admission === null ? [] : [admitted(admission)];
    const { status, version } = job();
    fixture.store.put({ ...job(), version: version + 1, admissions, status: { ...status, phase, waiting: null } });
  };
  const startPod = (role: string, index: number, sim_: JsonObject, attempt = 1) =>
    makePod(sim, job().uid, { role, index, attempt, sim: sim_ });
  return { ...fixture, sim, proxy, move, startPod, read: reader(fixture) };
}

function admitted(number: number): Job["admissions"][number] {
  return {
    number,
    cluster: "sim",
    admitTimeMs: 0,
    members: { Master: 1, Worker: 2 },
    flavors: {},
    flavorLabels: {},
    state: "live",
    tokensReleasedMs: null,
    goneMs: null,
    belowMinSinceMs: null,
  };
}

function makePod(
  sim: SimCluster,
  jobUid: string,
  of: { role: string; index: number; attempt: number; sim: JsonObject; installation?: string },
): string {
  const name = `mnist-${of.role.toLowerCase()}-${of.index}`;
  const labels = {
    [LABEL.installation]: of.installation ?? INSTALLATION,
    [LABEL.jobUid]: jobUid,
    [LABEL.admission]: "1",
    [LABEL.attempt]: String(of.attempt),
  };
  const manifest = podManifest(name, { sim: of.sim, spec: { containers: [{ name: "pytorch", image: "x" }] } });
  const metadata = { ...(manifest["metadata"] as JsonObject), labels };
  create(sim.model, "pods", "default", { ...manifest, metadata });
  sim.settle();
  return name;
}

function reader({ stream }: Pick<Awaited<ReturnType<typeof startFixture>>, "stream">) {
  return async (request: Partial<StreamJobLogsRequest>, onLine: (line: LogLine) => void = () => {}) => {
    const { $typeName: _, ...asked } = { $typeName: "" as never, ...request };
    const call = stream(method.streamJobLogs, { name: "mnist", ...asked });
    const lines: LogLine[] = [];
    try {
      for await (const { lines: some } of call as AsyncIterable<{ lines: LogLine[] }>) {
        for (const line of some) {
          lines.push(line);
          onLine(line);
        }
      }
      return { lines, texts: lines.map(({ replica, text }) => `${replica} ${text}`), refusal: null };
    } catch (error) {
      return { lines, texts: [], refusal: readRefusal(error as Parameters<typeof readRefusal>[0]) };
    }
  };
}

const phaseOf = (sim: SimCluster, name: string) => pod(sim.model, name)?.status?.["phase"];

test("a log is read replica by replica, each line with its replica, container and time", async (t) => {
  const { sim, move, startPod, read } = await start(t);
  move("RUNNING");
  const quick = { run: "2s", "log-every": "1s", "exit-code": "0" };
  const names = [startPod("Master", 0, quick), startPod("Worker", 0, quick), startPod("Worker", 1, quick)];
  await until(() => names.every((name) => phaseOf(sim, name) === "Succeeded"), "pods end");
  const { texts, lines } = await read({ timestamps: true });
  assert.deepEqual(texts, [
    "Master/0 mnist-master-0/pytorch attempt 1 started on node-0",
    "Master/0 step 1",
    "Master/0 mnist-master-0/pytorch attempt 1 ended with exit code 0",
    "Worker/0 mnist-worker-0/pytorch attempt 1 started on node-0",
    "Worker/0 step 1",
    "Worker/0 mnist-worker-0/pytorch attempt 1 ended with exit code 0",
    "Worker/1 mnist-worker-1/pytorch attempt 1 started on node-0",
    "Worker/1 step 1",
    "Worker/1 mnist-worker-1/pytorch attempt 1 ended with exit code 0",
  ]);
  assert.ok(lines.every(({ time, container }) => time !== undefined && container === "pytorch"));
  const one = await read({ replica: "worker/1", tailLines: 1n });
  assert.deepEqual(one.texts, ["Worker/1 mnist-worker-1/pytorch attempt 1 ended with exit code 0"]);
  assert.equal(one.lines[0]?.time, undefined);
  const workers = await read({ replica: "Worker", tailLines: 1n });
  assert.deepEqual(
    workers.lines.map(({ replica }) => replica),
    ["Worker/0", "Worker/1"],
  );
});

test("a log that cannot be read is refused with the exact reason", async (t) => {
  const { read, move, startPod, sim } = await start(t);
  const code = async (request: Partial<StreamJobLogsRequest>) => {
    const { refusal } = await read(request);
    return [refusal?.code, refusal?.precondition || refusal?.resource || refusal?.fields[0]?.field];
  };
  assert.deepEqual(await code({ name: "nobody" }), ["NOT_FOUND", "default/nobody"]);
  assert.deepEqual(await code({ replica: "Chief" }), ["NOT_FOUND", "default/mnist/Chief"]);
  assert.deepEqual(await code({ replica: "Worker/2" }), ["NOT_FOUND", "default/mnist/Worker/2"]);
  assert.deepEqual(await code({ replica: "Worker/x" }), ["INVALID_ARGUMENT", "replica"]);
  assert.deepEqual(await code({ follow: true, previous: true }), ["INVALID_ARGUMENT", ""]);
  assert.deepEqual(await code({}), ["FAILED_PRECONDITION", "NOT_STARTED"]);
  move("STARTING");
  assert.deepEqual(await code({ replica: "Master/0" }), ["FAILED_PRECONDITION", "NOT_STARTED"]);
  startPod("Worker", 1, { pull: "1h" });
  const { refusal } = await read({ replica: "Worker/1" });
  assert.match(refusal?.message ?? "", /has not started its container pytorch yet: ContainerCreating/);
  assert.deepEqual(await code({ replica: "Worker/1", container: "x" }), ["INVALID_ARGUMENT", "container"]);
  makePod(sim, "somebody-else", { role: "Worker", index: 0, attempt: 1, sim: { run: "forever" } });
  await until(() => phaseOf(sim, "mnist-worker-0") === "Running", "the stranger's pod runs");
  assert.deepEqual(await code({ replica: "Worker/0" }), ["FAILED_PRECONDITION", "NOT_STARTED"]);
  move("SUCCEEDED");
  assert.deepEqual(await code({ replica: "Master/0" }), ["FAILED_PRECONDITION", "PODS_GONE"]);
});

test("a stream that follows waits for the start, continues with the next pod, and ends with the job", async (t) => {
  const { read, move, startPod, sim } = await start(t);
  const seen: string[] = [];
  const done = read({ replica: "Worker", follow: true }, ({ replica, text }) => void seen.push(`${replica} ${text}`));
  move("RUNNING");
  startPod("Worker", 0, { run: "3s", "log-every": "1s", "exit-code": "1" });
  startPod("Worker", 1, { run: "4s", "log-every": "2s", "exit-code": "0" });
  await until(() => seen.some((line) => line.includes("worker-0/pytorch attempt 1 ended")), "the first attempt ends");
  await until(() => phaseOf(sim, "mnist-worker-0") === "Failed", "it is over");
  destroy(sim.model, "pods", "default", "mnist-worker-0", { graceSeconds: 0 });
  sim.settle();
  startPod("Worker", 0, { run: "1s", "log-every": "never", "exit-code": "0" }, 2);
  await until(() => phaseOf(sim, "mnist-worker-0") === "Succeeded", "the second attempt ends");
  move("SUCCEEDED");
  const { texts, refusal } = await done;
  assert.equal(refusal, null);
  const of = (replica: string) => texts.filter((line) => line.startsWith(replica));
  assert.deepEqual(of("Worker/0"), [
    "Worker/0 mnist-worker-0/pytorch attempt 1 started on node-0",
    "Worker/0 step 1",
    "Worker/0 step 2",
    "Worker/0 mnist-worker-0/pytorch attempt 1 ended with exit code 1",
    "Worker/0 mnist-worker-0/pytorch attempt 2 started on node-0",
    "Worker/0 mnist-worker-0/pytorch attempt 2 ended with exit code 0",
  ]);
  assert.deepEqual(of("Worker/1"), [
    "Worker/1 mnist-worker-1/pytorch attempt 1 started on node-0",
    "Worker/1 step 1",
    "Worker/1 mnist-worker-1/pytorch attempt 1 ended with exit code 0",
  ]);
});

test("a broken connection loses no line and repeats none", async (t) => {
  const { read, move, startPod, proxy } = await start(t);
  move("RUNNING");
  const name = startPod("Master", 0, { run: "100s", "log-every": "1s", "exit-code": "0" });
  const cuts = cutEvery(proxy, 20);
  const following = read({ replica: "Master/0", follow: true }, cuts.onLine);
  await until(() => cuts.seen.some((text) => text.includes("ended")), "the end is read");
  move("SUCCEEDED");
  const { texts } = await following;
  const steps = Array.from({ length: 99 }, (_, at) => `Master/0 step ${at + 1}`);
  const ends = (what: string) => `Master/0 ${name}/pytorch attempt 1 ${what}`;
  assert.deepEqual(texts, [ends("started on node-0"), ...steps, ends("ended with exit code 0")]);
  assert.ok(cuts.count() >= 3);
});

function cutEvery(proxy: TestProxy, lines: number) {
  const seen: string[] = [];
  let cut = 0;
  const onLine = ({ text }: LogLine) => {
    seen.push(text);
    if (seen.length % lines !== 0) return;
    cut += 1;
    proxy.cutAll();
  };
  return { seen, onLine, count: () => cut };
}

test("the command line shows lines with their replica, and with their time on request", async (t) => {
  const { api, sim, move, startPod } = await start(t);
  move("RUNNING");
  const name = startPod("Master", 0, { run: "1s", "log-every": "never", "exit-code": "0" });
  await until(() => phaseOf(sim, name) === "Succeeded", "the pod ends");
  const logs = (line: string) => run(["logs", ...line.split(" ")], { address: api.address });
  const plain = await logs("pytorchjob/mnist");
  assert.equal(
    plain.stdout,
    `${name}/pytorch attempt 1 started on node-0\n${name}/pytorch attempt 1 ended with exit code 0\n`,
  );
  const dressed = await logs("mnist --replica Master/0 --tail 1 --prefix --timestamps");
  assert.match(
    dressed.stdout,
    /^\[Master\/0 pytorch\] \d{4}-\d\d-\d\dT[\d:.]+Z mnist-master-0\/pytorch attempt 1 ended/,
  );
  for (const same of ["mnist-master-0", "pod/mnist-master-0", "pytorchjob mnist --rank 0", "--all --since 1h"])
    assert.equal((await logs(same)).stdout, plain.stdout, same);
  assert.match((await logs("mnist-worker-1")).stderr, /replica|pod/);
  assert.match((await logs("mnist mnist-master-0")).stdout, /^\[mnist Master\/0 pytorch\] .*(\n.*){3}\n$/);
  const tooHigh = await logs("mnist --rank 3");
  assert.match(tooHigh.stderr, /^error: --rank must be at most 2: mnist has 3 replicas with 1 processes each\n$/);
  assert.equal((await logs("-l no=such")).exitCode, 3);
  assert.match(
    (await logs("nobody-worker-0")).stderr,
    /^error: not found: job default\/nobody-worker-0 does not exist/,
  );
  const refused = await logs("mnist --replica Worker/7");
  assert.equal(refused.exitCode, 3);
  assert.match(refused.stderr, /not found: replica default\/mnist\/Worker\/7 does not exist/);
  assert.equal((await logs("mnist --tail x")).exitCode, 2);
  assert.equal((await logs("mnist --follow --previous")).exitCode, 2);
});

/** Follows the log of the master with this many streams; resolves once each has its first line. */
async function followMaster(world: Awaited<ReturnType<typeof start>>, streams: number) {
  const followers = Array.from({ length: streams }, () =>
    world.stream(method.streamJobLogs, { name: "mnist", replica: "Master/0", follow: true }),
  );
  const first = followers.map(
    (follower) =>
      new Promise((resolve, reject) => {
        follower.once("data", resolve);
        // Later ones are expected, and change nothing any more.
        follower.on("error", reject);
      }),
  );
  await Promise.all(first);
  return followers;
}

/** True if one more stream may follow the log of the master. */
async function isFollowed({ stream }: Pick<Awaited<ReturnType<typeof start>>, "stream">): Promise<boolean> {
  const late = stream(method.streamJobLogs, { name: "mnist", replica: "Master/0", follow: true });
  late.on("error", () => {});
  const isAccepted = await new Promise<boolean>((resolve) => {
    late.once("data", () => resolve(true));
    late.once("error", () => resolve(false));
  });
  late.cancel();
  return isAccepted;
}

test("256 followers keep no short read waiting, one more is refused at once, and places are freed", async (t) => {
  const world = await start(t);
  const { read, move, startPod } = world;
  move("RUNNING");
  startPod("Master", 0, { run: "forever", "log-every": "never" });
  startPod("Worker", 0, { run: "forever", "log-every": "never" });
  const followers = await followMaster(world, FOLLOWED_LOGS_MAX);
  const follow = (replica: string) => read({ replica, follow: true });

  const { refusal } = await follow("Worker/0");
  assert.deepEqual(
    [refusal?.code, refusal?.reason, refusal?.retries],
    ["RESOURCE_EXHAUSTED", "TOO_MANY_FOLLOWED_LOGS", true],
  );
  const reads = await Promise.all(Array.from({ length: 100 }, () => read({ replica: "Worker/0" })));
  assert.deepEqual(new Set(reads.map(({ texts }) => texts.length)), new Set([1]));

  followers[0]?.cancel();
  await until(() => isFollowed(world), "the place of the client that left is free");
});

test("the places of clients whose connection is lost are freed", async (t) => {
  const world = await start(t);
  world.move("RUNNING");
  world.startPod("Master", 0, { run: "forever", "log-every": "never" });
  const sockets = new Set<Socket>();
  const relay = createServer((near) => {
    const far = connect(Number(world.api.address.split(":").at(-1)), "127.0.0.1");
    for (const socket of [near, far]) sockets.add(socket.on("error", () => {}));
    near.pipe(far).pipe(near);
  });
  await once(relay.listen(0, "127.0.0.1"), "listening");
  const { port } = relay.address() as AddressInfo;
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  t.after(() => {
    client.close();
    for (const socket of sockets) socket.destroy();
    relay.close();
  });
  await followMaster({ ...world, ...callsOf(client) }, FOLLOWED_LOGS_MAX);
  assert.equal((await world.read({ replica: "Master/0", follow: true })).refusal?.code, "RESOURCE_EXHAUSTED");

  for (const socket of sockets) socket.destroy();
  await until(() => isFollowed(world), "a place is free");
});

test("a stream whose client has read nothing for a minute ends, and frees what it holds", async (t) => {
  const opened = { left: 0, yielded: 0 };
  const text = "x".repeat(1_000_000);
  const logs: JobLogs = {
    look: async () => ({ kind: "found", containers: [{ name: "pytorch", run: "1", state: "running", reason: "" }] }),
    open: async () => ({ kind: "open", lines: endless() }),
  };
  async function* endless() {
    try {
      for (;;) {
        opened.yielded += 1;
        yield [{ timeNs: null, text, partial: false }];
        await new Promise((resolve) => setImmediate(resolve));
      }
    } finally {
      opened.left += 1;
    }
  }
  const { call, stream, store } = await startFixture(t, { logs, clock: fastClock(300) });
  await call(method.createJob, { job: pytorchJob("mnist") });
  const { job } = store.jobs.get("default/mnist")!;
  store.put({ ...job, admissions: [admitted(1)], status: { ...job.status, phase: "RUNNING", waiting: null } });
  const asleep = stream(method.streamJobLogs, { name: "mnist", replica: "Master/0" });
  // Listens from the start: on a busy machine the fast minute may be over before the first message has arrived.
  const ended = new Promise<Parameters<typeof readRefusal>[0]>((resolve) => asleep.once("error", resolve));
  // A stream of grpc-js that was never read takes messages without a bound; one that was paused does not.
  await Promise.race([ended, new Promise((resolve) => asleep.once("data", resolve))]);
  asleep.pause();
  await until(() => opened.left === 1, "the stream has ended");
  // The client has taken 16 messages, as every stream of grpc-js does. The server may not hold as many again.
  assert.ok(opened.yielded < 16 + 8, `${opened.yielded} messages of a megabyte were read`);
  asleep.resume();
  const { code, reason, retries } = readRefusal(await within("the end of the stream", WAIT_MS_MAX, ended));
  assert.deepEqual([code, reason, retries], ["RESOURCE_EXHAUSTED", "STREAM_STALLED", true]);
});
