/** GetJob and ListJobs among few and many jobs, beside an echo whose answer is as large. */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { GangwayClient } from "../../../src/cli/rpc/client.ts";
import { JobPhase } from "../../../src/gen/gangway/v1/job_pb.ts";
import { GetJobRequestSchema, JobService, ListJobsRequestSchema } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { SIZED } from "./submit-orders.ts";
import { costed, profiled, requestOf, type SubmitBench, type SubmitParts } from "./submit-parts.ts";
import { type TimedRate, timedRate, timesText } from "./timed-rate.ts";

const SERVICE = "/gangway.v1.JobService";
const PAGE = 100;
/** More than a page of jobs that few filters select. They wait; all others have ended. */
const RARE = 150;
/** The few jobs are this part of the many. */
const SMALL_PART = 1 / 100;
/** How long each call is measured, as a part of the bench's seconds: there are many. */
const SHARE = 1 / 10;

const ORDERS = ["create_time", "create_time desc", "name", "priority desc"];
const { SUCCEEDED, WAITING } = JobPhase;

/** Common filters select all that have ended, rare ones those that wait. */
const FILTERS: Readonly<Record<string, MessageInitShape<typeof ListJobsRequestSchema>["filter"]>> = {
  "": {},
  "common namespace": { namespace: "ended" },
  "rare namespace": { namespace: "rare" },
  "common queue": { queue: "bench" },
  "rare queue": { queue: "rare" },
  "common kind": { kinds: ["PyTorchJob"] },
  "rare kind": { kinds: ["Job"] },
  "common phase": { phases: [SUCCEEDED] },
  "rare phase": { phases: [WAITING] },
  "both phases": { phases: [SUCCEEDED, WAITING] },
  "common label": { labels: { tier: "common" } },
  "rare label": { labels: { tier: "rare" } },
  "common namespace and rare label": { namespace: "ended", labels: { mark: "few" } },
  "common queue and rare label": { queue: "bench", labels: { mark: "few" } },
  "common phase and rare label": { phases: [SUCCEEDED], labels: { mark: "few" } },
  "common namespace and common label": { namespace: "ended", labels: { tier: "common" } },
  "common queue and common phase": { queue: "bench", phases: [SUCCEEDED] },
  "common namespace and no phase": { namespace: "ended", phases: [WAITING] },
  "common queue and no kind": { queue: "bench", kinds: ["Job"] },
};

type Read = { readonly rate: TimedRate; readonly cost: string; readonly floor: TimedRate };

/** Reports GetJob and each list among many jobs, and how many times as long they take as among few. */
export async function benchReads(
  { finished, seconds, callers = [1, 64, 256], orders = ORDERS, profile }: SubmitBench,
  parts: SubmitParts,
  client: GangwayClient,
): Promise<void> {
  const { ask, child, print } = parts;
  await makeJobs(parts, client);
  const few = Math.ceil(finished * SMALL_PART);
  const copies = { kind: "copy", name: "ended-0" } as const;
  await ask(child, { ...copies, count: few, prefix: "few" }, "done");
  const first = await lists({ seconds: seconds * SHARE, orders }, parts);
  await ask(child, { ...copies, count: Math.max(0, finished - few), prefix: "many" }, "done");
  print(`among ${finished} jobs that have ended and ${RARE} that wait:`);
  const requests = Array.from({ length: RARE }, (_, at) =>
    toBinary(GetJobRequestSchema, create(GetJobRequestSchema, { namespace: "rare", name: `rare-${at}` })),
  );
  await profiled(parts, profile, "gets, and echoes", async () => {
    for (const count of callers) {
      report(parts, await read(parts, `get, ${count} callers`, { method: "GetJob", requests, count, seconds }));
    }
  });
  await profiled(parts, profile, "lists, and echoes", async () => {
    for (const [at, one] of (await lists({ seconds: seconds * SHARE, orders }, parts)).entries()) {
      const before = median(first[at]?.rate);
      report(parts, one, `; ${(median(one.rate) / before).toFixed(2)} times as long as among ${few}`);
    }
  });
}

function report({ report: ratio, print }: SubmitParts, { rate, cost, floor }: Read, more = ""): void {
  ratio(rate, floor);
  print(`  ${timesText(rate.timesMs)}; floor ${timesText(floor.timesMs)}${more}`);
  print(`  CPU of a call: ${cost}`);
}

function median(rate: TimedRate | undefined): number {
  return rate?.timesMs[Math.floor(rate.timesMs.length / 2)] ?? Number.NaN;
}

async function lists(
  { seconds, orders }: { readonly seconds: number; readonly orders: readonly string[] },
  parts: SubmitParts,
): Promise<readonly Read[]> {
  const reads: Read[] = [];
  for (const [name, filter] of Object.entries(FILTERS)) {
    for (const orderBy of orders) {
      const message = create(ListJobsRequestSchema, { filter, orderBy, pageSize: PAGE });
      const request = toBinary(ListJobsRequestSchema, message);
      const of = { method: "ListJobs", requests: [request], count: 1, seconds };
      reads.push(await read(parts, `list ${name || "all"} by ${orderBy}`, of));
    }
  }
  return reads;
}

type ReadLoad = {
  readonly method: string;
  /** Callers send them in turn. */
  readonly requests: readonly Uint8Array[];
  readonly count: number;
  readonly seconds: number;
};

async function read(parts: SubmitParts, name: string, of: ReadLoad): Promise<Read> {
  const requests = of.requests.map((request) => Buffer.from(request));
  const call = (at: number) => parts.service(`${SERVICE}/${of.method}`, requests[at % requests.length] ?? EMPTY);
  const { length } = await call(0);
  const size = Buffer.alloc(4);
  size.writeUInt32BE(length);
  const load = { callers: of.count, seconds: of.seconds };
  const floor = await timedRate(`echo of ${length} bytes`, () => parts.bare(SIZED, size), load);
  return { ...(await costed(parts, () => timedRate(name, call, load))), floor };
}

const EMPTY = Buffer.alloc(0);

/** Jobs that wait, for rare filters; one that has ended, which is copied; and some that are marked beside it. */
async function makeJobs({ ask, child }: SubmitParts, client: GangwayClient): Promise<void> {
  await ask(child, { kind: "queue", name: "rare" }, "done");
  const { replicaSpecs } = requestOf("").job.spec;
  const rareSpec = {
    kind: "Job",
    replicaSpecs: { Worker: replicaSpecs.Worker },
    runPolicy: { schedulingPolicy: { queue: "rare" } },
  };
  const make = (of: { namespace: string; prefix: string; count: number; labels: Record<string, string> }) => {
    const requests = Array.from({ length: of.count }, (_, at) => {
      const name = `${of.prefix}-${at}`;
      const spec = of.namespace === "rare" ? rareSpec : requestOf(name).job.spec;
      return { job: { metadata: { name, namespace: of.namespace, labels: of.labels }, spec } };
    });
    return client.call(JobService.method.batchCreateJobs, { requests });
  };
  await make({ namespace: "rare", prefix: "rare", count: RARE, labels: { tier: "rare" } });
  await make({ namespace: "ended", prefix: "marked", count: RARE, labels: { tier: "common", mark: "few" } });
  await make({ namespace: "ended", prefix: "ended", count: 1, labels: { tier: "common" } });
  await ask(child, { kind: "finish", namespace: "ended" }, "done");
}
