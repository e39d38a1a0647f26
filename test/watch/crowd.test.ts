import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, credentials } from "@grpc/grpc-js";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { openPostgres } from "../../src/adapters/store/db/postgres.ts";
import { readConfig } from "../../src/config/config.ts";
import type { LogPlace } from "../../src/core/job/request/event-log.ts";
import { JobService, type WatchJobsResponse, WatchJobsResponse_Type } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { createWatch } from "../../src/watch/watch.ts";
import { callsOf, readRefusal, startFixture } from "../api/fixture.ts";
import { freshStore, type TestStore } from "../store/db.ts";
import { NOW, newJob, sentOf } from "../store/jobs.ts";
import { waitUntil } from "../support/bounded.ts";
import { openMemoryDb } from "../support/databases.ts";
import { createDatabase, postgresServer } from "../support/postgres.ts";

const STREAMS = 1_000;
const OWN_CONNECTION = { "grpc.use_local_subchannel_pool": 1 };
const { method } = JobService;
const server = await postgresServer();

/** A PostgreSQL with the pool that a process has by default. */
async function openDefaultPool(): Promise<Db> {
  const { url, drop } = await createDatabase(server ?? "");
  const { database } = readConfig("/", { DATABASE_URL: url });
  assert.ok(database);
  const db = await openPostgres({ ...database, onError: () => {} });
  return { ...db, close: () => db.close().then(drop) };
}

const databases = {
  PGlite: { open: openMemoryDb, skip: false },
  PostgreSQL: { open: openDefaultPool, skip: server === null },
};

for (const [name, { open, skip }] of Object.entries(databases)) {
  test(`a thousand watches that open together get their snapshot and follow, on ${name}`, { skip }, async (t) => {
    const db = await open();
    const { store } = await freshStore(db);
    const reading = { now: 0, most: 0, pages: 0 };
    const stop = new AbortController();
    const counted = async <T>(read: () => Promise<T>): Promise<T> => {
      reading.now += 1;
      reading.most = Math.max(reading.most, reading.now);
      return read().finally(() => {
        reading.now -= 1;
      });
    };
    const watched = {
      ...store.watch,
      snapshot: (page: Parameters<TestStore["watch"]["snapshot"]>[0]) => {
        return counted(() => store.watch.snapshot(page));
      },
      entriesAfter: (place: LogPlace, limit: number) => {
        reading.pages += 1;
        return store.watch.entriesAfter(place, limit);
      },
    };
    const loopFailed = ({ error }: { error: unknown }) => assert.ifError(error);
    const watch = createWatch({ clock: systemClock(), store: watched }, { loopFailed });
    const running = watch.run(stop.signal);
    t.after(async () => {
      stop.abort();
      await running;
      await db.close();
    });
    const { api } = await startFixture(t, { watch });
    const job = newJob({ name: "mnist" });
    await store.intake.createJob({ job, sent: sentOf(job), requestId: "" });

    const clients = Array.from(
      { length: 4 },
      () => new Client(api.address, credentials.createInsecure(), OWN_CONNECTION),
    );
    t.after(() => {
      for (const client of clients) client.close();
    });
    /** Opens as many streams at once; `last` is the last message of each, and `types` are those of all. */
    const openAll = (
      request: (at: number) => { readonly cursor?: string; readonly filter?: { readonly names: string[] } },
    ) =>
      Array.from({ length: STREAMS }, (_, at) => {
        const client = clients[at % clients.length] as Client;
        const call = callsOf(client).stream(method.watchJobs, request(at));
        const types = new Set<WatchJobsResponse_Type>();
        const seen: { last: WatchJobsResponse | null; failure: string } = { last: null, failure: "" };
        call.on("data", (message: WatchJobsResponse) => {
          seen.last = message;
          types.add(message.type);
        });
        call.on("error", (error) => {
          const { code, message } = readRefusal(error as Parameters<typeof readRefusal>[0]);
          seen.failure ||= `${code} ${message}`;
        });
        t.after(() => call.cancel());
        return { call, seen, types };
      });
    const all = async (streams: ReturnType<typeof openAll>, type: WatchJobsResponse_Type, what: string) => {
      await waitUntil(what, () => {
        const failed = streams.find(({ seen }) => seen.failure !== "");
        assert.equal(failed?.seen.failure, undefined);
        return streams.every(({ types }) => types.has(type));
      });
    };

    // Each second stream has a filter of its own, so that its snapshot is shared with none.
    const streams = openAll((at) => (at % 2 === 0 ? {} : { filter: { names: ["mnist", `other-${at}`] } }));
    await all(streams, WatchJobsResponse_Type.BOOKMARK, "every stream has its snapshot");
    assert.ok(reading.most <= 4, `${reading.most} snapshots at a time`);
    const cursor = streams[0]?.seen.last?.cursor ?? "";

    const event = { type: "Normal", reason: "Updated", message: "changed" } as const;
    const changed = { ...job, labels: { team: "vision" }, version: 2 };
    await store.intake.changeJob(job, () => ({ kind: "changed", job: changed, event }), NOW);
    watch.hint();
    await all(streams, WatchJobsResponse_Type.MODIFIED, "every stream has the change");
    for (const { call } of streams) call.cancel();

    const again = createWatch({ clock: systemClock(), store: watched }, { loopFailed });
    const fresh = await startFixture(t, { watch: again });
    clients.splice(
      0,
      4,
      ...clients.map(() => new Client(fresh.api.address, credentials.createInsecure(), OWN_CONNECTION)),
    );
    reading.pages = 0;
    const resumed = openAll(() => ({ cursor }));
    await all(resumed, WatchJobsResponse_Type.MODIFIED, "every stream has resumed after the cursor");
    assert.ok(reading.pages < 100, `${reading.pages} reads of the log for ${STREAMS} streams with one cursor`);
  });
}
