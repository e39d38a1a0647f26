/** What the bench of submits and that of reads share. */
import type { ChildProcess } from "node:child_process";
import type { Client } from "@grpc/grpc-js";
import type { ordersTo } from "./child-orders.ts";
import { ownCpuMs } from "./cpu-time.ts";
import { profileLines, type Rate } from "./measure.ts";
import type { Answer, Order } from "./submit-orders.ts";
import type { TimedRate } from "./timed-rate.ts";

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
  /** The number of jobs, all of which have ended, among which others are read. */
  readonly finished: number;
  /** The orders of lists. Omitted: all. */
  readonly orders?: readonly string[];
  /** The jobs that are submitted. Omitted: `SMALL`. */
  readonly jobs?: JobShape;
};

/** The jobs that a bench submits. */
export type JobShape = {
  /** With the master. */
  readonly replicas: number;
  /** True: the templates of each job have an argument and a variable of their own, as in a sweep of parameters. */
  readonly distinct: boolean;
};

/** A master and three workers, and the same templates in all jobs. */
export const SMALL: JobShape = { replicas: 4, distinct: false };

/** What the parts of the bench share. */
export type SubmitParts = {
  readonly ask: ReturnType<typeof ordersTo<Order, Answer>>;
  readonly child: ChildProcess;
  /** Calls the service and the bare server with bytes, and returns those of the answer. */
  readonly service: Send;
  readonly bare: Send;
  readonly report: (measured: Rate, floor: Rate) => void;
  readonly print: (line: string) => void;
};

/** Clients of any language encode and decode messages, so the bench leaves that out of the times of calls. */
type Send = (path: string, payload: Buffer) => Promise<Buffer>;

export function sender(client: Client): Send {
  const pass = (bytes: Buffer) => bytes;
  return (path, payload) =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(path, pass, pass, payload, (error, answer) =>
        error === null ? resolve(answer ?? Buffer.alloc(0)) : reject(error),
      );
    });
}

/** The rate, and the CPU time of a call in each place that it passes. Calls of the warm-up count in it. */
export async function costed(
  { ask, child }: SubmitParts,
  measure: () => Promise<TimedRate>,
): Promise<{ readonly rate: TimedRate; readonly cost: string }> {
  const before = { ...(await ask(child, { kind: "cpu" }, "cpu")), benchMs: ownCpuMs() };
  const rate = await measure();
  const after = { ...(await ask(child, { kind: "cpu" }, "cpu")), benchMs: ownCpuMs() };
  const of = (ms: number) => `${(ms / rate.timesMs.length).toFixed(2)} ms`;
  const postgres = after.postgresMs === null ? "" : `, PostgreSQL ${of(after.postgresMs - (before.postgresMs ?? 0))}`;
  const service = of(after.serviceMs - before.serviceMs);
  return { rate, cost: `service ${service}${postgres}, bench ${of(after.benchMs - before.benchMs)}` };
}

/** Also prints where the CPU time of the service went, if that is wanted. */
export async function profiled(
  { ask, child, print }: SubmitParts,
  wanted: boolean,
  title: string,
  run: () => Promise<void>,
): Promise<void> {
  if (wanted) await ask(child, { kind: "profile" }, "done");
  await run();
  if (!wanted) return;
  const { times } = await ask(child, { kind: "profiled" }, "profile");
  for (const line of profileLines(title, times)) print(line);
}

/** A job of a master and workers, like a manifest of a user. */
export function requestOf(name: string, { replicas, distinct }: JobShape = SMALL) {
  const command = ["python", "train.py", "--epochs", "10"];
  const own = { command: [...command, "--trial", name], env: [{ name: "TRIAL", value: name }] };
  const container = { name: "pytorch", image: "example.com/train:1", ...(distinct ? own : { command }) };
  const limits = { cpu: "8", memory: "64Gi", "nvidia.com/gpu": "1" };
  const template = { spec: { containers: [{ ...container, resources: { limits } }] } };
  const replicaSpecs = { Master: { replicas: 1, template }, Worker: { replicas: replicas - 1, template } };
  const runPolicy = { schedulingPolicy: { queue: "bench" } };
  return { job: { metadata: { name, namespace: "bench" }, spec: { kind: "PyTorchJob", replicaSpecs, runPolicy } } };
}
