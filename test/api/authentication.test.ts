/** Who may call: every RPC asks for credentials, each way of showing them, and streams whose credential ends. */
import assert from "node:assert/strict";
import { connect as connectSocket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { create, createFileRegistry, type DescMethod, type DescService } from "@bufbuild/protobuf";
import { durationFromMs, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { type Client, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { createAuthenticate } from "../../src/access/authenticate.ts";
import { issuerKeys } from "../../src/access/issuer-keys.ts";
import { oidcVerifier } from "../../src/access/oidc.ts";
import { CONNECTION_BOUNDS } from "../../src/api/connection-bounds.ts";
import { alternativeNames } from "../../src/api/peer-certificates.ts";
import { readDescriptors } from "../../src/api/reflection/reflection.ts";
import { CallError, STATUS } from "../../src/cli/rpc/call-error.ts";
import type { ClientTls } from "../../src/cli/rpc/channel.ts";
import { connect } from "../../src/cli/rpc/client.ts";
import { NO_AUTHENTICATION } from "../../src/core/access/authentication-settings.ts";
import type { Authenticate } from "../../src/core/access/identity.ts";
import { AccessService } from "../../src/gen/gangway/v1/access_service_pb.ts";
import { JobService, WatchJobsResponse_Type as Type } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import type { ServerTls } from "../../src/runtime/server-tls.ts";
import { Certificates, hasOpenssl } from "../support/certificates.ts";
import {
  DATA,
  END_HEADERS,
  END_STREAM,
  followFrames,
  frame,
  grpcHeaders,
  HEADERS,
  hpack,
  PREFACE,
  SETTINGS,
} from "../support/http2-frames.ts";
import { signingKey, TestIssuer } from "../support/issuer.ts";
import { memoryRobots } from "../support/memory-robots.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";

const never = new AbortController().signal;
const away = () => Promise.reject(new Error("not in this test"));
const key = await signingKey("one", "ES256");

/** A service that takes tokens of an issuer, and certificates if there is TLS for them. */
async function serveKnown(t: TestContext, tls: ServerTls | null = null) {
  const issuer = await TestIssuer.start(key);
  t.after(() => issuer.close());
  const time = { laterMs: 0, sleeping: [] as (() => void)[] };
  const real = systemClock();
  /** Sleeps of five seconds and more end when the test says so. */
  const clock = {
    ...real,
    nowMs: () => real.nowMs() + time.laterMs,
    monotonicMs: () => real.monotonicMs() + time.laterMs,
    sleep: (ms: number, signal?: AbortSignal) =>
      ms < 5_000 || ms > 9_000
        ? real.sleep(ms, signal)
        : new Promise<void>((done) => {
            time.sleeping.push(done);
            signal?.addEventListener("abort", () => done(), { once: true });
          }),
  };
  const settings = {
    issuer: issuer.url,
    audiences: ["gangway"],
    subjectClaim: "sub",
    subjectPrefix: "login:",
    groupsClaim: null,
    groupsPrefix: "login:",
    caFile: null,
  };
  const keys = issuerKeys({ issuer: issuer.url, ca: null, clock, onError: (error) => assert.fail(String(error)) });
  const robots = memoryRobots(clock);
  const certificates = tls !== null && tls.clients !== "none";
  const authenticate: Authenticate = createAuthenticate(
    { clock, verifyToken: oidcVerifier(() => keys, clock), verifyRobot: robots.verify, reviewToken: away },
    { ...NO_AUTHENTICATION, issuers: [settings], robots: true, certificates },
  );
  const refused: string[] = [];
  const callRefused = (method: string) => void refused.push(method);
  const fixture = await startFixture(t, { authenticate, robots, callRefused, clock }, CONNECTION_BOUNDS, tls);
  /** A client that shows a token, a certificate or both. */
  const callAs = (token: string | null, by: ClientTls | null = null) => {
    const made = connect(fixture.api.address, never, { tls: by, token: token === null ? null : async () => token });
    t.after(() => made.close());
    return made;
  };
  return { ...fixture, issuer, time, refused, callAs };
}

const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: [...readDescriptors()] }));
const services: readonly DescService[] = [...registry].filter((one) => one.kind === "service");
const methods: readonly DescMethod[] = services.flatMap((service) => service.methods);

