/** Stores with random jobs that differ in everything by which jobs are selected and counted. */
import assert from "node:assert/strict";
import fc from "fast-check";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { writeAdmissions } from "../../src/adapters/store/jobs/write-job.ts";
import type { Job } from "../../src/core/job/job.ts";
import { ENDED_AGE_MS_MAX } from "../../src/core/job/request/count.ts";
import { ADMITTED_PHASES, type JobFilter } from "../../src/core/job/request/filter.ts";
import type { ShownJob } from "../../src/core/job/request/list.ts";
import { type Admission, type JobPhase, TERMINAL_PHASES } from "../../src/core/job/status.ts";
import type { TestStore } from "./db.ts";
import { NO_STATUS, NOW, newJob, sentOf } from "./jobs.ts";

const NAMESPACES = ["team", "lab", "ops"];
const QUEUES = ["research", "batch", "vision"];
const OWNERS = ["ann", "bob", "o'neil"];
const KINDS = ["PyTorchJob", "MPIJob"] as const;
const CLUSTERS = ["east", "west"];
const FLAVORS = ["gpu/a100", "gpu/h100", "gpu/l4"];
const REASONS = ["NoCapacity", "QuotaExhausted", "NotEvaluated"];
const PROJECTS = ["default", "p"];
const PREFIXES = ["train", "tr%in", "eval_"];
const PHASES: readonly JobPhase[] = ["WAITING", "SUSPENDED", ...ADMITTED_PHASES, ...TERMINAL_PHASES];

/** Around the time from which on jobs that have ended are counted, and around now. */
const timeMs = fc.oneof(fc.integer({ min: NOW - 5, max: NOW + 5 }), fc.integer({ min: -2, max: 2 }).map(sinceLong));

function sinceLong(offsetMs: number): number {
  return NOW - ENDED_AGE_MS_MAX + offsetMs;
}

export const anyJobs = fc.array(
  fc.record({
    namespace: fc.constantFrom(...NAMESPACES),
    queue: fc.constantFrom(...QUEUES),
    createdBy: fc.constantFrom(...OWNERS),
    project: fc.constantFrom(...PROJECTS),
    kind: fc.constantFrom(...KINDS),
    phase: fc.constantFrom(...PHASES),
    prefix: fc.constantFrom(...PREFIXES),
    cluster: fc.constantFrom(...CLUSTERS),
    flavors: fc.uniqueArray(fc.constantFrom(...FLAVORS), { maxLength: 2 }),
    amounts: fc.tuple(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 9 })),
    /** Another pool in which the job holds something. */
    pool: fc.option(fc.constantFrom("lic:solver", "lic:mesh")),
    waiting: fc.constantFrom("NoCapacity", "QuotaExhausted", null),
    team: fc.constantFrom("nlp", "vision"),
    replicas: fc.integer({ min: 0, max: 4 }),
    createTimeMs: timeMs,
    endedMs: timeMs,
  }),
  { maxLength: 40 },
);

type Random = typeof anyJobs extends fc.Arbitrary<readonly (infer One)[]> ? One : never;

/** Records the jobs with their admissions and tokens. Returns all jobs as a list shows them. */
export async function recordJobs(db: Db, store: TestStore, all: readonly Random[]): Promise<readonly ShownJob[]> {
  for (const name of ["batch", "vision"]) {
    await store.admin.ensureQueue({ name, strategy: "BEST_EFFORT_FIFO", quotas: [] });
  }
  for (const [at, random] of all.entries()) {
    const job = jobOf(random, at);
    assert.equal((await store.intake.createJob({ job, sent: sentOf(job), requestId: "" })).kind, "created");
    await db.tx((tx) =>
      writeAdmissions(
        tx,
        job.admissions.map((admission) => ({ jobUid: job.uid, admission })),
      ),
    );
    if (job.admissions.some(({ state }) => state === "live")) await recordTokens(db, job, random);
  }
  const page = await store.reads.listJobs({ filter: ALL_JOBS, order: "name", pageSize: 1_000, after: null });
  assert.ok(page !== "badCursor" && page.next === null && page.jobs.length === all.length);
  return page.jobs;
}

