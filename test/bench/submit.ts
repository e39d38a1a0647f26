import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { create, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { connect } from "../../src/cli/rpc/client.ts";
import { CreateJobRequestSchema, JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { WAIT_MS_MAX, within } from "../support/bounded.ts";
import { answerOf, ordersTo } from "./child-orders.ts";
import { callRate, profileLines, type Rate, reportLine } from "./measure.ts";
import { scratchServerDb } from "./scratch-db.ts";
import { type Answer, ECHO, INSERT, type Order } from "./submit-orders.ts";

export type SubmitBench = {
  readonly seconds: number;
  readonly profile: boolean;
  /** `memory` or a folder; null: a temporary folder. */
  readonly database: string | null;
  /** The server for a database of the bench's own, instead of an embedded one. Omitted or null: none. */
  readonly postgres?: string | null;
  /** Omitted: 1, 64 and 256. */
  readonly callers?: readonly number[];
  /** Omitted: 1,000. */
  readonly batch?: number;
};

/** As many rows as intake puts into one transaction. */
const ROWS_PER_TRANSACTION = 200;
const ask = ordersTo<Order, Answer>();

/** Measures how fast jobs are stored, one in each call and in batches. Returns the ratios by name. */
export async function benchSubmit(
  { seconds, profile, database, postgres = null, callers = [1, 64, 256], batch = 1000 }: SubmitBench,
  print: (line: string) => void,
): Promise<Readonly<Record<string, number>>> {
  await using parts = new AsyncDisposableStack();
  const where = postgres === null ? database : (await scratchServerDb(parts, postgres)).url;
  const child = fork(fileURLToPath(new URL("submit-server.ts", import.meta.url)), where === null ? [] : [where]);
  const ready = await answerOf<Answer, "ready">(child, "ready");
  const closing = new AbortController();
  const client = connect(ready.api, closing.signal);
  const echo = new Client(ready.echo, credentials.createInsecure());
  const ratios: Record<string, number> = {};
  const report = (measured: Rate, floor: Rate) => {
    ratios[`${measured.name} / ${floor.name}`] = measured.perSecond / floor.perSecond;
    print(reportLine(measured, floor));
  };
  try {
    const bytes = toBinary(CreateJobRequestSchema, create(CreateJobRequestSchema, requestOf("bench-0-0"))).length;
    const payload = Buffer.alloc(bytes, 1);
    if (profile) await ask(child, { kind: "profile" }, "done");
    for (const count of callers) {
      const load = { callers: count, seconds };
      const bare = await callRate("echo", () => sendOnce(echo, ECHO, payload), load);
      const insert = await callRate("echo with an insert", () => sendOnce(echo, INSERT, payload), load);
      const submitOne = (call: number) => client.call(JobService.method.createJob, requestOf(`one-${count}-${call}`));
      const measured = await callRate(`submit, ${count} callers`, submitOne, load);
      for (const floor of [bare, insert]) report(measured, floor);
    }
    if (profile) await printProfile(child, "single submits and echo", print);
    if (profile) await ask(child, { kind: "profile" }, "done");
    const submitBatch = (call: number) => {
      const requests = Array.from({ length: batch }, (_, at) => requestOf(`batch-${call}-${at}`));
      return client.call(JobService.method.batchCreateJobs, { requests });
    };
    const calls = await callRate("", submitBatch, { callers: 1, seconds });
    if (profile) await printProfile(child, "batches", print);
    const rows = Math.max(batch, Math.ceil(2000 * seconds));
    const insert = { kind: "insert", rows, bytes, perTransaction: ROWS_PER_TRANSACTION } as const;
    const { perSecond } = await ask(child, insert, "inserted");
    report(
      { name: `submit in batches of ${batch}`, perSecond: calls.perSecond * batch },
      { name: "bare insert", perSecond },
    );
  } finally {
    closing.abort();
    client.close();
    echo.close();
    const ended = once(child, "exit");
    child.send({ kind: "end" } satisfies Order);
    await within("the end of the server", WAIT_MS_MAX, ended);
  }
  return ratios;
}

async function printProfile(child: ChildProcess, title: string, print: (line: string) => void): Promise<void> {
  const { times } = await ask(child, { kind: "profiled" }, "profile");
  for (const line of profileLines(title, times)) print(line);
}

function sendOnce(client: Client, path: string, payload: Buffer): Promise<void> {
  const pass = (bytes: Buffer) => bytes;
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, pass, pass, payload, (error) => (error === null ? resolve() : reject(error)));
  });
}

/** A job of a master and three workers, like a small manifest. */
function requestOf(name: string) {
  const container = {
    name: "pytorch",
    image: "example.com/train:1",
    command: ["python", "train.py", "--epochs", "10"],
  };
  const limits = { cpu: "8", memory: "64Gi", "nvidia.com/gpu": "1" };
  const template = { spec: { containers: [{ ...container, resources: { limits } }] } };
  const replicaSpecs = { Master: { replicas: 1, template }, Worker: { replicas: 3, template } };
  const runPolicy = { schedulingPolicy: { queue: "bench" } };
  return { job: { metadata: { name, namespace: "bench" }, spec: { kind: "PyTorchJob", replicaSpecs, runPolicy } } };
}