/** Calls a method of any kind with an empty request, and returns the code of its status. */
function codeOf(client: Client, method: DescMethod, header: Metadata): Promise<string> {
  const path = `/${method.parent.typeName}/${method.name}`;
  const asIs = (bytes: Buffer) => bytes;
  return new Promise((resolve) => {
    const ended = (error: ServiceError | null) => resolve(status[error?.code ?? status.OK] ?? "");
    if (method.methodKind === "unary") {
      client.makeUnaryRequest(path, asIs, asIs, Buffer.alloc(0), header, (error) => ended(error));
      return;
    }
    const stream =
      method.methodKind === "server_streaming"
        ? client.makeServerStreamRequest(path, asIs, asIs, Buffer.alloc(0), header)
        : client.makeBidiStreamRequest(path, asIs, asIs, header);
    stream
      .on("data", () => stream.cancel())
      .on("error", ended)
      .on("end", () => resolve("OK"));
  });
}

test("every RPC, of reflection and health too, refuses calls without credentials or with bad ones", async (t) => {
  const { client, refused, internal, issuer, woken } = await serveKnown(t);
  assert.ok(methods.length > 40, "methods were found");
  assert.ok(["ServerReflection", "Health", "AccessService"].every((name) => services.some((one) => one.name === name)));
  const bad = new Metadata();
  bad.set("authorization", `Bearer ${await issuer.sign({ aud: "elsewhere" })}`);
  for (const header of [new Metadata(), bad]) {
    const codes = await Promise.all(methods.map((method) => codeOf(client, method, header)));
    assert.deepEqual([...new Set(codes)], ["UNAUTHENTICATED"]);
  }
  assert.equal(refused.length, 2 * methods.length);
  assert.deepEqual(internal, []);
  assert.equal(woken.planner + woken.jobs.length, 0);
});

test("a call with the header `authorization` twice is refused, whichever of the two is good", async (t) => {
  const { api, callAs, issuer, refused } = await serveKnown(t);
  const ann = callAs(await issuer.sign({ sub: "ann" }));
  const { secret: good } = await ann.call(createRobotToken, { name: "ci", ttl: durationFromMs(3_600_000) });
  const bad = `${good.slice(0, -4)}AAAA`;
  /** Sends a call with these headers, and resolves once it has ended. True: it had an answer. */
  const answers = async (...tokens: readonly string[]): Promise<boolean> => {
    const socket = connectSocket(Number(api.address.split(":").at(-1)), "127.0.0.1");
    t.after(() => socket.destroy());
    const shown = tokens.map((token) => hpack({ authorization: `Bearer ${token}` }));
    const headers = Buffer.concat([grpcHeaders("/gangway.v1.AccessService/WhoAmI"), ...shown]);
    const call = [frame(HEADERS, END_HEADERS, 1, headers), frame(DATA, END_STREAM, 1, Buffer.alloc(5))];
    const ended = Promise.withResolvers<boolean>();
    let answered = false;
    followFrames(socket, (type, flags) => {
      if (type === DATA) answered = true;
      if (type === HEADERS && (flags & END_STREAM) !== 0) ended.resolve(answered);
    });
    socket.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0), ...call]));
    return ended.promise;
  };
  assert.equal(await answers(good), true);
  assert.equal(refused.length, 0);
  const pairs = [
    [good, bad],
    [bad, good],
    [good, good],
  ] as const;
  for (const pair of pairs) assert.equal(await answers(...pair), false);
  assert.equal(refused.length, pairs.length);
});

