/** The API over HTTP: what it answers, whom it lets in before it reads anything, and how its bounds hold. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { request as httpsRequest } from "node:https";
import { suite, test } from "node:test";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { CONNECTION_BOUNDS } from "../../../src/api/connection-bounds.ts";
import { parseTrustedProxies } from "../../../src/api/web/client-address.ts";
import { JSON_VALUES_MAX } from "../../../src/api/web/decode-json.ts";
import { JobService } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { VERSION } from "../../../src/runtime/package-version.ts";
import { type ServedCall, servedCall } from "../../../src/runtime/served-call.ts";
import { fastClock } from "../../cluster/harness.ts";
import { waitUntil } from "../../support/bounded.ts";
import { Certificates, hasOpenssl } from "../../support/certificates.ts";
import { knownCallers } from "../../support/known-callers.ts";
import { pytorchJob } from "../jobs.ts";
import { MemoryStore } from "../memory-store.ts";
import { callJson, enveloped, headOf, openRaw, send, startWebFixture } from "./http.ts";

const GET_JOB = "JobService/GetJob";

test("a call in JSON is answered in JSON, with the version, the request's id, and headers that protect", async (t) => {
  const { url } = await startWebFixture(t);
  const answer = await callJson(url, "JobService/ListKinds", {}, { "x-request-id": "mine" });
  assert.equal(answer.status, 200);
  assert.ok(JSON.parse(answer.body).kinds.length > 0);
  assert.equal(answer.headers["gangway-version"], VERSION);
  assert.equal(answer.headers["x-request-id"], "mine");
  assert.match(String(answer.headers["content-security-policy"]), /default-src 'none'.*frame-ancestors 'none'/);
  assert.equal(answer.headers["x-content-type-options"], "nosniff");
  assert.equal(answer.headers["cross-origin-resource-policy"], "same-origin");
  assert.equal(answer.headers["cache-control"], "no-store");
  assert.equal(answer.headers["access-control-allow-origin"], undefined);
});

test("an error keeps its code, its message and each detail, which is JSON too", async (t) => {
  const { url } = await startWebFixture(t);
  const answer = await callJson(url, GET_JOB, { name: "mnist" });
  assert.equal(answer.status, 404);
  const { code, message, details } = JSON.parse(answer.body);
  assert.equal(code, "not_found");
  assert.equal(message, "job default/mnist does not exist");
  assert.deepEqual(
    details.map(({ type, debug }: { type: string; debug: { reason?: string } }) => [type, debug.reason]),
    [
      ["google.rpc.ResourceInfo", undefined],
      ["google.rpc.ErrorInfo", "JOB_NOT_FOUND"],
    ],
  );
});

/** Requests that are answered without their handler: status, and a part of the body. */
const refusals: Readonly<
  Record<string, readonly [Parameters<typeof send>[1] & { readonly path: string }, number, RegExp]>
