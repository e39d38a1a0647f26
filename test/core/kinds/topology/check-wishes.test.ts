import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { TopologySlice, TopologyWish } from "../../../../src/core/job/placement/topology-wish.ts";
import type { SentSpec } from "../../../../src/core/job/request/sent.ts";
import { checkTopology } from "../../../../src/core/kinds/topology/check-wishes.ts";
import { kindsWith } from "../../../support/kinds.ts";
import { template } from "../../reconcile/world.ts";
import { ETL, etlEntry } from "../plugin-world.ts";

const SERVED = kindsWith(etlEntry);
const JOB = "spec.placement.topology";
const WORKER = "spec.replicaSpecs.Worker.topology";
const LEVEL = "must be a level: its name, such as rack, or the label of its nodes, such as topology.kubernetes.io/rack";

type Case = {
  readonly kind?: string;
  readonly workers?: number;
  readonly master?: true;
  readonly minAvailable?: number;
  readonly job?: TopologyWish;
  readonly worker?: TopologyWish;
  readonly errors: readonly string[];
};

function specOf({ kind = "PyTorchJob", workers = 8, master, minAvailable, job, worker }: Omit<Case, "errors">) {
  const spec: SentSpec = {
    kind,
    replicaSpecs: {
      Worker: { replicas: workers, template: template("pytorch"), ...(worker && { topology: worker }) },
      ...(master && { Master: { template: template("pytorch") } }),
    },
    ...(minAvailable !== undefined && { runPolicy: { schedulingPolicy: { minAvailable } } }),
    ...(job && { placement: { topology: job } }),
  };
  return spec;
}

function errorsOf(of: Omit<Case, "errors">): readonly string[] {
  const spec = specOf(of);
  const kind = SERVED.kindOf(spec.kind) ?? assert.fail("the kind is served");
  return checkTopology(kind, spec).map(({ path, message }) => `${path} ${message}`);
}

const slices = (...all: readonly (readonly [string, number])[]): TopologyWish => ({
  slices: all.map(([level, size]): TopologySlice => ({ level, size })),
});

const cases: Record<string, Case> = {
  "no wish": { errors: [] },
  "a name and a label": { job: { required: "block" }, worker: { preferred: "example.com/rack" }, errors: [] },
  "nested slices that divide": { worker: slices(["block", 8], ["rack", 4], ["host", 2]), errors: [] },
  "nested slices of one size": { worker: slices(["block", 4], ["rack", 4]), errors: [] },
  "slices in the level that the job requires": { job: { required: "block" }, worker: slices(["block", 4]), errors: [] },
  "slices of a job with one replica type": { job: { required: "block", ...slices(["rack", 4]) }, errors: [] },
  "slices of a replica type beside another": { master: true, worker: slices(["rack", 4]), errors: [] },
  "slices and a minimum of all": { worker: slices(["rack", 4]), minAvailable: 8, errors: [] },
  "slices of no replicas": { workers: 0, master: true, worker: slices(["rack", 4]), errors: [] },
  "a level that is none": {
    job: { required: "Rack 7" },
    worker: { preferred: "-" },
    errors: [`${JOB}.required ${LEVEL}, not "Rack 7"`, `${WORKER}.preferred ${LEVEL}, not "-"`],
  },
  "a level of slices that is none": { worker: slices(["", 4]), errors: [`${WORKER}.slices[0].level ${LEVEL}, not ""`] },
  "both a required and a preferred level": {
    job: { required: "rack", preferred: "block" },
    errors: [`${JOB}.preferred must be omitted beside required: a wish has one of them`],
  },
  "slices of no members, and of too many": {
    worker: slices(["block", 10_001], ["rack", 0]),
    errors: [
      `${WORKER}.slices[0].size must be from 1 to 10000, not 10001`,
      `${WORKER}.slices[1].size must be from 1 to 10000, not 0`,
      `${WORKER}.slices[0].size must divide 8, the number of Worker replicas, and is 10001`,
    ],
  },
  "slices that do not divide": {
    worker: slices(["block", 3], ["rack", 2]),
    errors: [
      `${WORKER}.slices[1].size must divide 3, the size of slices[0], and is 2`,
      `${WORKER}.slices[0].size must divide 8, the number of Worker replicas, and is 3`,
    ],
  },
  "slices of a job that do not divide": {
    job: slices(["rack", 16]),
    errors: [`${JOB}.slices[0].size must divide 8, the number of Worker replicas, and is 16`],
  },
  "a level with slices twice": {
    worker: slices(["rack", 4], ["host", 2], ["rack", 1]),
    errors: [`${WORKER}.slices[2].level must not be rack again, as in slices[0]`],
  },
  "too many slices": {
    workers: 1,
    worker: slices(...Array.from({ length: 17 }, (_, at) => [`l${at}`, 1] as const)),
    errors: [`${WORKER}.slices must be at most 16, not 17`],
  },
  "slices coarser than the level that the job requires": {
    job: { required: "rack" },
    worker: slices(["block", 4], ["rack", 2]),
    errors: [
      `${WORKER}.slices[0].level must not be coarser than rack, where all of them run, and slices come coarse to fine`,
    ],
  },
  "slices coarser than the level that they prefer": {
    worker: { preferred: "rack", ...slices(["block", 4], ["rack", 2]) },
    errors: [
      `${WORKER}.slices[0].level must not be coarser than rack, where all of them run, and slices come coarse to fine`,
    ],
  },
  "slices of a job with two replica types": {
    master: true,
    job: slices(["rack", 4]),
    errors: [`${JOB}.slices must be omitted, because the job has 2 replica types: a replica type can have slices`],
  },
  "slices of a job and of its replica type": {
    job: slices(["rack", 4]),
    worker: slices(["rack", 2]),
    errors: [`${JOB}.slices must be omitted, because the replica type Worker has slices of its own`],
  },
  "slices of a gang that starts with a part of its members": {
    worker: slices(["rack", 4]),
    minAvailable: 4,
    errors: [
      "spec.runPolicy.schedulingPolicy.minAvailable must be omitted, or 8, the number of all replicas: " +
        "a job with slices is admitted as a whole",
    ],
  },
  "a wish of a job without pods": {
    kind: ETL.name,
    job: { required: "rack" },
    errors: [`${JOB}.required must be omitted: a ${ETL.name} has no pods`],
  },
};
for (const [name, { errors, ...of }] of Object.entries(cases)) {
  test(`${name}: ${errors.length === 0 ? "accepted" : "refused"}`, () => {
    assert.deepEqual(errorsOf(of), errors);
  });
}