test("a caller with a token calls, and is the creator of what it makes", async (t) => {
  const { callAs, issuer } = await serveKnown(t);
  const ann = callAs(await issuer.sign({ sub: "ann" }));
  const { identity } = await ann.call(AccessService.method.whoAmI, {});
  assert.deepEqual([identity?.subject, identity?.method, identity?.issuer], ["login:ann", "oidc", issuer.url]);
  const { job } = await ann.call(JobService.method.createJob, { job: pytorchJob() });
  assert.equal(job?.metadata?.createdBy, "login:ann");
});

test("without a method callers are anonymous, but a credential that no method takes is refused", async (t) => {
  const settings = { ...NO_AUTHENTICATION, certificates: false };
  const ports = { clock: systemClock(), verifyToken: away, verifyRobot: away, reviewToken: away };
  const authenticate = createAuthenticate(ports, settings);
  const { api, internal } = await startFixture(t, { authenticate });
  const whoAmI = async (token: string | null) => {
    const client = connect(api.address, never, { tls: null, token: token === null ? null : async () => token });
    t.after(() => client.close());
    return (await client.call(AccessService.method.whoAmI, {})).identity;
  };
  const nobody = await whoAmI(null);
  assert.deepEqual([nobody?.subject, nobody?.method, nobody?.groups], ["anonymous", "anonymous", []]);
  await assert.rejects(whoAmI("token"), isRefused(/no method of this service takes/));
  assert.deepEqual(internal, []);
});

function isRefused(words: RegExp) {
  return (error: unknown) =>
    error instanceof CallError && error.code === STATUS.UNAUTHENTICATED && words.test(error.details);
}

test("an issuer that is away makes calls UNAVAILABLE, not UNAUTHENTICATED", async (t) => {
  const issuer = "http://127.0.0.1:1";
  const errors: unknown[] = [];
  const clock = systemClock();
  const keys = issuerKeys({ issuer, ca: null, clock, onError: (error) => void errors.push(error) });
  const one = { issuer, audiences: ["gangway"], subjectClaim: "sub", subjectPrefix: "a:", groupsClaim: null };
  const authenticate = createAuthenticate(
    { clock, verifyToken: oidcVerifier(() => keys, clock), verifyRobot: away, reviewToken: away },
    { ...NO_AUTHENTICATION, issuers: [{ ...one, groupsPrefix: "a:", caFile: null }], certificates: false },
  );
  const { api, internal } = await startFixture(t, { authenticate });
  const other = await TestIssuer.start(key);
  t.after(() => other.close());
  const client = connect(api.address, never, { tls: null, token: () => other.sign({ iss: issuer }) });
  t.after(() => client.close());
  await assert.rejects(client.call(AccessService.method.whoAmI, {}), (error) => {
    assert.ok(error instanceof CallError);
    assert.equal(error.code, STATUS.UNAVAILABLE);
    return true;
  });
  assert.deepEqual(internal, []);
});

test("a watch ends with UNAUTHENTICATED and a hint once its token has expired, and not before", async (t) => {
  const { callAs, issuer, time } = await serveKnown(t);
  const token = await issuer.sign({ exp: Math.floor(Date.now() / 1000) + 100 });
  const [watching, working] = [callAs(token), callAs(await issuer.sign())];
  const items = watching.stream(JobService.method.watchJobs, {}, never)[Symbol.asyncIterator]();
  assert.equal((await items.next()).value?.type, Type.BOOKMARK);
  const lookAgain = async () => {
    while (time.sleeping.length === 0) await new Promise((resolve) => setImmediate(resolve));
    for (const wake of time.sleeping.splice(0)) wake();
  };
  time.laterMs = 90_000;
  await lookAgain();
  await working.call(JobService.method.createJob, { job: pytorchJob() });
  assert.equal((await items.next()).value?.type, Type.ADDED);
  time.laterMs = 200_000;
  await lookAgain();
  await assert.rejects(items.next(), isRefused(/the token has expired: call again with a new credential.*cursor/));
});

const { createRobotToken, listRobotTokens, revokeRobotToken, whoAmI } = AccessService.method;