> = {
  "a misspelled key": [post({ nmae: "x" }), 400, /key \\"nmae\\" is unknown/],
  "a key that is there twice": [post('{"name": "a", "name": "b"}'), 400, /name/],
  "a value of another type": [post({ name: 7 }), 400, /GetJobRequest.name/],
  "no JSON": [post("{"), 400, /in JSON/],
  "text that is not UTF-8": [post(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d])), 400, /in JSON/],
  "half of a surrogate pair": [post('{"name": "\\ud800"}'), 400, /name/],
  "a deep document": [post(`${"[".repeat(50_000)}`), 400, /in JSON/],
  "more values than JSON may have": [post(`{"a": [${"1,".repeat(JSON_VALUES_MAX)}1]}`), 400, /more than 200000 values/],
  "a field beyond its limit": [post({ name: "x".repeat(10_000) }), 400, /name/],
  "another content type, which needs no permission": [post({}, { "content-type": "text/plain" }), 415, /^$/],
  "a form": [post("a=b", { "content-type": "application/x-www-form-urlencoded" }), 415, /^$/],
  "no content type": [{ method: "POST", path: `/gangway.v1.${GET_JOB}` }, 415, /^$/],
  "native gRPC": [post("", { "content-type": "application/grpc" }), 415, /^$/],
  "a compressed request": [post("{}", { "content-encoding": "gzip" }), 501, /unknown compression/],
  GET: [{ path: `/gangway.v1.${GET_JOB}?message=%7B%7D&encoding=json` }, 405, /POST/],
  "a preflight of another site": [{ method: "OPTIONS", path: `/gangway.v1.${GET_JOB}` }, 405, /POST/],
  "a path without an RPC": [post({}, {}, "/gangway.v1.JobService/NoSuchMethod"), 404, /openapi/],
  "a service of gRPC alone": [post({}, {}, "/grpc.health.v1.Health/Check"), 404, /openapi/],
  "another path": [{ path: "/index.html" }, 404, /openapi/],
  "a path of objects": [{ path: "/constructor" }, 404, /openapi/],
  "a change of a page": [{ method: "POST", path: "/" }, 405, /GET/],
  "another host": [post({}, { host: "evil.example" }), 403, /GANGWAY_CONSOLE_HOSTS/],
  "a page of another site": [post({}, { origin: "https://evil.example" }), 403, /GANGWAY_CONSOLE_HOSTS/],
  "a script of another site": [post({}, { "sec-fetch-site": "cross-site" }), 403, /another site/],
};

function post(body: unknown, headers: Readonly<Record<string, string>> = {}, path = `/gangway.v1.${GET_JOB}`) {
  const text = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return { method: "POST", path, body: text, headers: { "content-type": "application/json", ...headers } };
}

suite("a request is refused before its handler, and the service goes on", () => {
  for (const [name, [{ path, ...request }, status, body]] of Object.entries(refusals)) {
    test(name, async (t) => {
      const reads = { ...new MemoryStore().reads, getJob: () => Promise.reject(new Error("the handler ran")) };
      const { url, internal } = await startWebFixture(t, { ports: { reads } });
      const answer = await send(`${url}${path}`, request);
      assert.equal(answer.status, status);
      assert.match(answer.body, body);
      assert.equal(answer.headers["x-content-type-options"], "nosniff");
      assert.deepEqual(internal, []);
      assert.equal((await callJson(url, "JobService/ListKinds", {})).status, 200);
    });
  }
});

test("requests that are turned away are counted by their reason", async (t) => {
  const reasons: string[] = [];
  const { url } = await startWebFixture(t, { ports: { requestTurnedAway: (reason) => void reasons.push(reason) } });
  await callJson(url, GET_JOB, {}, { host: "evil.example" });
  await callJson(url, GET_JOB, {}, { origin: "null" });
  await send(`${url}/nothing`);
  await send(`${url}/gangway.v1.${GET_JOB}`);
  await callJson(url, GET_JOB, { name: "x" });
  assert.deepEqual(reasons, ["host", "origin", "path", "method"]);
});

test("the root says what is here, and the description of the API is JSON", async (t) => {
  const { url } = await startWebFixture(t);
  assert.match((await send(url)).body, /POST \/gangway\.v1\.SERVICE\/METHOD/);
  const { status, body } = await send(`${url}/openapi.json`);
  assert.equal(status, 200);
  assert.equal(JSON.parse(body).openapi, "3.1.0");
  assert.equal((await send(`${url}/openapi.json`, { method: "HEAD" })).body, "");
});

