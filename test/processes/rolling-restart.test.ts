/** A rolling restart of the api processes under load: callers that retry as docs/api.md says see no error. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { CallError, STATUS } from "../../src/cli/rpc/call-error.ts";
import { connect, type GangwayClient } from "../../src/cli/rpc/client.ts";
import { retryDelayMs } from "../../src/cli/rpc/rpc-failure.ts";
import { JobService, WatchJobsResponse_Type } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { QueueService } from "../../src/gen/gangway/v1/queue_service_pb.ts";
import { ReleaseOutcome, ResourceManager } from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { waitUntil } from "../support/bounded.ts";
import { postgresServer } from "../support/postgres.ts";
import { freePort, hasRedisServer } from "../support/redis-server.ts";
import { ServeChild } from "../support/serve-process.ts";
import { Team } from "./team.ts";

const server = await postgresServer();
const POOL = "ex:rolling";
const CALLERS = 6;
const ROUNDS = 2;
/** After an UNAVAILABLE without RetryInfo, which a broken connection gives. */
const PAUSE_MS = 100;

/** A client as docs/api.md asks for: it repeats the same call after UNAVAILABLE, at any address that serves. */
class RetryingCaller {
  readonly #team: Team;
  readonly #signal: AbortSignal;
  #client: GangwayClient | null = null;
  repeated = 0;

  constructor(team: Team, signal: AbortSignal) {
    this.#team = team;
    this.#signal = signal;
  }

  async try<T>(call: (client: GangwayClient) => Promise<T>): Promise<T> {
    for (;;) {
      this.#client ??= this.#team.client(this.#signal);
      try {
        if (this.#client !== null) return await call(this.#client);
      } catch (error) {
        if (!(error instanceof CallError) || error.code !== STATUS.UNAVAILABLE) throw error;
        this.repeated += 1;
        await sleep(retryDelayMs(error) ?? PAUSE_MS);
      }
      this.#client?.close();
      this.#client = null;
      await sleep(10);
    }
  }
}

const container = { name: "main", image: "busybox", command: ["true"] };
const replicaSpecs = { Worker: { replicas: 1, template: { spec: { containers: [container] } } } };
const jobOf = (name: string) => ({
  metadata: { name },
  spec: { kind: "Job", runPolicy: { suspend: true }, replicaSpecs },
});

describe("a rolling restart", { skip: server === null || !hasRedisServer() }, () => {
  let team: Team;
  before(async () => {
    team = await Team.start(server ?? "", ["api", "api", "planner", "worker"], { env: { GANGWAY_LEASE_SECONDS: "5" } });
  });
  after(() => team.close());

  test("no caller sees an error that the documented retry does not hide, and nothing is done twice", async () => {
    const over = new AbortController();
    const done = new AbortController();
    const setUp = new RetryingCaller(team, over.signal);
    const pool = { resourceNamespace: POOL, quota: 100n, defaultLease: { seconds: 600n } };
    await setUp.try((client) => client.call(ResourceManager.method.registerResourceQuota, pool));
    const created: string[] = [];
    const watched: string[] = [];
    const watching = new RetryingCaller(team, over.signal);
    let cursor = "";
    const watch = watching
      .try(async (client) => {
        for await (const message of client.stream(JobService.method.watchJobs, { cursor }, over.signal)) {
          assert.notEqual(message.type, WatchJobsResponse_Type.GAP);
          if (message.type === WatchJobsResponse_Type.ADDED) watched.push(message.job?.metadata?.name ?? "");
          if (message.cursor !== "") ({ cursor } = message);
        }
      })
      .catch((error: CallError) => assert.ok(over.signal.aborted, error.details));
    const callers = Array.from({ length: CALLERS }, () => new RetryingCaller(team, over.signal));
    const work = callers.map(async (caller, at) => {
      for (let count = 0; !done.signal.aborted; count += 1) {
        const name = `job-${at}-${count}`;
        const request = { job: jobOf(name), requestId: name };
        await caller.try((client) => client.call(JobService.method.createJob, request));
        created.push(name);
        const token = { resourceNamespace: POOL, allocationToken: name };
        await caller.try((client) => client.call(ResourceManager.method.allocateResource, token));
        const { outcome } = await caller.try((client) => client.call(ResourceManager.method.releaseResource, token));
        // A release that was repeated finds nothing left to release.
        assert.notEqual(outcome, ReleaseOutcome.UNSPECIFIED);
        await caller.try((client) => client.call(QueueService.method.listQueues, {}));
      }
    });
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const child of team.children.filter(({ roles }) => roles === "api")) {
        const before = created.length;
        await waitUntil("callers go on", () => created.length > before + CALLERS);
        assert.equal(await child.end("SIGTERM"), 0, child.output);
        team.children.splice(team.children.indexOf(child), 1);
        await team.add("api").serving();
      }
    }
    done.abort();
    await Promise.all(work);
    const rows = await team.db.query<{ name: string }>("select name from jobs order by name");
    assert.deepEqual(
      rows.map(({ name }) => name),
      [...created].sort(),
    );
    const { used } =
      (await team.db.query<{ used: number }>("select coalesce(sum(used), 0)::int as used from allocation_sums"))[0] ??
      {};
    assert.equal(used, 0);
    await waitUntil("the watch has every job", () => new Set(watched).size === created.length);
    assert.equal(watched.length, created.length, "the watch has each job once");
    assert.ok(watching.repeated >= ROUNDS, "the watch was told to resume");
    over.abort();
    await watch;
  });

  test("a create that waits for a lock is answered after SIGTERM, and the process is unready meanwhile", async () => {
    const listen = `127.0.0.1:${await freePort()}`;
    const child = new ServeChild("api", { ...team.env, GANGWAY_HTTP_LISTEN: listen });
    await child.serving();
    const client = connect(child.address ?? "", new AbortController().signal);
    const statusOf = () => fetch(`http://${listen}/readyz`).then(({ status }) => status);
    assert.equal(await statusOf(), 200);
    const created = await team.db.tx(async (tx) => {
      await tx.query("lock table jobs in share row exclusive mode");
      const created = client.call(JobService.method.createJob, { job: jobOf("held") }).catch((error) => error);
      const waits = "select count(*)::int as waits from pg_locks where not granted";
      await waitUntil("the create waits", async () => ((await tx.query<{ waits: number }>(waits))[0]?.waits ?? 0) > 0);
      child.child.kill("SIGTERM");
      await waitUntil("the process is unready", async () => (await statusOf()) === 503);
      await waitUntil("it takes no connection", async () => {
        const other = connect(child.address ?? "", new AbortController().signal);
        const error = await other.call(QueueService.method.listQueues, {}).catch((thrown) => thrown);
        other.close();
        return error instanceof CallError && error.code === STATUS.UNAVAILABLE;
      });
      assert.equal(await statusOf(), 503);
      return { created };
    });
    const answer = await created.created;
    assert.equal(answer.job?.metadata?.name, "held", String(answer));
    client.close();
    assert.equal(await child.exited(), 0, child.output);
  });
});