test("a robot's token is shown once, and counts until it is revoked or expires", async (t) => {
  const { callAs, issuer, time } = await serveKnown(t);
  const ann = callAs(await issuer.sign({ sub: "ann" }));
  const { secret, robot } = await ann.call(createRobotToken, { name: "ci", ttl: durationFromMs(3_600_000) });
  assert.match(secret, /^gwt_[\w-]{43}$/);
  assert.deepEqual([robot?.name, robot?.owner, robot?.lastUseTime], ["ci", "login:ann", undefined]);
  const ci = callAs(secret);
  const { identity } = await ci.call(whoAmI, {});
  assert.deepEqual([identity?.subject, identity?.method, identity?.groups], ["robot:ci", "robot", []]);
  assert.deepEqual(identity?.expireTime, robot?.expireTime);
  const { robots } = await ann.call(listRobotTokens, {});
  assert.ok(robots[0]?.lastUseTime !== undefined);
  assert.ok(
    !JSON.stringify(robots, (_, one) => (typeof one === "bigint" ? String(one) : one)).includes(secret.slice(4)),
  );
  await assert.rejects(ann.call(createRobotToken, { name: "ci" }), hasReason(STATUS.ALREADY_EXISTS));
  await assert.rejects(ann.call(revokeRobotToken, { name: "other" }), hasReason(STATUS.NOT_FOUND));

  const items = ci.stream(JobService.method.watchJobs, {}, never)[Symbol.asyncIterator]();
  await items.next();
  await ann.call(revokeRobotToken, { name: "ci" });
  time.laterMs = 6_000;
  while (time.sleeping.length === 0) await new Promise((resolve) => setImmediate(resolve));
  for (const wake of time.sleeping.splice(0)) wake();
  await assert.rejects(items.next(), isRefused(/the token of robot ci was revoked: call again with a new credential/));
  await assert.rejects(ci.call(whoAmI, {}), isRefused(/was revoked/));
  await assert.rejects(ann.call(createRobotToken, { name: "ci" }), hasReason(STATUS.ALREADY_EXISTS));

  const late = callAs((await ann.call(createRobotToken, { name: "late", ttl: durationFromMs(60_000) })).secret);
  assert.equal((await late.call(whoAmI, {})).identity?.subject, "robot:late");
  time.laterMs = 6_000 + 61_000;
  await assert.rejects(late.call(whoAmI, {}), isRefused(/expired/));
  for (const bad of ["gwt_", `gwt_${"A".repeat(43)}`, `${secret}A`, secret.toUpperCase(), `gwt_${"-".repeat(9_000)}`]) {
    await assert.rejects(callAs(bad).call(whoAmI, {}), isRefused(/./), bad.slice(0, 60));
  }
});

function hasReason(code: number) {
  return (error: unknown) => error instanceof CallError && error.code === code;
}

