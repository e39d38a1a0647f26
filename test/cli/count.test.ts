/** `--filter`, `--since` and `count`: what people write, and what the service selects and counts for it. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { JobPhase } from "../../src/core/job/status.ts";
import { startFixture } from "../api/fixture.ts";
import { queueRecord } from "../api/memory-store.ts";
import { NO_STATUS, newJob, sentOf } from "../store/jobs.ts";
import { run } from "./harness.ts";

const DAY = 86_400_000;

type Made = Parameters<typeof newJob>[0] & { readonly phase?: JobPhase };

/** Jobs of two namespaces and of the queue nlp with nlp-a below it. */
async function served(t: TestContext) {
  const { api, store } = await startFixture(t);
  store.queues.set("nlp", queueRecord("nlp"));
  store.queues.set("nlp-a", { ...queueRecord("nlp-a"), parent: "nlp" });
  const now = Date.now();
  const put = ({ phase = "WAITING", ...more }: Made) => {
    const completionTimeMs = phase === "FAILED" ? now - 1_000 : null;
    const job = newJob({ namespace: "default", status: { ...NO_STATUS, phase, completionTimeMs }, ...more });
    store.jobs.set(`${job.namespace}/${job.name}`, { job, sent: sentOf(job) });
  };
  put({ name: "train-a", queue: "nlp", createTimeMs: now - 2 * DAY, labels: { team: "x" } });
  put({ name: "train-b", queue: "nlp-a", createTimeMs: now - 1_000, createdBy: "login:bob" });
  put({ name: "eval-c", queue: "vision", phase: "FAILED", createTimeMs: now - 3 * DAY });
  put({ name: "other", queue: "nlp", namespace: "lab", createTimeMs: now });
  return (...argv: readonly string[]) => run(argv, { address: api.address });
}

const LISTED: readonly (readonly [readonly string[], readonly string[]])[] = [
  [
    ["--filter", "phase:waiting"],
    ["train-a", "train-b"],
  ],
  [
    ["--filter", "queue:nlp+"],
    ["train-a", "train-b"],
  ],
  [
    ["--filter", "queue:nlp+", "-A"],
    ["lab/other", "train-a", "train-b"],
  ],
  [
    ["--filter", "queue:nlp namespace:lab,default"],
    ["lab/other", "train-a"],
  ],
  [
    ["--filter", "owner:me"],
    ["eval-c", "train-a"],
  ],
  [["--filter", "owner:login:bob,nobody"], ["train-b"]],
  [["--filter", "train label:team=x"], ["train-a"]],
  [["--filter", "age:>1d phase:waiting"], ["train-a"]],
  [["--filter", "ended:<1h"], ["eval-c"]],
  [["--filter", "kind:pytorchjob reason:NotEvaluated age:<1h"], ["train-b"]],
  [["--filter", "kind:tfjob"], []],
  [["--since", "1h"], ["train-b"]],
  [["--filter", "train", "--since", "7d", "--queue", "nlp"], ["train-a"]],
  [["--filter", "phase:failed ended:<1d", "--order-by", "complete_time desc"], ["eval-c"]],
  [
    ["--filter", "phase:waiting", "--order-by", "wait_since"],
    ["train-a", "train-b"],
  ],
];
for (const [options, names] of LISTED) {
  test(`list ${options.join(" ")}`, async (t) => {
    const gangway = await served(t);
    const ran = await gangway("list", ...options, "-o", "custom-columns=NS:.metadata.namespace,NAME:.metadata.name");
    assert.equal(ran.exitCode, 0, ran.stderr);
    const rows = ran.stdout
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => line.split(/\s+/));
    const shown = rows.map(([namespace, name]) => (namespace === "default" ? name : `${namespace}/${name}`));
    assert.deepEqual(shown.sort(), [...names]);
  });
}

const REFUSED: readonly (readonly [readonly string[], RegExp])[] = [
  [
    ["list", "--filter", "phse:waiting"],
    /--filter: there is no key "phse" in "phse:waiting"; use one of phase, reason/,
  ],
  [["list", "--filter", "kind:nope"], /there is no kind nope/],
  [["list", "--filter", "phase:failed", "--phase", "waiting"], /either --phase or phase: in --filter, not both/],
  [["list", "--filter", "label:a=1", "-l", "a=2"], /-l and --filter want different values of a/],
  [["list", "--since", "yesterday"], /a duration with its unit/],
  [["list", "--order-by", "wait_since"], /wait_since needs a filter by phases, and allows only WAITING/],
  [["list", "-w", "--filter", "reason:NoCapacity"], /filter\.reasons: must not be set: a watch filters by none of/],
  [
    ["count", "--by", "size"],
    /one or two different ones of phase, queue, namespace, owner, kind, cluster, flavor, reason/,
  ],
  [["count", "--by", "phase,queue,kind"], /one or two different ones/],
  [["count", "--by", "phase,phase"], /one or two different ones/],
  [["count", "-l", "a!=1"], /count takes only KEY=VALUE in -l/],
  [["count", "--mine", "--filter", "owner:bob"], /either --mine or owner: in --filter, not both/],
];
for (const [argv, problem] of REFUSED) {
  test(`${argv.join(" ")} says what is wrong`, async (t) => {
    const gangway = await served(t);
    const ran = await gangway(...argv);
    assert.notEqual(ran.exitCode, 0);
    assert.match(ran.stderr, problem);
    assert.equal(ran.stdout, "");
  });
}

test("count shows groups with their jobs, pods and oldest", async (t) => {
  const gangway = await served(t);
  const byPhase = await gangway("count");
  assert.match(byPhase.stdout, /^PHASE +JOBS +PODS +OLDEST +HELD\nWAITING +2 +8 +2d +-\n$/);
  const both = await gangway("count", "-A", "--by", "queue,phase", "--filter", "phase:waiting,failed", "--no-headers");
  assert.deepEqual(
    both.stdout
      .trim()
      .split("\n")
      .map((line) => line.split(/\s+/).slice(0, 4).join(" ")),
    ["nlp WAITING 2 8", "nlp-a WAITING 1 4", "vision FAILED 1 4"],
  );
  const json = JSON.parse((await gangway("count", "--by", "owner", "--mine", "-o", "json")).stdout);
  assert.deepEqual(
    json.groups.map(({ values, jobs }: { values: string[]; jobs: string }) => [values, jobs]),
    [[["anonymous"], "1"]],
  );
  assert.equal((await gangway("count", "--by", "owner", "-o", "name")).stdout, "anonymous\nlogin:bob\n");
  assert.equal((await gangway("count", "--filter", "owner:nobody")).stderr, "no jobs\n");
});
