/** Logs that are followed while the service restarts, and the replica of a global rank. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type JsonObject } from "@bufbuild/protobuf";
import fc from "fast-check";
import { followLogs } from "../../src/cli/jobs/follow-logs.ts";
import { replicaOfRank } from "../../src/cli/jobs/log-targets.ts";
import { CallError, STATUS } from "../../src/cli/rpc/call-error.ts";
import type { Run } from "../../src/cli/run/run-command.ts";
import { type FailureLog, FailureLogSchema } from "../../src/gen/gangway/v1/failure_log_pb.ts";
import { JobSchema } from "../../src/gen/gangway/v1/job_pb.ts";
import { LogLineSchema } from "../../src/gen/gangway/v1/job_service_pb.ts";

/** A line of a replica: its time may be that of the line before. Kept lines have none, and come in one message. */
type Written = { readonly replica: string; readonly atMs: number; readonly text: string; readonly kept?: number };

const lost = () => new CallError(STATUS.UNAVAILABLE, "the connection was lost: the answer has no status");
const refused = () => new CallError(STATUS.UNAVAILABLE, "cannot connect to x:1: ECONNREFUSED", { isSent: false });

/** A service that breaks each call off after so many lines; a call of 0 lines cannot connect. */
function runOf(written: readonly Written[], breaks: readonly number[], failure = lost) {
  const left = [...breaks];
  const asked: unknown[] = [];
  let nowMs = 0;
  const client = {
    stream: async function* (_method: unknown, request: { readonly tailLines?: bigint }) {
      asked.push(request.tailLines);
      const lines = request.tailLines === undefined ? written : written.slice(-Number(request.tailLines));
      const count = left.shift();
      if (count === 0) throw failure === lost ? refused() : failure();
      for (const { replica, atMs, text, kept } of count === undefined ? lines : lines.slice(0, count)) {
        if (kept !== undefined) {
          yield {
            kept: create(FailureLogSchema, { replica, container: "c", pod: `p-${replica}`, attempt: kept }),
            lines: [1, 2].map(() => create(LogLineSchema, { replica, container: "c", text })),
          };
          continue;
        }
        const time = { seconds: BigInt(Math.floor(atMs / 1000)), nanos: (atMs % 1000) * 1_000_000 };
        yield { lines: [create(LogLineSchema, { replica, container: "c", text, time })] };
      }
      if (count !== undefined) throw failure();
    },
  };
  const clock = {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    sleep: async (ms: number) => {
      nowMs += ms;
    },
  };
  const run = { client, deps: { clock, signal: new AbortController().signal } } as unknown as Run;
  return { run, asked };
}

async function read(run: Run, request: { readonly follow: boolean; readonly tailLines?: bigint }) {
  const texts: string[] = [];
  const onKept = ({ replica, attempt }: FailureLog) => void texts.push(`${replica} kept of attempt ${attempt}`);
  for await (const lines of followLogs(run, { name: "a", timestamps: true, ...request }, onKept)) {
    for (const { replica, text } of lines) texts.push(`${replica} ${text}`);
  }
  return texts;
}

const logs = fc
  .array(fc.record({ replica: fc.constantFrom("Worker/0", "Worker/1"), stepMs: fc.nat({ max: 2 }) }), { minLength: 1 })
  .map((lines) => {
    let atMs = 0;
    return lines.map(({ replica, stepMs }, at): Written => {
      atMs += stepMs;
      return { replica, atMs, text: `line ${at}` };
    });
  });

test("a log that is followed goes on after each break, and has every line once", async () => {
  await fc.assert(
    fc.asyncProperty(logs, fc.array(fc.nat({ max: 12 }), { maxLength: 5 }), async (written, breaks) => {
      const { run } = runOf(written, [Math.max(1, breaks[0] ?? 1), ...breaks.slice(1)]);
      const texts = await read(run, { follow: true });
      assert.deepEqual(
        texts,
        written.map(({ replica, text }) => `${replica} ${text}`),
      );
    }),
  );
});