describe("client certificates", { skip: !hasOpenssl() }, () => {
  async function serveCertificates(t: TestContext, clients: ServerTls["clients"] = "optional") {
    const [own, other] = [new Certificates(), new Certificates()];
    t.after(() => [own, other].map((certificates) => certificates.remove()));
    const served = await serveKnown(t, own.serverTls("server", clients));
    const ca = own.read(own.caFile);
    const show = (by: Certificates | null, names = "", subject = "/CN=me"): ClientTls => {
      if (by === null) return { ca, cert: null, key: null, serverName: null };
      const { certFile, keyFile } = by.sign("client", names, subject);
      return { ca, cert: by.read(certFile), key: by.read(keyFile), serverName: null };
    };
    const whoIs = async (tls: ClientTls, token: string | null = null) =>
      (await served.callAs(token, tls).call(AccessService.method.whoAmI, {})).identity;
    return { ...served, own, other, show, whoIs };
  }

  test("a certificate of the authority gives subject, groups and expiry; another one is UNAUTHENTICATED", async (t) => {
    const { own, other, show, whoIs } = await serveCertificates(t);
    const robot = await whoIs(show(own, "URI:spiffe://a.example/robot,DNS:x", "/O=ml/O=ops, or not/CN=me"));
    assert.deepEqual([robot?.subject, robot?.method], ["spiffe://a.example/robot", "certificate"]);
    assert.deepEqual(robot?.groups, ["org:ml", "org:ops, or not"]);
    const days = (Number(robot?.expireTime?.seconds) * 1000 - Date.now()) / 86_400_000;
    assert.ok(days > 1.9 && days < 2.1, String(days));
    assert.equal((await whoIs(show(own, "DNS:me.example")))?.subject, "dns:me.example");
    await assert.rejects(whoIs(show(own, "IP:10.0.0.1")), isRefused(/without a SPIFFE URI and without a DNS name/));
    await assert.rejects(whoIs(show(other, "DNS:me.example")), isRefused(/certificate is not valid: [A-Z_]+/));
    await assert.rejects(whoIs(show(null)), isRefused(/shows no credentials/));
  });

  test("each connection has the identity of its own certificate, however many there are at once", async (t) => {
    const { own, show, whoIs } = await serveCertificates(t);
    const shown = ["a", "b", "c"].map((name) => ({ name, tls: show(own, `DNS:${name}.example`) }));
    const calls = Array.from({ length: 60 }, (_, at) => shown[at % 4] ?? { name: null, tls: show(null) });
    const subjects = await Promise.all(
      calls.map(({ tls }) =>
        whoIs(tls).then(
          (one) => one?.subject,
          () => null,
        ),
      ),
    );
    assert.deepEqual(
      subjects,
      calls.map(({ name }) => (name === null ? null : `dns:${name}.example`)),
    );
  });

  test("a token counts before the certificate, and a bad one is not saved by it", async (t) => {
    const { own, show, whoIs, issuer } = await serveCertificates(t);
    assert.equal((await whoIs(show(own, "DNS:me"), await issuer.sign({ sub: "ann" })))?.subject, "login:ann");
    const bad = whoIs(show(own, "DNS:me"), await issuer.sign({ aud: "elsewhere" }));
    await assert.rejects(bad, isRefused(/claim aud/));
  });

  test("with required certificates a token alone gets no connection", async (t) => {
    const { own, show, whoIs, issuer } = await serveCertificates(t, "required");
    assert.equal((await whoIs(show(own, "DNS:me")))?.subject, "dns:me");
    await assert.rejects(whoIs(show(null), await issuer.sign()), (error) => {
      return error instanceof CallError && error.code === STATUS.UNAVAILABLE;
    });
  });

  test("a certificate that expires ends its streams and calls, on the connection that it opened", async (t) => {
    const { own, show, callAs, time } = await serveCertificates(t);
    const client = callAs(null, show(own, "DNS:me"));
    const items = client.stream(JobService.method.watchJobs, {}, never)[Symbol.asyncIterator]();
    await items.next();
    time.laterMs = 3 * 86_400_000;
    while (time.sleeping.length === 0) await new Promise((resolve) => setImmediate(resolve));
    for (const wake of time.sleeping.splice(0)) wake();
    await assert.rejects(items.next(), isRefused(/the client's certificate has expired/));
    await assert.rejects(client.call(AccessService.method.whoAmI, {}), isRefused(/certificate has expired/));
  });
});

const names: Record<string, readonly (readonly string[])[] | null> = {
  "": [],
  "DNS:a, URI:spiffe://a/b": [
    ["DNS", "a"],
    ["URI", "spiffe://a/b"],
  ],
  'DNS:"a, DNS:b", IP Address:10.0.0.1': [
    ["DNS", "a, DNS:b"],
    ["IP Address", "10.0.0.1"],
  ],
  [String.raw`DNS:"a\"b"`]: [["DNS", 'a"b']],
  "othername:<unsupported>": [["othername", "<unsupported>"]],
  'DNS:a"b': null,
  "DNS:a,URI:b": null,
};
for (const [text, is] of Object.entries(names)) {
  test(`the alternative names of a certificate: ${text || "none"}`, () => assert.deepEqual(alternativeNames(text), is));
}
