import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { readConfig } from "../../src/config/config.ts";
import { otelSdkIsInstalled } from "./otel-sdk-installed.ts";

const EMIT = fileURLToPath(new URL("emit-telemetry.ts", import.meta.url));

async function emit(env: Record<string, string>, file: string) {
  const child = spawn(process.execPath, [EMIT, file], {
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
  return { stderr, code };
}

test("spans, metrics and log lines of one call reach a collector under the caller's trace", {
  skip: !otelSdkIsInstalled(),
}, async () => {
  const directory = mkdtempSync(join(tmpdir(), "gangway-otlp-"));
  const received = new Map<string, string>();
  const collector = createServer(async (request, response) => {
    received.set(request.url ?? "", (received.get(request.url ?? "") ?? "") + (await text(request)));
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  collector.listen(0, "127.0.0.1");
  await once(collector, "listening");
  try {
    const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
    const log = join(directory, "gangway.log");
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_METRICS_EXPORTER: "otlp",
    };
    assert.deepEqual(await emit(env, log), { stderr: "", code: 0 });
    const traces = received.get("/v1/traces") ?? "";
    assert.match(traces, /"name":"gangway.v1.JobService\/CreateJob"/);
    assert.match(traces, /0af7651916cd43dd8448eb211c80319c/);
    assert.match(traces, /"stringValue":"gangway"/);
    const metrics = received.get("/v1/metrics") ?? "";
    for (const name of [
      "gangway_buckets_held",
      "gangway_api_call_duration_seconds",
      "gangway_cluster_silence_seconds",
    ]) {
      assert.match(metrics, new RegExp(`"name":"${name}"`));
    }
    assert.equal(JSON.parse(readFileSync(log, "utf8")).trace_id, "0af7651916cd43dd8448eb211c80319c");
  } finally {
    collector.close();
    rmSync(directory, { recursive: true });
  }
});

test("without the SDK, variables that need it stop the start with an error that says what to do", {
  skip: otelSdkIsInstalled(),
}, async () => {
  const { stderr, code } = await emit({ OTEL_TRACES_EXPORTER: "otlp" }, "unused.log");
  assert.equal(code, 1);
  assert.match(stderr, /needs the package @opentelemetry\/sdk-node/);
});

const asked: Record<string, { env: Record<string, string>; otel: unknown }> = {
  "off by default": { env: {}, otel: null },
  "on with an endpoint": { env: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://c" }, otel: { serviceName: "gangway" } },
  "on with an exporter": { env: { OTEL_TRACES_EXPORTER: "console" }, otel: { serviceName: "gangway" } },
  "off with the exporter none": { env: { OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "none" }, otel: null },
  "off if the SDK is disabled": { env: { OTEL_SDK_DISABLED: "true", OTEL_TRACES_EXPORTER: "otlp" }, otel: null },
  "a named service keeps its name": {
    env: { OTEL_TRACES_EXPORTER: "otlp", OTEL_SERVICE_NAME: "gangway-eu" },
    otel: { serviceName: null },
  },
  "a resource may name it too": {
    env: { OTEL_TRACES_EXPORTER: "otlp", OTEL_RESOURCE_ATTRIBUTES: "a=b,service.name=x" },
    otel: { serviceName: null },
  },
};
for (const [name, { env, otel }] of Object.entries(asked)) {
  test(`OTEL_* variables: ${name}`, () => assert.deepEqual(readConfig("/", env).otel, otel));
}
