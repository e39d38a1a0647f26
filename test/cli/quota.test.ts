import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { startFixture } from "../api/fixture.ts";
import { run } from "./harness.ts";

type Step = { run: string | readonly string[]; exit: number; out?: RegExp; err?: RegExp };

/** Runs the commands of a story against one service, and checks their results. */
async function play(t: TestContext, steps: readonly Step[]) {
  const { api, resources } = await startFixture(t);
  for (const step of steps) {
    const argv = typeof step.run === "string" ? step.run.split(" ") : step.run;
    const ran = await run(argv, { address: api.address });
    const shown = `$ gangway ${argv.join(" ")}\n${ran.stdout}${ran.stderr}[${ran.exitCode}]`;
    assert.equal(ran.exitCode, step.exit, shown);
    if (step.out === undefined) assert.equal(ran.stdout, "", shown);
    else assert.match(ran.stdout, step.out, shown);
    if (step.err === undefined) assert.equal(ran.stderr, "", shown);
    else assert.match(ran.stderr, step.err, shown);
  }
  return resources;
}

const stories: Record<string, readonly Step[]> = {
  "a pool is registered, changed from its version, and shown with its use": [
    { run: "quota list", exit: 0, err: /^no pools\n$/ },
    {
      run: "quota register ex:warehouse --quota 4 --project-default 3 --default-lease 10m --max-lease 2h",
      exit: 0,
      out: /^pool\/ex:warehouse registered, version 1\n$/,
    },
    { run: "quota register ex:warehouse --quota 8 --if-version 7", exit: 3, err: /^error: aborted: / },
    {
      run: "quota register ex:warehouse --quota 8 --domain other",
      exit: 3,
      err: /has domain default; the first registration fixed it/,
    },
    { run: "quota register ex:warehouse --quota 8 --if-version 1", exit: 0, out: /version 2/ },
    { run: "alloc ex:warehouse q1 --amount 2", exit: 0, out: /granted/ },
    {
      run: "quota list",
      exit: 0,
      out: new RegExp(
        "^POOL +USED +QUOTA +TOKENS +WAITING +PER PROJECT +PER NAMESPACE +LEASE +QUEUE\n" +
          "ex:warehouse +2 +8 +1 +0 +3 +- +10m +-\n$",
      ),
    },
    { run: "quota register ex:warehouse --quota 8 --project-default none --default-lease never", exit: 0, out: /3/ },
    { run: "quota get ex:warehouse", exit: 0, out: /ex:warehouse +2 +8 +1 +0 +- +- +never expires +-\n$/ },
    { run: "quota get ex:warehouse -o yaml", exit: 0, out: /^name: ex:warehouse\nquota: "8"\n/ },
    { run: "quota list gpu -o name", exit: 0 },
    { run: "quota list ex: -o name", exit: 0, out: /^pool\/ex:warehouse\n$/ },
    { run: "quota register ex:warehouse --quota 9 -o json", exit: 0, out: /"quota": "9"/ },
    { run: "quota register ex:warehouse --quota none", exit: 0, out: /registered/ },
    { run: "quota get ex:warehouse", exit: 0, out: /ex:warehouse +2 +- +1 / },
    { run: "quota register ex:warehouse --quota 3", exit: 0, out: /registered/ },
    { run: "quota get ex:warehouse", exit: 0, out: /ex:warehouse +2 +3 +1 / },
    { run: "quota register ex:warehouse --quota nothing", exit: 2, err: /a whole number, 0 or more, or "none"/ },
    { run: "quota get nowhere", exit: 3, err: /pool nowhere does not exist/ },
  ],
  "tokens that never lapse are listed apart": [
    { run: "quota register ex:leased --quota 4 --default-lease 1h", exit: 0, out: /registered/ },
    { run: "quota register ex:plain --quota 4", exit: 0, out: /registered/ },
    { run: "quota get ex:plain", exit: 0, out: /never expires/ },
    { run: "alloc ex:plain p1 --project ops --holder bob", exit: 0, out: /granted/ },
    { run: "alloc ex:leased q1 --project nlp --holder ann", exit: 0, out: /granted/ },
    { run: "quota allocations --never-lapses", exit: 0, out: /^POOL .*HOLDER\nex:plain +p1 +1 +ops .* bob\n$/ },
    { run: "release ex:plain p1 --holder bob", exit: 0, out: /released/ },
    { run: "quota allocations --never-lapses", exit: 0, err: /^no allocations\n$/ },
  ],
  "held tokens are listed, and taken only with --force and a reason, which the audit log keeps": [
    { run: "quota register ex:warehouse --quota 4 --default-lease 1h", exit: 0, out: /registered/ },
    { run: "alloc ex:warehouse q1 --project nlp --holder ann", exit: 0, out: /granted/ },
    { run: "alloc ex:warehouse q2 --project cv", exit: 0, out: /granted/ },
    {
      run: "quota allocations --project nlp",
      exit: 0,
      out: /^POOL .*HOLDER\nex:warehouse +q1 +1 +nlp +default +- +\d+s +(59m\d+s|1h) +ann\n$/,
    },
    { run: "quota allocations --older-than 1h", exit: 0, err: /^no allocations\n$/ },
    {
      run: "quota allocations --limit 1 -o name",
      exit: 0,
      out: /^allocation\/q1\n$/,
      err: /^only the first 1 allocations are/,
    },
    { run: "release ex:warehouse q1", exit: 3, err: /^error: permission denied: / },
    { run: "quota release ex:warehouse q7 --force --reason gone -o yaml", exit: 0, out: /^outcome: .*NOT_HELD\n$/ },
    { run: "quota release ex:warehouse q1", exit: 2, err: /give --force and --reason/ },
    {
      run: ["quota", "release", "ex:warehouse", "q1", "--force", "--reason", "its host is gone"],
      exit: 0,
      out: /^ex:warehouse q1 released\n$/,
    },
    {
      run: "quota audit --action ForceRelease",
      exit: 0,
      out: new RegExp(
        "^ *AGE .*\n +\\d+s +anonymous +ForceRelease +ex:warehouse +its host is gone +" +
          '\\{"token":"q1","holder":"ann"\\}\n$',
      ),
    },
    { run: "quota audit -o name", exit: 0, out: /^ForceRelease\/ex:warehouse\nRegisterResourceQuota\/ex:warehouse\n$/ },
  ],
  "a pool is deleted once nothing uses it": [
    { run: "quota register ex:trial --quota 1", exit: 0, out: /registered/ },
    { run: "alloc ex:trial q9", exit: 0, out: /granted/ },
    { run: "quota delete ex:trial", exit: 3, err: /pool ex:trial is in use by tokens that are held/ },
    { run: "release ex:trial q9", exit: 0, out: /released/ },
    { run: "quota delete ex:trial", exit: 0, out: /^pool\/ex:trial deleted\n$/ },
    { run: "quota delete ex:trial", exit: 3, err: /pool ex:trial does not exist/ },
    { run: "quota audit --action DeletePool -o name", exit: 0, out: /^DeletePool\/ex:trial\n$/ },
  ],
  "grants of a queue that does not exist are an error, not an empty list": [
    { run: "queue create nlp --quota gpu/h100=nvidia.com/gpu:8", exit: 0, out: /created/ },
    { run: "quota grants nlp", exit: 0, err: /^no quotas are raised\n$/ },
    { run: "quota grants", exit: 0, err: /^no quotas are raised\n$/ },
    { run: "quota grants nope", exit: 3, err: /queue nope does not exist/ },
  ],
  "usage errors send nothing": [
    { run: "quota register ex:warehouse", exit: 2, err: /--quota/ },
    { run: "quota register ex:warehouse --quota many", exit: 2, err: /whole number/ },
    { run: "quota register ex:warehouse --quota 1 --durability none", exit: 2, err: /ledger, redis/ },
    { run: "quota grant nlp gpu/h100 -2 --for 1h", exit: 2, err: /whole number from 1 to 9007199254740991, not -2/ },
    { run: "quota grant nlp gpu/h100 0 --for 1h", exit: 2, err: /whole number from 1 to 9007199254740991, not 0/ },
    { run: "quota audit --action Everything", exit: 2, err: /ForceRelease/ },
    { run: "quota --help", exit: 0, out: /gangway quota allocations --pool ex:warehouse --older-than 1h/ },
    { run: "alloc --help", exit: 0, out: /GANGWAY_FENCE/ },
  ],
};
for (const [name, steps] of Object.entries(stories)) {
  test(name, async (t) => {
    await play(t, steps);
  });
}

test("reconcile prints differences, and repairs them unless it is a dry run", async (t) => {
  const resources = await play(t, [{ run: "quota register gpu/h100 --quota 4", exit: 0, out: /registered/ }]);
  const { api } = await startFixture(t, { resources });
  const line = { pool: "gpu/h100", token: "job/gone", amount: 2, project: "nlp", namespace: "default", queue: null };
  resources.admit(line, { kind: "admission", jobUid: "gone", admission: 1 });
  const reconcile = (...more: string[]) => run(["quota", "reconcile", ...more], { address: api.address });
  const dry = await reconcile("--dry-run");
  assert.match(dry.stdout, /^POOL .*\ngpu\/h100 +holder is gone +2 +- +no +job\/gone\n$/);
  assert.match((await reconcile("gpu/h100")).stdout, / yes +job\/gone\n$/);
  assert.equal((await reconcile()).stderr, "counters, ledger and holders agree\n");
});
