import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { ErrorInfoSchema } from "../../../src/gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../../src/gen/google/rpc/status_pb.ts";
import { Bank } from "./bank.ts";
import { type Answer, Caller, framed } from "./caller.ts";
import { copies } from "./copies.ts";
import { Departed } from "./departed.ts";
import { changedTables } from "./digest.ts";
import { growth } from "./growth.ts";
import { decode, encode, methodsNamed, type PlannedCall, planCall } from "./plan.ts";
import { schedule } from "./schedule.ts";
import { shrunk } from "./shrink.ts";
import { stallsOver, stoodStill } from "./stalls.ts";
import { METHODS, methodNamed, shortName } from "./surface.ts";
import { isTimed, problemsOf } from "./verdict.ts";

const GET_JOB = methodNamed("JobService.GetJob");

function callsOf(seed: number, count: number): readonly PlannedCall[] {
  const options = { seed, bank: new Bank(), methods: methodsNamed([]) };
  return Array.from({ length: count }, (_, number) => planCall(options, number, ["valid", "mutated", "generated"]));
}

test("a seed makes the same calls again, and calls every RPC", () => {
  const [once, again] = [callsOf(7, 1500), callsOf(7, 1500)];
  assert.deepEqual(
    once.map(({ request }) => request.toString("hex")),
    again.map(({ request }) => request.toString("hex")),
  );
  const called = new Set(once.map(({ method }) => method));
  assert.deepEqual(METHODS.filter((method) => !called.has(method)).map(shortName), []);
});

test("a list of a large item has only as many copies as make a message too large", () => {
  const large = { text: "a".repeat(1_100_000) };
  assert.equal(copies(large, 1001).length, 20);
  assert.equal(copies({ text: "a" }, 1001).length, 1001);
});