suite("the clients of Connect", () => {
  const transports = {
    "Connect, JSON": (baseUrl: string) =>
      createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
    "Connect, binary": (baseUrl: string) =>
      createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: true }),
    "gRPC-Web, binary": (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
    "gRPC-Web, JSON": (baseUrl: string) =>
      createGrpcWebTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false }),
  };
  for (const [name, transport] of Object.entries(transports)) {
    test(`${name}: calls, errors with details, and streams`, async (t) => {
      const { url } = await startWebFixture(t);
      const client = createClient(JobService, transport(url));
      const created = await client.createJob({ job: pytorchJob() as never });
      const uid = created.job?.metadata?.uid;
      assert.equal((await client.getJob({ name: created.job?.metadata?.name ?? "" })).job?.metadata?.uid, uid);
      const failure = await client.getJob({ name: "nothing" }).then(
        () => null,
        (error: unknown) => error,
      );
      assert.equal((failure as { readonly rawMessage: string }).rawMessage, "job default/nothing does not exist");
      assert.equal((failure as { readonly details: readonly unknown[] }).details.length, 2);
      const leave = new AbortController();
      const seen: string[] = [];
      for await (const { job, type } of client.watchJobs({}, { signal: leave.signal })) {
        seen.push(job?.metadata?.uid ?? String(type));
        if (seen.length === 2) break;
      }
      leave.abort();
      assert.equal(seen[0], uid);
      await assert.rejects(client.watchJobs({ cursor: "x" })[Symbol.asyncIterator]().next(), /cursor/);
    });
  }

  test("a deadline that passes ends the call", async (t) => {
    const reads = { ...new MemoryStore().reads, getJob: () => new Promise<never>(() => {}) };
    const { url } = await startWebFixture(t, { ports: { reads } });
    const answer = await callJson(url, GET_JOB, { name: "x" }, { "connect-timeout-ms": "50" });
    assert.equal(JSON.parse(answer.body).code, "deadline_exceeded");
  });
});

