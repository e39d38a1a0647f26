import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { KubeRequest, KubeResult } from "../../src/adapters/cluster/client.ts";
import { unreachable } from "../../src/adapters/cluster/kube-failure.ts";
import { Probe } from "../../src/adapters/cluster/probe.ts";
import { SleepersClock } from "../support/sleepers-clock.ts";

const READY = "/readyz";

/** How a server answers: a status for `/readyz` and one for the namespace; 0: it refuses connections. */
type Answers = { readonly ready: number; readonly namespace: number } | "nothing comes";

const refused = unreachable(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }));
const result = (status: number): KubeResult => {
  if (status === 200) return { kind: "ok", object: {} };
  return status === 0 ? refused : { kind: "failed", status, reason: "Some", message: "", retryAfterMs: null };
};

/** A probe of a server that answers as `now` says. */
function probing(now: () => Answers) {
  const clock = new SleepersClock();
  const asked: string[] = [];
  const changes: { readonly kind: string; readonly atMs: number }[] = [];
  const request = async ({ path }: KubeRequest, signal?: AbortSignal): Promise<KubeResult> => {
    asked.push(path);
    const answers = now();
    if (answers !== "nothing comes") return result(path === READY ? answers.ready : answers.namespace);
    await new Promise<void>((resolve) => signal?.addEventListener("abort", () => resolve()));
    return unreachable(new Error("aborted"));
  };
  const onChange = () => changes.push({ kind: probe.verdict().kind, atMs: clock.nowMs() });
  const probe = new Probe({ client: { request }, clock, isPaused: () => false, onChange });
  probe.start();
  return { clock, probe, asked, changes };
}

const WELL: Answers = { ready: 200, namespace: 200 };
const answers = fc.oneof(
  fc.constant<Answers>("nothing comes"),
  fc.record({
    ready: fc.constantFrom(0, 200, 401, 403, 404, 500, 503),
    namespace: fc.constantFrom(0, 200, 403, 429, 500),
  }),
);

/** What one probe alone says of a server. */
function saysOne(of: Answers): "answers" | "silent" | "refuses" {
  if (of === "nothing comes" || of.ready === 0) return "silent";
  if (of.ready === 200) return "answers";
  if (of.ready === 401) return "refuses";
  return [200, 403, 429].includes(of.namespace) ? "answers" : "silent";
}

test("three probes in a row decide, each by the last one's words; one answer ends it", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(answers, { minLength: 1, maxLength: 12 }), async (rounds) => {
      let round = -1;
      const { clock, probe } = probing(() => rounds[round] ?? WELL);
      const said: string[] = [];
      for (let at = 0; at < rounds.length; at += 1) {
        round = at;
        await clock.goOn((at + 1) * 5_000 + 4_000);
        said.push(probe.verdict().kind);
      }
      const expected = rounds.map((of, at) => {
        const last = rounds.slice(Math.max(0, at - 2), at + 1).map(saysOne);
        return last.length < 3 || last.includes("answers") ? "answers" : saysOne(of);
      });
      assert.deepEqual(said, expected);
      await probe.close();
    }),
    { numRuns: 200 },
  );
});

test("a server is noticed within 20 s, whether it refuses connections or packets vanish", async () => {
  const ways: readonly Answers[] = ["nothing comes", { ready: 0, namespace: 0 }, { ready: 503, namespace: 503 }];
  for (const way of ways) {
    for (const downAtMs of [0, 4_999, 5_001, 9_000, 61_234]) {
      let now: Answers = WELL;
      const { clock, probe, changes } = probing(() => now);
      await clock.goOn(downAtMs);
      now = way;
      await clock.goOn(downAtMs + 20_000);
      assert.deepEqual(
        changes.map(({ kind }) => kind),
        ["silent"],
      );
      now = WELL;
      await clock.goOn(downAtMs + 30_000);
      assert.equal(probe.verdict().kind, "answers");
      assert.deepEqual(
        changes.map(({ kind }) => kind),
        ["silent", "answers"],
      );
      await probe.close();
    }
  }
});

test("a process that stands still during its probes takes no server for silent", async () => {
  let now: Answers = WELL;
  const { clock, probe, asked } = probing(() => now);
  await clock.goOn(4_000);
  // No answer comes while the process is awake, which is never for as long as a probe waits.
  now = "nothing comes";
  while (asked.length === 0) await clock.goOn(clock.nowMs() + 100);
  for (let round = 1; round <= 6; round += 1) {
    clock.standStill(30_000);
    await clock.goOn(clock.nowMs());
    assert.equal(probe.verdict().kind, "answers", `after ${round} pauses`);
  }
  assert.equal(asked.length, 7, "a probe was under way in each pause");
  await clock.goOn(clock.nowMs() + 20_000);
  assert.equal(probe.verdict().kind, "silent", "a server that is silent while the process is awake");
  await probe.close();
});

test("a server that forbids or does not know /readyz is asked for a namespace, and 403 is an answer", async () => {
  const { clock, probe, asked } = probing(() => ({ ready: 403, namespace: 403 }));
  await clock.goOn(60_000);
  assert.equal(probe.verdict().kind, "answers");
  assert.ok(asked.includes("/api/v1/namespaces/kube-system"));
  await probe.close();
});

test("credentials that are not accepted any more are no silence", async () => {
  const { clock, probe } = probing(() => ({ ready: 401, namespace: 401 }));
  await clock.goOn(20_000);
  const verdict = probe.verdict();
  assert.ok(verdict.kind === "refuses");
  assert.match(verdict.why, /does not accept the credentials/);
  assert.equal(verdict.forMs, 20_000);
  await probe.close();
});

test("silence counts from the last answer, a refusal is one, and a pause of this process adds nothing", async () => {
  let now: Answers = WELL;
  const { clock, probe } = probing(() => now);
  await clock.goOn(12_000);
  assert.equal(probe.silenceMs(), 0);
  now = { ready: 0, namespace: 0 };
  await clock.goOn(60_000);
  assert.equal(probe.silenceMs(), 50_000, "from the answer at 10 s to the probe at 60 s");
  clock.standStill(3_600_000);
  await clock.goOn(clock.nowMs() + 5_000);
  assert.ok(probe.silenceMs() <= 50_000 + 2 * 8_000, `${probe.silenceMs()} after an hour of standing still`);
  now = { ready: 401, namespace: 401 };
  await clock.goOn(clock.nowMs() + 5_000);
  assert.equal(probe.silenceMs(), 0, "it refuses, so it is there");
  now = { ready: 503, namespace: 500 };
  await clock.goOn(clock.nowMs() + 5_000);
  assert.equal(probe.silenceMs(), 5_000);
  now = WELL;
  await clock.goOn(clock.nowMs() + 5_000);
  assert.equal(probe.silenceMs(), 0);
  await probe.close();
});
