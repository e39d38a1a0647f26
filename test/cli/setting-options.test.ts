/** Settings of jobs by option of submit, can-run, rerun and update, and how errors name them. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { SETTINGS } from "../../src/core/kinds/manifest/settings.ts";
import { startFixture } from "../api/fixture.ts";
import { pytorchManifest, type Ran, run } from "./harness.ts";

const annotated = (annotation: string, name = "a") =>
  pytorchManifest(name).replace(`{name: ${name}}`, `{name: ${name}, annotations: {${annotation}}}`);

const FILES = {
  "a.yaml": pytorchManifest("a"),
  "long.yaml": annotated('gangway.dev/max-runtime: "2h", gangway.dev/backfill: "true"'),
  "queued.yaml": annotated('gangway.dev/queue: "nowhere"'),
  "typo.yaml": annotated('gangway.dev/prioritty: "5"'),
  "wrong.yaml": annotated('gangway.dev/priority: "high"'),
  "kueue.yaml": pytorchManifest("a", "  runPolicy: {suspend: true}").replace(
    "{name: a}",
    '{name: a, labels: {kueue.x-k8s.io/queue-name: default, kueue.x-k8s.io/max-exec-time-seconds: "60"}}',
  ),
};

async function served(t: TestContext) {
  const { api, store } = await startFixture(t);
  const gangway = (line: string): Promise<Ran> => run(line.split(" "), { address: api.address, files: FILES });
  const spec = (name = "a") => (store.jobs.get(`default/${name}`) ?? assert.fail(`no job ${name}`)).job.spec;
  const end = (name: string) => {
    const { job } = store.jobs.get(`default/${name}`) ?? assert.fail(`no job ${name}`);
    store.put({ ...job, version: job.version + 1, status: { ...job.status, phase: "SUCCEEDED", waiting: null } });
  };
  return { gangway, store, spec, end };
}

const GIVEN: Readonly<Record<string, string>> = {
  queue: "default",
  priority: "7",
  clusters: "east,west",
  "cluster-selector": "region=eu",
  "gpu-model": "h100",
  "required-topology": "rack",
  "min-available": "1",
  "schedule-timeout": "10m",
  partial: "restart",
  "max-preemptions": "2",
  "max-runtime": "90m",
  "move-after": "5m",
  backfill: "",
  interruptible: "",
  "interruptible-failure-threshold": "2",
  "restart-scope": "gang",
  "backoff-limit": "4",
  "system-backoff-limit": "5",
  "start-backoff-limit": "6",
  "active-deadline": "1h",
  "ttl-after-finished": "1d",
  "clean-pod-policy": "all",
  "clean-pod-policy-at-limit": "none",
  "cache-key": "k",
};
/** The class must exist; a level is required or preferred. */
const NOT_GIVEN = ["priority-class", "preferred-topology"];

function checkSpec(spec: Awaited<ReturnType<typeof served>>["spec"], name: string): void {
  const { runPolicy, priority, placement } = spec(name);
  assert.equal(priority, 7);
  assert.deepEqual(placement, {
    clusters: ["east", "west"],
    clusterSelector: { region: "eu" },
    gpuModels: ["h100"],
    topology: { required: "rack" },
  });
  const { schedulingPolicy, ...policy } = runPolicy;
  assert.deepEqual(schedulingPolicy, {
    minAvailable: 1,
    queue: "default",
    maxPreemptions: 2,
    partial: "RESTART",
    scheduleTimeoutSeconds: 600,
  });
  assert.deepEqual(policy, {
    cleanPodPolicy: "All",
    cleanPodPolicyAtLimit: "None",
    ttlSecondsAfterFinished: 86_400,
    activeDeadlineSeconds: 3600,
    backoffLimit: 4,
    systemBackoffLimit: 5,
    startBackoffLimit: 6,
    restartScope: "GANG",
    suspend: false,
    maxRuntimeMs: 5_400_000,
    moveAfterMs: 300_000,
    backfill: true,
    interruptible: true,
    interruptibleFailureThreshold: 2,
    cacheKey: "k",
  });
}

const flags = Object.entries(GIVEN).map(([name, value]) => (value === "" ? `--${name}` : `--${name} ${value}`));

test("every setting has an option, which submit and rerun put into the job", async (t) => {
  assert.deepEqual([...Object.keys(GIVEN), ...NOT_GIVEN].sort(), SETTINGS.map(({ name }) => name).sort());
  const { gangway, spec, end } = await served(t);
  const submitted = await gangway(`submit a.yaml ${flags.join(" ")}`);
  assert.equal(submitted.exitCode, 0, submitted.stderr);
  checkSpec(spec, "a");
  end("a");
  assert.equal((await gangway("rerun a --name plain --max-runtime 5m --no-backfill")).exitCode, 0);
  assert.deepEqual([spec("plain").runPolicy.maxRuntimeMs, spec("plain").runPolicy.backfill], [300_000, undefined]);
  assert.equal((await gangway("rerun a --name near --preferred-topology block")).exitCode, 0);
  assert.deepEqual(spec("near").placement.topology, { preferred: "block" }, "it takes the place of the required one");
  const shown = await gangway("get near -o yaml");
  assert.match(shown.stdout, /\n {4}topology:\n {6}preferred: block\n(?! {6})/);
  const again = await gangway(`rerun plain --name b ${flags.join(" ")}`);
  assert.equal(again.exitCode, 0, again.stderr);
  checkSpec(spec, "b");
});