suite("authentication comes before anything of a body is read", () => {
  test("a caller without credentials is UNAUTHENTICATED", async (t) => {
    const { authenticate, caller } = await knownCallers(t);
    const refused: string[] = [];
    const callRefused = (method: string) => void refused.push(method);
    const { url } = await startWebFixture(t, { ports: { authenticate, callRefused } });
    const without = await callJson(url, GET_JOB, "no JSON at all");
    assert.equal(without.status, 401);
    assert.equal(JSON.parse(without.body).code, "unauthenticated");
    const { token } = await caller("oidc", "ann");
    const known = await callJson(url, GET_JOB, { name: "x" }, { authorization: `Bearer ${token}` });
    assert.equal(known.status, 404);
    const twice = await callJson(url, GET_JOB, {}, { authorization: [`Bearer ${token}`, `Bearer ${token}`] });
    assert.equal(twice.status, 401, "a proxy may have looked at the other one");
    assert.deepEqual(refused, [`/gangway.v1.${GET_JOB}`, `/gangway.v1.${GET_JOB}`]);
  });

  test("a stream without credentials ends with the error", async (t) => {
    const { authenticate } = await knownCallers(t);
    const { url } = await startWebFixture(t, { ports: { authenticate } });
    const headers = { "content-type": "application/connect+json" };
    const path = "/gangway.v1.JobService/WatchJobs";
    const { body } = await send(`${url}${path}`, { method: "POST", headers, body: enveloped("{}") });
    assert.equal(JSON.parse(body.slice(5)).error.code, "unauthenticated");
  });

  test("15 MiB without credentials end early", async (t) => {
    const { authenticate } = await knownCallers(t);
    const { address } = await startWebFixture(t, { ports: { authenticate } });
    const { socket, text } = openRaw(t, address);
    const bytes = 15 * 1024 * 1024;
    socket.write(headOf(GET_JOB, `Content-Length: ${bytes}`));
    const part = Buffer.alloc(64 * 1024, 0x20);
    let sent = 0;
    const closed = once(socket, "close");
    while (sent < bytes && !socket.destroyed) {
      sent += part.length;
      if (!socket.write(part)) await Promise.race([once(socket, "drain").catch(() => {}), closed]);
    }
    await closed;
    assert.match(text(), /^HTTP\/1\.1 401 /);
    assert.ok(sent < bytes, `the connection ended after ${sent} bytes`);
  });

  test("a client that waits for 100 Continue gets the refusal in place of it", async (t) => {
    const { authenticate, caller } = await knownCallers(t);
    const { address } = await startWebFixture(t, { ports: { authenticate } });
    const refused = openRaw(t, address);
    refused.socket.write(headOf(GET_JOB, "Content-Length: 15000000", "Expect: 100-continue"));
    await once(refused.socket, "close");
    assert.match(refused.text(), /^HTTP\/1\.1 401 /);
    const { token } = await caller("oidc", "ann");
    const known = openRaw(t, address);
    const head = headOf(GET_JOB, "Content-Length: 12", "Expect: 100-continue", `Authorization: Bearer ${token}`);
    known.socket.write(head);
    await waitUntil("the service asks for the body", () => known.text().startsWith("HTTP/1.1 100 Continue\r\n\r\n"));
    known.socket.write('{"name":"x"}');
    await waitUntil("the answer is there", () => known.text().includes("JOB_NOT_FOUND"));
    assert.match(known.text(), /HTTP\/1\.1 404 [\s\S]*Connection: keep-alive/);
  });

  test("a caller at its limits is refused before its body is read", async (t) => {
    const limited = { kind: "limited", limit: "callsInFlight", max: 3, retryMs: 10, heldMs: 0 } as const;
    const { url } = await startWebFixture(t, { ports: { limits: { enter: () => limited, robotsOf: () => null } } });
    const { status, body } = await callJson(url, GET_JOB, "{");
    assert.equal(status, 429);
    assert.match(body, /already has 3 calls without an answer[\s\S]*TOO_MANY_CALLS_IN_FLIGHT/);
  });

  test("the place of a call is free once it ends, also if its body never arrives", async (t) => {
    const left: string[] = [];
    const place = {
      kind: "entered",
      isLimited: true,
      pay: () => null,
      charge: () => {},
      leave: () => left.push("left"),
    };
    const limits = { enter: () => place as never, robotsOf: () => null };
    const { url, address } = await startWebFixture(t, { ports: { limits } });
    await callJson(url, GET_JOB, { name: "x" });
    await callJson(url, GET_JOB, "{");
    const gone = openRaw(t, address);
    gone.socket.write(headOf(GET_JOB, "Content-Length: 100", "Expect: 100-continue"));
    await waitUntil("the call is let in", () => gone.text().includes("100 Continue"));
    assert.equal(left.length, 2);
    gone.socket.destroy();
    await waitUntil("the call whose client is gone has left", () => left.length === 3);
  });
});

test("what a call records has the address of the browser, its RPC and its id", async (t) => {
  const calls: (ServedCall | null)[] = [];
  const getJob = async () => {
    calls.push(servedCall());
    return null;
  };
  const reads = { ...new MemoryStore().reads, getJob };
  const trustedProxies = parseTrustedProxies("127.0.0.1");
  const { url } = await startWebFixture(t, { ports: { reads }, web: { trustedProxies } });
  await callJson(url, GET_JOB, { name: "x" }, { "x-forwarded-for": "1.1.1.1, 203.0.113.9", "x-request-id": "r1" });
  await callJson(url, GET_JOB, { name: "x" });
  const [forwarded, direct] = calls;
  assert.deepEqual(forwarded, {
    subject: "anonymous",
    method: "anonymous",
    peer: "203.0.113.9",
    rpc: "gangway.v1.JobService/GetJob",
    requestId: "r1",
  });
  assert.match(direct?.peer ?? "", /^127\.0\.0\.1:\d+$/);
});

