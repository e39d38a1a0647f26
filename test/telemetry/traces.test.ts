import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { connect } from "../../src/cli/rpc/client.ts";
import { JobPhase } from "../../src/gen/gangway/v1/job_pb.ts";
import {
  CreateJobRequestSchema,
  CreateJobResponseSchema,
  JobService,
} from "../../src/gen/gangway/v1/job_service_pb.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { createTelemetry } from "../../src/telemetry/events.ts";
import { createInstrumentation } from "../../src/telemetry/instrumentation.ts";
import { createPrometheus } from "../../src/telemetry/prometheus.ts";
import { formatTraceParent, parseTraceParent } from "../../src/telemetry/trace-parent.ts";
import { createTracing } from "../../src/telemetry/tracing.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { type SeenSpan, traceInMemory } from "./memory-tracer.ts";
import { startObserved } from "./traced-service.ts";

const CALLERS_TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLERS_SPAN = "b7ad6b7169203331";

const quickly = { "sim.gangway.dev/pull": "1ms", "sim.gangway.dev/start": "1ms", "sim.gangway.dev/run": "20ms" };
const template = { metadata: { annotations: quickly }, spec: { containers: [{ name: "main", image: "busybox" }] } };

let undo: (() => void) | null = null;
afterEach(() => {
  undo?.();
  undo = null;
});

function traced(): readonly SeenSpan[] {
  const memory = traceInMemory();
  undo = memory.off;
  return memory.spans;
}

/** Creates a job of two pods as a traced caller, and resolves once it has succeeded. */
async function runJob(address: string): Promise<void> {
  const metadata = new Metadata();
  metadata.set("traceparent", `00-${CALLERS_TRACE}-${CALLERS_SPAN}-01`);
  const spec = { kind: "Job", replicaSpecs: { Worker: { replicas: 2, template } } };
  const request = create(CreateJobRequestSchema, { job: { metadata: { name: "traced", namespace: "default" }, spec } });
  const client = new Client(address, credentials.createInsecure());
  await new Promise<void>((resolve, reject) => {
    client.makeUnaryRequest(
      "/gangway.v1.JobService/CreateJob",
      (message: typeof request) => Buffer.from(toBinary(CreateJobRequestSchema, message)),
      (bytes: Buffer) => fromBinary(CreateJobResponseSchema, bytes),
      request,
      metadata,
      (error) => (error === null ? resolve() : reject(error)),
    );
  });
  client.close();
  const stop = new AbortController();
  const reader = connect(address, stop.signal);
  for await (const { job } of reader.stream(JobService.method.watchJobs, {}, stop.signal)) {
    if (job?.status?.phase === JobPhase.SUCCEEDED && !job.status.draining) break;
  }
  reader.close();
}

test("one trace leads from the call over intake, planner and worker to the Kubernetes calls", async () => {
  const spans = traced();
  const service = await startObserved({ tracing: createTracing(), meter: null });
  await runJob(service.address);
  await service[Symbol.asyncDispose]();
  assert.deepEqual(service.errors, []);
  const byId = new Map(spans.map((span) => [span.spanId, span]));
  const path = (span: SeenSpan): string =>
    span.parentSpanId === CALLERS_SPAN
      ? span.name
      : `${path(byId.get(span.parentSpanId ?? "") as SeenSpan)} > ${span.name}`;
  const ours = spans.filter(({ traceId }) => traceId === CALLERS_TRACE);
  const from = "gangway.v1.JobService/CreateJob > intake submit";
  const paths = new Set(ours.map(path));
  for (const wanted of [
    "gangway.v1.JobService/CreateJob",
    from,
    `${from} > planner admit`,
    `${from} > worker step`,
    `${from} > worker step > worker record`,
    `${from} > worker step > kubernetes create configmaps`,
    `${from} > worker step > kubernetes create pods`,
  ]) {
    assert.ok(paths.has(wanted), `${wanted} in ${[...paths].join("\n")}`);
  }
  assert.deepEqual(
    spans.filter((span) => !span.ended),
    [],
  );
  assert.deepEqual(
    spans.filter((span) => span.failed),
    [],
  );
  const admit = ours.find(({ name }) => name === "planner admit");
  assert.equal(admit?.attributes["gangway.outcome"], "recorded");
});