function jobOf(random: Random, at: number): Job {
  const { namespace, queue, createdBy, project, kind, phase, prefix, createTimeMs, endedMs } = random;
  const isEnded = TERMINAL_PHASES.includes(phase);
  const reason = { reason: random.waiting ?? "", message: "", sinceMs: NOW };
  const waiting = phase === "WAITING" && random.waiting !== null ? reason : null;
  const status = { ...NO_STATUS, phase, waiting, completionTimeMs: isEnded ? endedMs : null };
  const name = `${prefix}-${at}`;
  const labels = { team: random.team };
  const named = { namespace, name, queue, createdBy, project, createTimeMs, labels };
  const made = newJob({ ...named, status, admissions: admissionsOf(random) });
  const worker = made.spec.replicaSpecs["Worker"];
  assert.ok(worker);
  const replicaSpecs = { Launcher: { ...worker, replicas: 1 }, Worker: { ...worker, replicas: random.replicas } };
  return { ...made, spec: { ...made.spec, kind, replicaSpecs } };
}

/** A job that has ended keeps its last admission; one that waits has none. */
function admissionsOf({ phase, cluster, flavors }: Random): readonly Admission[] {
  const isEnded = TERMINAL_PHASES.includes(phase);
  if (!isEnded && !ADMITTED_PHASES.includes(phase)) return [];
  const none = { tokensReleasedMs: null, goneMs: null, belowMinSinceMs: null };
  const byRole = Object.fromEntries(flavors.map((flavor, at) => [`gpu-${at}`, flavor]));
  const admission = { number: 1, cluster, admitTimeMs: NOW, members: {}, flavors: byRole, flavorLabels: {}, ...none };
  return [{ ...admission, state: isEnded ? "ended" : "live" }];
}

/** Also those of an earlier admission, which do not count. */
async function recordTokens(db: Db, { uid, project, namespace }: Job, { flavors, amounts, pool }: Random) {
  const held = [...flavors, ...(pool === null ? [] : [pool])];
  for (const [at, name] of held.entries()) {
    for (const admission of [1, 2]) {
      const amount = amounts[at % 2];
      const token = `${uid}/${admission}`;
      await db.query(RECORD_TOKEN, [name, token, project, namespace, amount, at + 1, uid, admission]);
    }
  }
}

/** Lets the first admission of a job hold one token of a pool. */
export async function holdToken(db: Db, { uid, project, namespace }: Job, pool: string): Promise<void> {
  await db.query(RECORD_TOKEN, [pool, `${uid}/1`, project, namespace, 1, 99, uid, 1]);
}

const RECORD_TOKEN = `
insert into allocations (pool, token, project, namespace, amount, fence, job_uid, admission, granted_ms)
values ($1, $2, $3, $4, $5, $6, $7, $8, 0)`;

export const ALL_JOBS: JobFilter = {
  namespace: "",
  names: [],
  kinds: [],
  phases: [],
  queue: "",
  cluster: null,
  labels: {},
};

const some = (values: readonly string[]) => fc.option(fc.subarray([...values]), { nil: null });

/** Filters of the values that jobs may have. Most have one or two members. */
export const anyFilter: fc.Arbitrary<JobFilter> = fc
  .record(
    {
      namespace: fc.constantFrom(...NAMESPACES),
      namespaces: some(NAMESPACES),
      names: fc.subarray(["train-0", "train-1", "eval_-2", "tr%in-3"]),
      kinds: fc.subarray([...KINDS]),
      phases: fc.subarray([...PHASES]),
      queue: fc.constantFrom(...QUEUES),
      queues: some(QUEUES),
      cluster: fc.constantFrom(...CLUSTERS),
      labels: fc.constantFrom({}, { team: "nlp" }),
      createdBy: fc.subarray(OWNERS),
      reasons: fc.subarray(REASONS),
      namePrefix: fc.constantFrom("train", "tr%in", "eval_", "eval_-1", "t", "%", "_"),
      flavor: fc.constantFrom(...FLAVORS),
      project: fc.constantFrom(...PROJECTS),
      createdSinceMs: timeMs,
      createdBeforeMs: timeMs,
      endedSinceMs: timeMs,
    },
    { requiredKeys: [] },
  )
  .chain((members) => fc.subarray(Object.keys(members), { maxLength: 3 }).map((kept) => [members, kept] as const))
  .map(([members, kept]) => {
    const entries = Object.entries(members).filter(([member]) => kept.includes(member));
    return { ...ALL_JOBS, ...Object.fromEntries(entries) };
  });