suite("bounds", () => {
  test("a body beyond 16 MiB is refused at once, also if it does not say its length", async (t) => {
    const { url, address } = await startWebFixture(t);
    const told = openRaw(t, address);
    told.socket.write(headOf(GET_JOB, "Content-Length: 16777217"));
    await waitUntil("it is refused", () => told.text().startsWith("HTTP/1.1 429 "));
    const request = httpRequest(`${url}/gangway.v1.${GET_JOB}`, {
      method: "POST",
      headers: { "content-type": "application/json", "transfer-encoding": "chunked" },
      agent: false,
    });
    request.on("error", () => {});
    const answered = once(request, "response");
    request.write(Buffer.alloc(16 * 1024 * 1024 + 1, 0x20));
    const [response] = await answered;
    assert.equal(response.statusCode, 429);
    request.destroy();
  });

  test("a body that does not arrive within 30 s, and headers within 10 s, end their request", async (t) => {
    const { address } = await startWebFixture(t, { ports: { clock: fastClock(100) } });
    const slow = openRaw(t, address);
    slow.socket.write(`${headOf(GET_JOB, "Content-Length: 10")}{`);
    await waitUntil("the slow body is refused", () => slow.text().includes("REQUEST_TOO_SLOW"));
    assert.match(slow.text(), /^HTTP\/1\.1 504 /);
    const [half, silent] = [openRaw(t, address), openRaw(t, address)];
    half.socket.write("POST /gangway.v1.JobService/GetJob HTTP/1.1\r\nHost: local");
    await Promise.all([once(half.socket, "close"), once(silent.socket, "close")]);
  });

  test("an answer that its client does not read ends after a minute", async (t) => {
    const { url, address, call, connections } = await startWebFixture(t, { ports: { clock: fastClock(100) } });
    const job = { ...pytorchJob(), metadata: { name: "large", annotations: { text: "x".repeat(250_000) } } };
    assert.equal((await call(JobService.method.createJob, { job })).error, null);
    const { socket } = openRaw(t, address);
    socket.pause();
    // More than the buffers of both ends hold.
    const request = `${headOf(GET_JOB, "Content-Length: 16")}{"name":"large"}`;
    socket.write(request.repeat(100));
    await waitUntil("the connection is open", () => connections() === 1);
    await waitUntil("the connection is closed", () => connections() === 0);
    assert.equal((await callJson(url, GET_JOB, { name: "large" })).status, 200);
  });

  test("a watch without events goes on for longer than a minute", async (t) => {
    const clock = fastClock(100);
    const { address } = await startWebFixture(t, { ports: { clock } });
    const quiet = openRaw(t, address);
    quiet.socket.write(watchRequest());
    await waitUntil("the watch has begun", () => quiet.text().includes("BOOKMARK"));
    await clock.sleep(150_000);
    assert.equal(quiet.socket.destroyed, false);
  });

  test("nothing is read from the log while the client of a watch does not read", async (t) => {
    let taken = 0;
    const entryCount = 20_000;
    async function* entries() {
      while (taken < entryCount) yield { type: "BOOKMARK" as const, cursor: String(taken++).padStart(1024, "0") };
    }
    const watch = { checkCursor: () => true, watch: () => entries() };
    const { url, address } = await startWebFixture(t, { ports: { watch } });
    const { socket, text } = openRaw(t, address);
    socket.pause();
    socket.write(watchRequest());
    let before = -1;
    while (taken === 0 || before !== taken) {
      before = taken;
      for (let round = 0; round < 10; round++) await callJson(url, "JobService/ListKinds", {});
    }
    assert.ok(taken < entryCount / 2, `${taken} entries were taken`);
    socket.resume();
    await waitUntil("all entries are read", () => text().includes(String(entryCount - 1).padStart(1024, "0")));
  });

  test("connections beyond the most are closed at once", async (t) => {
    const { address, connections } = await startWebFixture(t, { bounds: { ...CONNECTION_BOUNDS, connectionsMax: 2 } });
    const [one, two] = [openRaw(t, address), openRaw(t, address)];
    await waitUntil("two are open", () => connections() === 2);
    const three = openRaw(t, address);
    await once(three.socket, "close");
    assert.equal(one.socket.destroyed || two.socket.destroyed, false);
  });

  test("a connection without calls is closed after the idle time", async (t) => {
    const { address } = await startWebFixture(t, { bounds: { ...CONNECTION_BOUNDS, idleMs: 100 } });
    const idle = openRaw(t, address);
    idle.socket.write(`${headOf(GET_JOB, "Content-Length: 12")}{"name":"x"}`);
    await once(idle.socket, "close");
    assert.match(idle.text(), /^HTTP\/1\.1 404 /);
  });
});