test("each stage of a job is measured, under the documented names of metrics", async () => {
  const prometheus = await createPrometheus();
  const service = await startObserved({ tracing: null, meter: prometheus });
  await runJob(service.address);
  const { body } = await prometheus.scrape();
  await service[Symbol.asyncDispose]();
  const value = (series: string) => {
    const line = body.split("\n").find((one) => one.startsWith(`${series} `));
    return line === undefined ? null : Number(line.split(" ")[1]);
  };
  assert.equal(value('gangway_api_call_duration_seconds_count{method="gangway.v1.JobService/CreateJob",code="OK"}'), 1);
  assert.equal(value('gangway_ledger_commits_total{kind="grant",outcome="recorded"}'), 1);
  assert.equal(value('gangway_ledger_commits_total{kind="release",outcome="recorded"}'), 1);
  assert.equal(value('gangway_admission_wait_seconds_count{queue="default"}'), 1);
  assert.equal(value('gangway_queue_depth{queue="default"}'), 0);
  assert.equal(value("gangway_buckets_held"), 1024);
  assert.ok((value("gangway_plan_duration_seconds_count") ?? 0) > 0);
  assert.ok((value("gangway_reconcile_lag_seconds_count") ?? 0) > 0);
  assert.ok((value("gangway_watch_lag_seconds_count") ?? 0) > 0);
  assert.ok((value('gangway_reconcile_duration_seconds_count{result="waiting"}') ?? 0) > 0);
  const call = 'cluster="h100-east",verb="create",resource="pods",code="2xx"';
  assert.equal(value(`gangway_kubernetes_calls_total{${call}}`), 2);
  assert.ok((value('gangway_cluster_silence_seconds{cluster="h100-east"}') ?? -1) >= 0);
});

test("without telemetry no part is wrapped, and no span is started", async () => {
  const spans = traced();
  const telemetry = createTelemetry({ level: "silent", file: null });
  const instrumentation = createInstrumentation({
    clock: systemClock(),
    telemetry,
    kinds: OWN_KINDS,
    tracing: null,
    meter: null,
  });
  const anything = {} as never;
  for (const wrap of [
    instrumentation.plannerStore,
    instrumentation.workerStore,
    instrumentation.watchStore,
    instrumentation.intake,
  ]) {
    assert.equal((wrap as (value: object) => object)(anything), anything);
  }
  const { intakePorts, plannerPorts, workerPorts, workerOptions, apiPorts } = instrumentation;
  assert.deepEqual([intakePorts, plannerPorts, workerPorts, workerOptions, apiPorts], [{}, {}, {}, {}, {}]);
  assert.deepEqual(instrumentation.kubeClient("east"), {});
  const service = await startObserved({ tracing: null, meter: null });
  await runJob(service.address);
  await service[Symbol.asyncDispose]();
  assert.deepEqual(spans, []);
});

test("an error within a span is recorded, thrown again, and ends the span", async () => {
  const spans = traced();
  const failing = createTracing().span({ name: "worker step" }, () => Promise.reject(new Error("lost")));
  await assert.rejects(failing, /lost/);
  assert.deepEqual([spans[0]?.ended, spans[0]?.failed], [true, true]);
});

const parents: Record<string, { text: string; names: string | null }> = {
  "a valid one is read": { text: `00-${CALLERS_TRACE}-${CALLERS_SPAN}-01`, names: CALLERS_TRACE },
  "zeros are refused": { text: `00-${"0".repeat(32)}-${CALLERS_SPAN}-01`, names: null },
  "another version is refused": { text: `01-${CALLERS_TRACE}-${CALLERS_SPAN}-01`, names: null },
  "a shorter one is refused": { text: `00-${CALLERS_TRACE}-01`, names: null },
  "an empty one is refused": { text: "", names: null },
};
for (const [name, { text, names }] of Object.entries(parents)) {
  test(`a traceparent: ${name}`, () => {
    const parsed = parseTraceParent(text);
    assert.equal(parsed?.traceId ?? null, names);
    if (parsed !== null) assert.equal(formatTraceParent(parsed), text);
  });
}