test("kept lines that follow the log of an ended job are shown once, although the stream breaks", async () => {
  const attempts = fc.uniqueArray(fc.tuple(fc.constantFrom("Worker/0", "Worker/1"), fc.integer({ min: 1, max: 3 })), {
    selector: String,
    maxLength: 4,
  });
  await fc.assert(
    fc.asyncProperty(logs, attempts, fc.array(fc.nat({ max: 12 }), { maxLength: 5 }), async (lines, kept, breaks) => {
      const written = [
        ...lines,
        ...kept.map(([replica, attempt]): Written => ({ replica, atMs: 0, text: `of ${attempt}`, kept: attempt })),
      ];
      const { run } = runOf(written, [Math.max(1, breaks[0] ?? 1), ...breaks.slice(1)]);
      assert.deepEqual(await read(run, { follow: true }), [
        ...lines.map(({ replica, text }) => `${replica} ${text}`),
        ...kept.flatMap(([replica, attempt]) => [
          `${replica} kept of attempt ${attempt}`,
          `${replica} of ${attempt}`,
          `${replica} of ${attempt}`,
        ]),
      ]);
    }),
  );
});

const line: Written = { replica: "Worker/0", atMs: 1, text: "x" };

test("only the first call asks for the last lines alone", async () => {
  const { run, asked } = runOf([line, { ...line, atMs: 2, text: "y" }, { ...line, atMs: 3, text: "z" }], [1]);
  assert.deepEqual(await read(run, { follow: true, tailLines: 2n }), ["Worker/0 y", "Worker/0 z"]);
  assert.deepEqual(asked, [2n, undefined]);
});

const expired = () => new CallError(STATUS.UNAUTHENTICATED, "the token has expired");

test("a log whose token has expired goes on with the next token", async () => {
  const { run } = runOf([line, { ...line, atMs: 2, text: "y" }], [1], expired);
  assert.deepEqual(await read(run, { follow: true }), ["Worker/0 x", "Worker/0 y"]);
});

const fails: Readonly<Record<string, { readonly breaks: readonly number[]; failure?: () => CallError }>> = {
  "there is no service at first": { breaks: [0] },
  "the service says at first that it has no log": {
    breaks: [1],
    failure: () => new CallError(STATUS.NOT_FOUND, "job default/a does not exist"),
  },
  "its token expires, and the next one does not count": { breaks: [1, 0], failure: expired },
  "another caller gets its place": {
    breaks: [1],
    failure: () => new CallError(STATUS.RESOURCE_EXHAUSTED, "too many logs are followed"),
  },
  "the service does not come back": { breaks: [1, ...Array.from({ length: 100 }, () => 0)] },
};
for (const [name, { breaks, failure }] of Object.entries(fails)) {
  test(`a log that is followed fails if ${name}`, async () => {
    const { run } = runOf([line], breaks, failure);
    await assert.rejects(read(run, { follow: true }), CallError);
  });
}

test("a log that is not followed fails at a break", async () => {
  await assert.rejects(read(runOf([line], [1]).run, { follow: false }), CallError);
});

const gpus = (count: number) => ({
  spec: { containers: [{ name: "c", resources: { limits: { "nvidia.com/gpu": count } } }] },
});
const ranks: Readonly<
  Record<string, { spec: Readonly<Record<string, number>>; kindSpec?: JsonObject; rank: number; replica: string }>
> = {
  "the master is first": { spec: { Master: 1, Worker: 3 }, rank: 0, replica: "Master/0" },
  "workers follow the master": { spec: { Master: 1, Worker: 3 }, rank: 3, replica: "Worker/2" },
  "workers alone begin at 0": { spec: { Worker: 3 }, rank: 2, replica: "Worker/2" },
  "a replica with several processes has several ranks": {
    spec: { Master: 1, Worker: 3 },
    kindSpec: { nprocPerNode: "8" },
    rank: 13,
    replica: "Worker/0",
  },
  "with auto, a replica has a process for each GPU": {
    spec: { Master: 1, Worker: 3 },
    kindSpec: { nprocPerNode: "auto" },
    rank: 31,
    replica: "Worker/2",
  },
  "the launcher of MPI has no rank": {
    spec: { Launcher: 1, Worker: 2 },
    kindSpec: { slotsPerWorker: 4 },
    rank: 5,
    replica: "Worker/1",
  },
  "parameter servers have no rank": { spec: { Chief: 1, PS: 2, Worker: 2 }, rank: 1, replica: "Worker/0" },
};
for (const [name, { spec, kindSpec = {}, rank, replica }] of Object.entries(ranks)) {
  test(`the replica of a rank: ${name}`, () => {
    const replicaSpecs = Object.fromEntries(
      Object.entries(spec).map(([role, replicas]) => [role, { replicas, template: gpus(8) }]),
    );
    assert.equal(replicaOfRank(create(JobSchema, { spec: { replicaSpecs, kindSpec } }), rank), replica);
  });
}
