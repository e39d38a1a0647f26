import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { parse } from "yaml";
import { authenticationInterceptor } from "../../src/api/rpc/authentication.ts";
import { serve } from "../../src/api/rpc/handler.ts";
import { yamlText } from "../../src/cli/output/terminal.ts";
import { NO_CALL_LIMITS } from "../../src/core/access/call-limits.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { FairStart } from "../../src/runtime/fair-start.ts";
import { visibleText } from "../../src/runtime/visible-text.ts";
import { startFixture } from "../api/fixture.ts";
import { anonymous } from "../support/anonymous.ts";
import { pytorchManifest, run } from "./harness.ts";

/** Clears the screen, sets the title of the window, moves the cursor, and hides text by its direction. */
const EVIL = "a\u001b[2J\u001b]0;owned\u0007\u009b1A\rb\u202ec\u007f";
const SHOWN = "a\\u001b[2J\\u001b]0;owned\\u0007\\u009b1A\\u000db\\u202ec\\u007f";

/** Characters that act on a terminal or have no width, tags among them. */
const UNSEEN = [
  "\u202e",
  "\u2028",
  "\u2029",
  "\u200b",
  "\u200d",
  "\u2060",
  "\ufeff",
  "\u00ad",
  "\u061c",
  "\u2066",
  "\u007f",
];
const TAGS = ["\u{e0000}", "\u{e0001}", "\u{e0041}", "\u{e007f}", "\u{e0100}"];

test("YAML and JSON have escapes for characters that act on a terminal or are not seen, and read back the same", () => {
  for (const one of [...UNSEEN, ...TAGS, "\u001b", "\u0085", "\u009b"]) {
    for (const text of [
      one,
      `a${one}b`,
      `a\n  b${one}\nc: "d" # e\n`,
      `- ${one}`,
      `${"long ".repeat(40)}${one} end`,
      `'${one}\\`,
    ]) {
      const value = { [`key${one}`]: text, list: [text, "plain"], nested: { text } };
      const written = yamlText(value);
      assert.equal(written.includes(one), false, JSON.stringify(written));
      assert.equal(visibleText(written), written);
      assert.deepEqual(parse(written), value);
      assert.deepEqual(JSON.parse(visibleText(JSON.stringify(value, null, 2))), value);
      assert.equal(visibleText(text).includes(one), false);
    }
  }
  assert.match(yamlText({ a: "\u{e0041}" }), /"\\U000e0041"/);
  assert.equal(yamlText({ a: "é日本 ⚠️ – b" }), "a: é日本 ⚠️ – b\n");
});

test("control characters become escapes; tabs, newlines and other scripts stay", () => {
  assert.equal(visibleText(EVIL), SHOWN);
  const plain = "é日本\t🙂\nnext – line";
  assert.equal(visibleText(plain), plain);
});

/** Control characters that a terminal may act on. */
const CONTROL = /(?![\t\n])\p{Cc}/u;

for (const isTty of [true, false]) {
  test(`texts of a job ${isTty ? "do not control a terminal" : "reach a file as they are"}`, async (t) => {
    const { api, store } = await startFixture(t);
    const at = { address: api.address, isTty, files: { "a.yaml": pytorchManifest("evil") } };
    assert.equal((await run(["submit", "-f", "a.yaml"], at)).exitCode, 0);
    const [only] = [...store.jobs.values()];
    assert.ok(only !== undefined);
    store.put({ ...only.job, annotations: { note: EVIL }, createdBy: EVIL });
    const shown = async (format: string) => {
      const { stdout, exitCode } = await run(["get", "evil", "-o", format], at);
      assert.equal(exitCode, 0, format);
      if (isTty) assert.doesNotMatch(stdout, CONTROL, format);
      return stdout;
    };
    for (const format of ["table", "wide", "name"]) assert.doesNotMatch(await shown(format), CONTROL, format);
    assert.equal(JSON.parse(await shown("json")).metadata.annotations.note, EVIL);
    assert.equal(parse(await shown("yaml")).metadata.annotations.note, EVIL);
    const note = "jsonpath={.metadata.annotations.note}";
    assert.equal((await shown(note)).trimEnd(), isTty ? SHOWN : EVIL);
  });
}

test("logs show control characters on a terminal, send them with --raw, and reach a file as they are", async (t) => {
  const address = await serveLog(t, EVIL);
  const logs = async (isTty: boolean, ...more: string[]) =>
    (await run(["logs", "a", ...more], { address, isTty })).stdout;
  assert.equal((await logs(true)).trimEnd(), SHOWN);
  assert.equal((await logs(true, "--raw")).trimEnd(), EVIL);
  assert.equal((await logs(false)).trimEnd(), EVIL);
});

test("errors show control characters", async (t) => {
  const { api } = await startFixture(t);
  const { stderr, exitCode } = await run(["get", `pytorchjob/${EVIL}`], { address: api.address });
  assert.notEqual(exitCode, 0);
  assert.doesNotMatch(stderr, CONTROL);
});

/** Serves a job whose log is this text. */
async function serveLog(t: TestContext, text: string): Promise<string> {
  const authentication = { authenticate: anonymous, limits: NO_CALL_LIMITS, certificateOf: () => null };
  const clock = systemClock();
  const interceptor = authenticationInterceptor({
    ...authentication,
    clock,
    starts: new FairStart({
      monotonicMs: clock.monotonicMs,
      nextPass: setImmediate,
      soon: setImmediate,
      idleMs: () => 0,
    }),
    messageBytesMax: 1_000,
    onRefused: assert.fail,
    onInternalError: assert.fail,
  });
  const server = new Server({ interceptors: [interceptor] });
  const handlers = Object.fromEntries(JobService.methods.map(({ localName }) => [localName, async () => ({})]));
  const streamJobLogs = async function* () {
    yield { lines: [{ replica: "Worker/0", container: "pytorch", text }] };
  };
  const stopping = new AbortController().signal;
  const known = { authenticate: anonymous, authorization: null };
  const environment = {
    clock: systemClock(),
    ...known,
    onInternalError: assert.fail,
    stopping,
    cuts: new Set<() => void>(),
  };
  serve(server, JobService, { ...handlers, streamJobLogs } as never, environment);
  t.after(() => server.forceShutdown());
  return new Promise((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
      if (error) reject(error);
      else resolve(`127.0.0.1:${port}`);
    });
  });
}