test("an annotation counts before the manifest, and an option before the annotation", async (t) => {
  const { gangway, spec, store } = await served(t);
  assert.equal((await gangway("submit long.yaml")).exitCode, 0);
  assert.deepEqual([spec().runPolicy.maxRuntimeMs, spec().runPolicy.backfill], [7_200_000, true]);
  store.jobs.clear();
  assert.equal((await gangway("submit long.yaml --max-runtime 5m --no-backfill")).exitCode, 0);
  assert.deepEqual([spec().runPolicy.maxRuntimeMs, spec().runPolicy.backfill], [300_000, undefined]);
});

test("a printed job can be applied again after a setting of its annotations was updated", async (t) => {
  const { gangway } = await served(t);
  assert.equal((await gangway("submit long.yaml --priority 3")).exitCode, 0);
  assert.equal((await gangway("update a --priority 9")).exitCode, 0);
  const { stdout } = await gangway("get a -o yaml");
  assert.doesNotMatch(stdout, /gangway\.dev\/max-runtime/);
  assert.match(stdout, /priority: 9/);
});

test("an error names the option or the annotation that the value came from", async (t) => {
  const { gangway } = await served(t);
  const missing = "queue nowhere does not exist";
  const wrong: Readonly<Record<string, readonly [number, string]>> = {
    "submit a.yaml --queue nowhere": [3, `a.yaml, document 1:\nerror: invalid argument\n  --queue: ${missing}`],
    "can-run a.yaml --queue nowhere": [3, `a.yaml, document 1:\nerror: invalid argument\n  --queue: ${missing}`],
    "submit queued.yaml": [3, `metadata.annotations.gangway.dev/queue: ${missing}`],
    "submit queued.yaml --queue elsewhere": [3, "--queue: queue elsewhere does not exist"],
    "submit wrong.yaml": [3, "metadata.annotations.gangway.dev/priority: must be a whole number"],
    "submit a.yaml --required-topology rack/": [3, "--required-topology: must be a level: its name, such as rack"],
    "submit a.yaml --priority high": [2, "whole number from"],
    "submit a.yaml --min-available 0": [2, "Must be a whole number from 1 to 2147483647."],
    "submit a.yaml --schedule-timeout soon": [2, "Must be whole seconds, or a duration with its unit"],
    "submit typo.yaml --strict": [3, "gangway.dev/prioritty: is ignored: did you mean gangway.dev/priority?"],
  };
  for (const [line, [exitCode, says]] of Object.entries(wrong)) {
    const ran = await gangway(line);
    assert.ok(ran.stderr.includes(says), `${line}: ${ran.stderr}`);
    assert.equal(ran.exitCode, exitCode, line);
  }
  assert.match((await gangway("get")).stderr + (await gangway("get")).stdout, /no jobs/);
});

test("an update names how to change a setting that is fixed", async (t) => {
  const { gangway } = await served(t);
  await gangway("submit a.yaml");
  for (const line of ["update a --queue nlp", "update a --max-runtime 5m", "update a --backfill"]) {
    const option = /--[a-z-]+/.exec(line)?.[0] ?? "";
    const { stderr, exitCode } = await gangway(line);
    assert.equal(exitCode, 2);
    assert.ok(stderr.includes(`${option} cannot change after the job was created`), stderr);
    assert.ok(stderr.includes(`gangway rerun a --replace ${option}`), stderr);
  }
  assert.equal((await gangway("update --queue default --priority 5 --yes")).exitCode, 0);
});

test("a job of Kueue's users runs when it is admitted, unless --suspended keeps it", async (t) => {
  const { gangway, store } = await served(t);
  const ran = await gangway("submit kueue.yaml");
  assert.equal(ran.exitCode, 0, ran.stderr);
  assert.match(
    ran.stderr,
    /^warning: kueue.yaml, document 1: spec.runPolicy.suspend: is taken as "run when admitted"/m,
  );
  assert.match(ran.stderr, /^note: .*max-exec-time-seconds: is taken as runPolicy.maxRuntime: 60s$/m);
  assert.equal(store.jobs.get("default/a")?.job.status.phase, "WAITING");
  store.jobs.clear();
  const kept = await gangway("submit kueue.yaml --suspended");
  assert.doesNotMatch(kept.stderr, /warning/);
  assert.equal(store.jobs.get("default/a")?.job.status.phase, "SUSPENDED");
});
