import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { create, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { connect } from "../../../src/cli/rpc/client.ts";
import { CreateJobRequestSchema, JobService } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { WAIT_MS_MAX, within } from "../../support/bounded.ts";
import { answerOf, ordersTo } from "./child-orders.ts";
import { type Rate, reportLine } from "./measure.ts";
import { benchReads } from "./reads.ts";
import { scratchServerDb } from "./scratch-db.ts";
import { type Answer, ECHO, INSERT, type Order } from "./submit-orders.ts";
import {
  costed,
  type JobShape,
  profiled,
  requestOf,
  SMALL,
  type SubmitBench,
  type SubmitParts,
  sender,
} from "./submit-parts.ts";
import { timedRate, timesText } from "./timed-rate.ts";

/** As many rows as intake puts into one transaction. */
const ROWS_PER_TRANSACTION = 200;
/** The callers that call service and floor first: a cold process takes several times as long. */
const WARM_UP_CALLERS = 8;
const FIRST = "bench-first";
const CREATE = "/gangway.v1.JobService/CreateJob";

/** Measures how fast jobs are stored, one in each call and in batches, and read. Returns the ratios by name. */
export async function benchSubmit(
  bench: SubmitBench,
  print: (line: string) => void,
): Promise<Readonly<Record<string, number>>> {
  await using stack = new AsyncDisposableStack();
  const { database, postgres = null, jobs } = bench;
  const where = postgres === null ? database : (await scratchServerDb(stack, postgres)).url;
  const child = fork(fileURLToPath(new URL("submit-server.ts", import.meta.url)), where === null ? [] : [where]);
  const ready = await answerOf<Answer, "ready">(child, "ready");
  const closing = new AbortController();
  const client = connect(ready.api, closing.signal);
  const service = new Client(ready.api, credentials.createInsecure());
  const bare = new Client(ready.echo, credentials.createInsecure());
  const ratios: Record<string, number> = {};
  const report = (measured: Rate, floor: Rate) => {
    ratios[`${measured.name} / ${floor.name}`] = measured.perSecond / floor.perSecond;
    print(reportLine(measured, floor));
  };
  const ask = ordersTo<Order, Answer>();
  const parts = { ask, child, service: sender(service), bare: sender(bare), report, print };
  try {
    await client.call(JobService.method.createJob, requestOf(FIRST, jobs));
    await ask(child, { kind: "row", name: FIRST }, "done");
    await profiled(parts, bench.profile, "single submits, echo and bare inserts", () => benchSingles(bench, parts));
    await profiled(parts, bench.profile, "batches", () => benchBatches(bench, parts, client));
    await benchReads(bench, parts, client);
  } finally {
    closing.abort();
    for (const each of [client, service, bare]) each.close();
    const ended = once(child, "exit");
    child.send({ kind: "end" } satisfies Order);
    await within("the end of the server", WAIT_MS_MAX, ended);
  }
  return ratios;
}

async function benchSingles(
  { callers = [1, 64, 256], seconds, jobs = SMALL }: SubmitBench,
  parts: SubmitParts,
): Promise<void> {
  const { ask, child, bare, service, report, print } = parts;
  const numberedRequest = numberedRequests(jobs);
  const payload = Buffer.alloc(numberedRequest(0).length, 1);
  let made = 0;
  const submit = () => {
    made += 1;
    return service(CREATE, numberedRequest(made));
  };
  for (const call of [submit, () => bare(INSERT, payload)]) {
    await timedRate("warm-up", call, { callers: WARM_UP_CALLERS, seconds });
  }
  await ask(child, { kind: "analyze" }, "done");
  for (const count of callers) {
    const load = { callers: count, seconds };
    const echo = await timedRate("echo", () => bare(ECHO, payload), load);
    const insert = await costed(parts, () => timedRate("echo with an insert", () => bare(INSERT, payload), load));
    const before = await jobsOf(parts);
    const first = made;
    const measured = await costed(parts, () => timedRate(`submit, ${count} callers`, submit, load));
    const stored = (await jobsOf(parts)) - before;
    if (stored !== made - first) throw new Error(`${made - first} submits were acknowledged, and ${stored} stored`);
    for (const floor of [echo, insert.rate]) report(measured.rate, floor);
    print(`  ${timesText(measured.rate.timesMs)}; floor ${timesText(insert.rate.timesMs)}`);
    print(`  CPU of a call: ${measured.cost}; floor: ${insert.cost}`);
  }
}

async function benchBatches(
  { seconds, batch = 1000, jobs }: SubmitBench,
  parts: SubmitParts,
  client: ReturnType<typeof connect>,
): Promise<void> {
  const { ask, child, report, print } = parts;
  const submitBatch = (call: number) => {
    const requests = Array.from({ length: batch }, (_, at) => requestOf(`batch-${call}-${at}`, jobs));
    return client.call(JobService.method.batchCreateJobs, { requests });
  };
  const calls = await costed(parts, () => timedRate("", submitBatch, { callers: 1, seconds }));
  const rows = Math.max(batch, Math.ceil(2000 * seconds));
  const insert = { kind: "insert", rows, perTransaction: ROWS_PER_TRANSACTION } as const;
  const { perSecond } = await ask(child, insert, "inserted");
  report(
    { name: `submit in batches of ${batch}`, perSecond: calls.rate.perSecond * batch },
    { name: "bare insert", perSecond },
  );
  print(`  ${timesText(calls.rate.timesMs)} of a batch; CPU of a batch: ${calls.cost}`);
}

async function jobsOf({ ask, child }: SubmitParts): Promise<number> {
  return (await ask(child, { kind: "count" }, "counted")).jobs;
}

const DIGITS = "000000000000";

/** Makes encoded requests, each for the job of a number. Encodes one alone: all have the same length. */
export function numberedRequests(jobs: JobShape): (number: number) => Buffer {
  const request = create(CreateJobRequestSchema, requestOf(`one-${DIGITS}`, jobs));
  const encoded = Buffer.from(toBinary(CreateJobRequestSchema, request));
  const places: number[] = [];
  for (let at = encoded.indexOf(DIGITS); at >= 0; at = encoded.indexOf(DIGITS, at + 1)) places.push(at);
  return (number) => {
    const bytes = Buffer.from(encoded);
    for (const at of places) bytes.write(String(number).padStart(DIGITS.length, "0"), at);
    return bytes;
  };
}