const someLevel = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom("block", "rack", "host", "topology.kubernetes.io/rack") },
  { weight: 1, arbitrary: fc.constantFrom("", "no level") },
);
const someSize = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(1, 2, 4, 8) },
  { weight: 1, arbitrary: fc.integer({ min: -1, max: 9 }) },
);
const someSlices = fc.array(fc.record({ level: someLevel, size: someSize }), { maxLength: 3 });
const someWish: fc.Arbitrary<TopologyWish> = fc.oneof(
  fc.record({ required: someLevel }),
  fc.record({ slices: someSlices }),
  fc.record({ preferred: someLevel, slices: someSlices }),
  fc.record({ required: someLevel, preferred: someLevel, slices: someSlices }, { requiredKeys: [] }),
);
const someCase = fc.record(
  {
    workers: fc.oneof(fc.constantFrom(8, 16), fc.integer({ min: 0, max: 16 })),
    master: fc.constant(true as const),
    minAvailable: fc.integer({ min: 1, max: 17 }),
    job: someWish,
    worker: someWish,
  },
  { requiredKeys: ["workers"] },
);

/** The rules, said once more of the members themselves. */
function isRight({ workers = 8, master, minAvailable, job = {}, worker = {} }: Omit<Case, "errors">): boolean {
  const all = [job, worker];
  const levels = all.flatMap(({ required, preferred, slices: ofWish = [] }) => {
    return [required || "rack", preferred || "rack", ...ofWish.map(({ level }) => level)];
  });
  const ofJob = job.slices ?? [];
  const ofWorker = worker.slices ?? [];
  const outer = all.flatMap(({ required, preferred }) => required || preferred || []);
  const sliced = ofWorker.length > 0 ? ofWorker : ofJob;
  const members = Array.from({ length: workers || Math.max(sliced[0]?.size ?? 0, 0) }, (_, index) => index);
  const groupsOf = (size: number) => Object.values(Object.groupBy(members, (index) => Math.floor(index / size)));
  /** Every group has its whole size, and is within one group of the slice before. */
  const isWhole = sliced.every(({ size }, at) => {
    const parent = sliced[at - 1]?.size ?? members.length;
    const isWithin = (group: readonly number[]) => new Set(group.map((index) => Math.floor(index / parent))).size === 1;
    return size >= 1 && groupsOf(size).every((group = []) => group.length === size && isWithin(group));
  });
  return (
    levels.every((level) => !["", "no level"].includes(level)) &&
    all.every(({ required, preferred }) => !(required && preferred)) &&
    isWhole &&
    new Set(sliced.map(({ level }) => level)).size === sliced.length &&
    !(ofJob.length > 0 && (ofWorker.length > 0 || master === true)) &&
    outer.every((level) => sliced.slice(1).every((one) => one.level !== level)) &&
    (sliced.length === 0 || minAvailable === undefined || minAvailable >= workers + (master ? 1 : 0))
  );
}

test("a job is accepted if and only if the rules of wishes hold", () => {
  let accepted = 0;
  fc.assert(
    fc.property(someCase, (of) => {
      const right = isRight(of);
      const isSliced = [of.worker, of.job].some((wish) => (wish?.slices ?? []).length > 0);
      if (right && isSliced) accepted++;
      assert.equal(errorsOf(of).length === 0, right, errorsOf(of).join("\n"));
    }),
    { numRuns: 3_000 },
  );
  assert.ok(accepted > 20, "slices that are right were among them");
});