test("a caller with a large message under way reads the answers to its other calls", async (t) => {
  const server = createServer();
  t.after(() => server.close());
  server.on("stream", (stream, { ":path": path }) => {
    stream.on("error", () => {});
    if (path === "/small") stream.respond({ ":status": 200, "grpc-status": "0" }, { endStream: true });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const caller = new Caller(`127.0.0.1:${(server.address() as AddressInfo).port}`, 1);
  const large = caller.call("/large", Buffer.alloc(20 * 2 ** 20));
  const { status, failure } = await caller.call("/small", framed(Buffer.alloc(0)));
  caller.close();
  await large;
  assert.deepEqual({ status, failure }, { status: 0, failure: null });
});

test("a run of any length has the calls that were asked for, in groups that follow each other", () => {
  for (const calls of [1, 340, 341, 1234]) {
    const groups = schedule(calls);
    assert.equal(
      groups.reduce((sum, group) => sum + group.calls, 0),
      calls,
    );
    assert.deepEqual(
      groups.map(({ from }) => from),
      groups.map((_, at) => groups.slice(0, at).reduce((sum, group) => sum + group.calls, 0)),
    );
  }
});

const ANSWER: Answer = {
  status: 0,
  message: "",
  details: null,
  messages: [Buffer.alloc(0)],
  httpStatus: 200,
  left: false,
  failure: null,
  trailerBytes: 0,
  headers: "",
};

function refused(status: number, reason: string, code = status): Answer {
  const info = anyPack(ErrorInfoSchema, create(ErrorInfoSchema, { reason, domain: "gangway.dev" }));
  const bytes = toBinary(StatusSchema, create(StatusSchema, { code, message: "why", details: [info] }));
  return { ...ANSWER, status, message: "why", messages: [], details: Buffer.from(bytes) };
}

const verdicts: Readonly<Record<string, { readonly answer: Answer; readonly says: RegExp | null }>> = {
  "a response that decodes": { answer: ANSWER, says: null },
  "a response that does not decode": { answer: { ...ANSWER, messages: [Buffer.from([0x0a])] }, says: /not decode/ },
  "OK without a response": { answer: { ...ANSWER, messages: [] }, says: /0 messages/ },
  "no status": { answer: { ...ANSWER, status: null, failure: "closed" }, says: /no status/ },
  "an error with its reason": { answer: refused(5, "JOB_NOT_FOUND"), says: null },
  "an error without details": { answer: { ...refused(5, "X"), details: null }, says: /without details/ },
  "a request that gRPC finds too large": {
    answer: { ...refused(8, "X"), details: null, message: "Received message larger than max (9 vs 8)" },
    says: null,
  },
  "details of another code": { answer: refused(5, "X", 6), says: /ALREADY_EXISTS/ },
  "INVALID_ARGUMENT that names no field": { answer: refused(3, "INVALID_FIELDS"), says: /names no field/ },
  INTERNAL: { answer: refused(13, "INTERNAL"), says: /INTERNAL: why/ },
  UNKNOWN: { answer: refused(2, "X"), says: /UNKNOWN: why/ },
  "UNAVAILABLE while every store is there": { answer: refused(14, "STORE_UNAVAILABLE"), says: /UNAVAILABLE: why/ },
  "UNAVAILABLE because of a caller's cluster": { answer: refused(14, "CLUSTER_UNAVAILABLE"), says: null },
  "trailers that clients drop": { answer: { ...refused(5, "X"), trailerBytes: 9000 }, says: /trailers/ },
};
for (const [name, { answer, says }] of Object.entries(verdicts)) {
  test(`the verdict on ${name}`, () => {
    const problems = problemsOf(GET_JOB, answer);
    if (says === null) assert.deepEqual(problems, []);
    else assert.match(problems.join("; "), says);
  });
}

test("a failing request loses every field that its failure does not need", async () => {
  const method = methodNamed("JobService.ListJobs");
  const tree = { filter: { namespace: "a", queue: "bad", names: ["b"] }, pageSize: 3, pageToken: "c" };
  const call = { number: 0, style: "valid", method, request: encode(method, tree) } as const;
  const smallest = await shrunk(call, async (one) => JSON.stringify(decode(one)).includes('"bad"'));
  assert.deepEqual(smallest.request, encode(method, { filter: { queue: "bad" } }));
});

test("tokens of callers that have left are known for a while", () => {
  const departed = new Departed();
  const method = methodNamed("ResourceManager.WaitForResource");
  const call = { style: "valid", method } as const;
  const named = (token: string) => encode(method, { resourceNamespace: "p", allocationToken: token });
  departed.note({ ...call, number: 1, request: named(`it's "a"`) });
  departed.note({ ...call, number: 200, request: named("b") });
  assert.deepEqual(departed.tokens, [`it's "a"`, "b"]);
  departed.note({ ...call, number: 400, request: named("c") });
  assert.deepEqual(departed.tokens, ["b", "c"]);
});

test("a changed table, a grown heap and a stall by the service's own work are noticed", () => {
  assert.deepEqual(changedTables({ jobs: "a", pools: "b" }, { jobs: "a", pools: "c" }), ["pools"]);
  const small = { heapBytes: 0, externalBytes: 0, rssBytes: 0, handles: { TCPSocketWrap: 3 } };
  assert.equal(growth(small, { ...small, heapBytes: 2 ** 30, handles: { TCPSocketWrap: 300 } }).length, 2);
  const stall = { fromMs: 0, forMs: 5000, cpuMs: 4000 };
  assert.equal(stallsOver([stall], []).length, 1);
  assert.equal(stallsOver([{ ...stall, cpuMs: 10 }], [stall]).length, 0, "the machine was busy");
  const busy = { fromMs: 100, forMs: 300, cpuMs: 0 };
  assert.equal(stallsOver([stall], [busy, { ...busy, fromMs: 900 }]).length, 1, "an idle loop ran in between");
});

test("no time counts while the machine stands still, and everything else does", () => {
  const service = { fromMs: 0, forMs: 43_210, cpuMs: 1_800 };
  const idle = { fromMs: 2_000, forMs: 35_619, cpuMs: 1 };
  assert.equal(stoodStill([{ ...idle, forMs: 900 }]), false);
  assert.equal(stoodStill([idle]), true);
  assert.deepEqual(stallsOver([service], [idle]), []);
  assert.equal(stallsOver([service], [{ ...idle, fromMs: 50_000 }]).length, 1, "it stood still later");
  const timed = ["no status (the stream ended)", "UNAVAILABLE: the database does not answer: timeout exceeded"];
  assert.deepEqual(timed.filter(isTimed), timed);
  const real = ["INTERNAL: why", "UNKNOWN: why", "NOT_FOUND (why), yet jobs changed", "OK with 0 messages"];
  assert.deepEqual(real.filter(isTimed), []);
});