suite("the end of the service", () => {
  test("streams, idle connections and half requests do not hold it up", async (t) => {
    const { api, address } = await startWebFixture(t);
    const idle = openRaw(t, address);
    idle.socket.write(`${headOf(GET_JOB, "Content-Length: 12")}{"name":"x"}`);
    await waitUntil("the idle connection has its answer", () => idle.text().includes("JOB_NOT_FOUND"));
    const half = openRaw(t, address);
    half.socket.write("POST / HTTP/1.1\r\nHost: local");
    const watch = openRaw(t, address);
    watch.socket.write(watchRequest());
    await waitUntil("the watch has begun", () => watch.text().includes("BOOKMARK"));
    await api.close();
    for (const { socket } of [idle, half, watch]) if (!socket.destroyed) await once(socket, "close");
    assert.match(watch.text(), /"code":"unavailable"[\s\S]*SERVER_STOPPING/);
  });

  test("a call that is under way is answered, one that is not answered in time is UNAVAILABLE", async (t) => {
    for (const drains of [true, false]) {
      const asked = Promise.withResolvers<void>();
      const finish = Promise.withResolvers<null>();
      const getJob = async () => {
        asked.resolve();
        return await finish.promise;
      };
      const reads = { ...new MemoryStore().reads, getJob };
      const { api, url } = await startWebFixture(t, { ports: { reads, clock: fastClock(drains ? 1 : 1_000) } });
      const running = callJson(url, GET_JOB, { name: "x" });
      await asked.promise;
      const closed = api.close();
      if (drains) finish.resolve(null);
      const { code, details } = JSON.parse((await running).body);
      assert.equal(code, drains ? "not_found" : "unavailable");
      if (!drains) assert.ok(details.some((one: { type: string }) => one.type === "google.rpc.RetryInfo"));
      finish.resolve(null);
      await closed;
    }
  });
});

test("over TLS, HTTP/2 and HTTP/1.1 are served, with a new certificate once it changes", {
  skip: !hasOpenssl(),
}, async (t) => {
  const certificates = new Certificates();
  t.after(() => certificates.remove());
  const tls = certificates.serverTls("server", "required");
  const { url } = await startWebFixture(t, { tls });
  const ca = certificates.read(certificates.caFile);
  const session = connectHttp2(url, { ca });
  t.after(() => session.destroy());
  const path = `/gangway.v1.${GET_JOB}`;
  const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/json" });
  stream.end('{"name":"x"}');
  const [headers] = await once(stream, "response");
  assert.equal(headers[":status"], 404);
  assert.match(Buffer.concat(await stream.toArray()).toString(), /JOB_NOT_FOUND/);
  const foreign = session.request({ ":method": "POST", ":path": path, ":authority": "evil.example" });
  foreign.end();
  const [refused] = await once(foreign, "response");
  assert.equal(refused[":status"], 403);
  const request = httpsRequest(`${url}/`, { ca, agent: false });
  request.end();
  const [response] = await once(request, "response");
  assert.equal(response.statusCode, 200);
  assert.equal(response.socket.getPeerCertificate().subject.CN, "server");
  response.resume();
  tls.replace("renewed");
  const again = httpsRequest(`${url}/`, { ca, agent: false });
  again.end();
  const [renewed] = await once(again, "response");
  assert.equal(renewed.socket.getPeerCertificate().subject.CN, "renewed");
  renewed.resume();
});

function watchRequest(): Buffer {
  const body = enveloped("{}");
  const head = headOf("JobService/WatchJobs", `Content-Length: ${body.length}`);
  return Buffer.concat([Buffer.from(head.replace("application/json", "application/connect+json")), body]);
}
