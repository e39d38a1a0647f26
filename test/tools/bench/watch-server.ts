/**
 * The API with watches on a database, and a worker that changes jobs through the store, in a process of their own.
 * Messages tell it what to do.
 */
import { Encoded } from "../../../src/api/rpc/service-definition.ts";
import { bucketOf } from "../../../src/core/job/bucket.ts";
import type { Job } from "../../../src/core/job/job.ts";
import { JobService, WatchJobsResponseSchema } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { NO_STATUS, newJob, sentOf } from "../../store/jobs.ts";
import { openBenchDb, startApiService } from "./api-service.ts";
import { startProfile } from "./measure.ts";
import { paced } from "./paced.ts";
import { changeText, momentMs, type ServerAnswer, type ServerOrder } from "./watch-orders.ts";
import { usage } from "./watch-usage.ts";

const WORKER = "bench";
const CREATED_TOGETHER = 200;

type Service = Awaited<ReturnType<typeof startApiService>>;
type Change = Extract<ServerOrder, { kind: "change" }>;

let encodings = 0;

/** Counts the responses of watches that are encoded from now on. */
function countEncodings(): void {
  const encode = Encoded.of.bind(Encoded);
  Encoded.of = (schema, message) => {
    if ((schema as unknown) === WatchJobsResponseSchema) encodings += 1;
    return encode(schema, message);
  };
}

/** A job that runs, as the worker's last record has it. Null: a record of it is under way. */
type Running = { readonly namespace: string; job: Job | null };

async function createJobs({ store }: Service, namespaces: readonly string[], count: number): Promise<Running[]> {
  const jobs = namespaces.flatMap((namespace) =>
    Array.from({ length: count }, () => newJob({ namespace, queue: "bench", labels: { tier: "train" } })),
  );
  for (let from = 0; from < jobs.length; from += CREATED_TOGETHER) {
    const some = jobs.slice(from, from + CREATED_TOGETHER);
    await store.intake.createJobs(some.map((job) => ({ job, sent: sentOf(job), requestId: "" })));
  }
  return jobs.map((job) => ({ namespace: job.namespace, job }));
}

/** Returns a function that records a step of a job, as a worker that holds every bucket. */
async function startWorker({ store }: Service) {
  await store.members.join({ name: WORKER, takesBuckets: true, leaseMs: 3_600_000 });
  const epochs = new Map((await store.worker.takeBuckets(WORKER)).map(({ bucket, epoch }) => [bucket, epoch]));
  return async (job: Job, change: number): Promise<Job> => {
    const bucket = bucketOf(job.uid);
    const [condition] = NO_STATUS.conditions;
    const conditions = condition === undefined ? [] : [{ ...condition, message: changeText(change) }];
    const status = { ...job.status, conditions };
    const record = { status, admissions: job.admissions, deleteTimeMs: null, events: [] };
    const decision = { record, actions: [], forget: false, recheckAtMs: null };
    const lease = { bucket, epoch: epochs.get(bucket) ?? 0 };
    const outcome = await store.worker.record(job, decision, lease, Date.now());
    if (outcome !== "recorded") throw new Error(`a record was ${outcome}`);
    return { ...job, status, version: job.version + 1 };
  };
}

async function serve([where = "", namespaces = "", jobs = "1"]: readonly string[]): Promise<void> {
  countEncodings();
  const db = await openBenchDb(where);
  const stop = new AbortController();
  const service = await startApiService(db, stop.signal);
  const running = await createJobs(service, namespaces.split(","), Number(jobs));
  const step = await startWorker(service);
  let made = 0;

  async function change(order: Change): Promise<ServerAnswer> {
    const first = made;
    const beganMs: number[] = [];
    const committedMs: number[] = [];
    const chosen = inTurn(running.filter(({ namespace }) => order.namespaces.includes(namespace)));
    const records: Promise<void>[] = [];
    let next = 0;
    await paced(order, () => {
      const one = chosen[next % chosen.length];
      if (one === undefined || one.job === null) return false;
      const { job } = one;
      const at = made - first;
      one.job = null;
      next += 1;
      made += 1;
      beganMs[at] = momentMs();
      const recorded = step(job, first + at).then((after) => {
        committedMs[at] = momentMs();
        one.job = after;
      });
      records.push(recorded);
      return true;
    });
    await Promise.all(records);
    return { kind: "changed", first, beganMs, committedMs };
  }

  let profiled: Awaited<ReturnType<typeof startProfile>> | null = null;
  const obey = async (order: ServerOrder): Promise<ServerAnswer> => {
    if (order.kind === "change") return await change(order);
    if (order.kind === "usage") return usage(encodings);
    if (order.kind === "profile") profiled = await startProfile();
    if (order.kind === "profiled") return { kind: "profile", times: (await profiled?.()) ?? [] };
    return { kind: "done" };
  };
  process.on("message", (order: ServerOrder) => {
    if (order.kind !== "end") return void obey(order).then((answer) => process.send?.(answer));
    stop.abort();
    void Promise.all([service.api.close(), service.watching]).then(async () => {
      await db.close();
      process.disconnect();
    });
  });
  // A bench that fails leaves without an order to end.
  process.on("disconnect", () => process.exit());
  const path = `/${JobService.typeName}/${JobService.method.watchJobs.name}`;
  process.send?.({ kind: "ready", address: service.api.address, path } satisfies ServerAnswer);
}

/** One job of each namespace after the other. */
function inTurn(jobs: readonly Running[]): readonly Running[] {
  const places = new Map<string, number>();
  const placed = jobs.map((one) => {
    const place = places.get(one.namespace) ?? 0;
    places.set(one.namespace, place + 1);
    return { one, place };
  });
  return placed.sort((a, b) => a.place - b.place).map(({ one }) => one);
}

await serve(process.argv.slice(2));
