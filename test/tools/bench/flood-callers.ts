/**
 * A tenant that makes very many calls at a time, each at once after the one before it, whatever the answer is: submits,
 * watches, logs and tokens. It runs in a process of its own, from the order `start` until the order `stop`.
 */
import { getPriority, setPriority } from "node:os";
import { setImmediate } from "node:timers/promises";
import { CallError, STATUS } from "../../../src/cli/rpc/call-error.ts";
import { connect } from "../../../src/cli/rpc/client.ts";
import { JobService } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { ResourceManager } from "../../../src/gen/gangway/v1/resource_manager_pb.ts";
import type { FloodAnswer, FloodOrder } from "./flood-orders.ts";
import { POOL, suspendedJob } from "./known-service.ts";

const [address = "", token = "", namespace = "", callers = "1"] = process.argv.slice(2);
/** As if it ran on a machine of its own: it takes no CPU time that the service or the other tenant wants. */
const BELOW = 19;
const LAST = 19;
const { createJob, watchJobs, streamJobLogs } = JobService.method;
const { allocateResource, releaseResource } = ResourceManager.method;

setPriority(Math.min(getPriority() + BELOW, LAST));
const closing = new AbortController();
const security = { tls: null, token: async () => token };
/** One connection for each kind of calls. */
const newClient = () => connect(address, closing.signal, security);
const clients = [newClient(), newClient(), newClient(), newClient()] as const;
const [submits, tokens, watches, logs] = clients;
let made = 0;

async function firstOf(messages: AsyncIterable<unknown>): Promise<void> {
  for await (const _message of messages) return;
}

const KINDS: readonly (() => Promise<unknown>)[] = [
  () => {
    made += 1;
    return submits.call(createJob, suspendedJob(namespace, `flood-${process.pid}-${made}`));
  },
  async () => {
    made += 1;
    const names = { resourceNamespace: POOL, allocationToken: `flood-${process.pid}-${made}` };
    await tokens.call(allocateResource, names);
    await tokens.call(releaseResource, names);
  },
  () => firstOf(watches.stream(watchJobs, { filter: { namespace, names: ["flood"] } }, closing.signal)),
  () => firstOf(logs.stream(streamJobLogs, { namespace, name: "flood" }, closing.signal)),
];

let running = false;
let counts = { done: 0, limited: 0, failed: 0 };
let ended: Promise<unknown> = Promise.resolve();

async function flood(call: () => Promise<unknown>): Promise<void> {
  while (running) {
    const outcome = await call().then(() => "done" as const, outcomeOf);
    counts[outcome] += 1;
    // A call that fails without being sent must not keep the others from running.
    if (outcome !== "done") await setImmediate();
  }
}

function outcomeOf(error: unknown): "done" | "limited" | "failed" {
  if (!(error instanceof CallError)) throw error;
  // The job has no pods, so that its log cannot be read.
  if (error.code === STATUS.FAILED_PRECONDITION || error.code === STATUS.NOT_FOUND) return "done";
  return error.code === STATUS.RESOURCE_EXHAUSTED ? "limited" : "failed";
}

function start(): void {
  running = true;
  counts = { done: 0, limited: 0, failed: 0 };
  ended = Promise.all(KINDS.flatMap((call) => Array.from({ length: Number(callers) }, () => flood(call))));
}

async function stop(): Promise<void> {
  running = false;
  await ended;
}

const answer = (of: FloodAnswer) => process.send?.(of);
process.on("message", (order: FloodOrder) => {
  if (order.kind === "start") {
    start();
    answer({ kind: "started" });
  } else {
    void stop().then(() => answer({ kind: "stopped", counts }));
  }
});
process.on("disconnect", () => {
  running = false;
  closing.abort();
  for (const client of clients) client.close();
});
await submits.call(createJob, suspendedJob(namespace, "flood")).catch((error: unknown) => {
  // An earlier flood has made it.
  if (!(error instanceof CallError && error.code === STATUS.ALREADY_EXISTS)) throw error;
});
answer({ kind: "ready" });
