import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Job, PreemptionPolicy } from "../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { PriorityClassService } from "../../src/gen/gangway/v1/priority_class_service_pb.ts";
import { startFixture } from "./fixture.ts";
import { pytorchJob } from "./jobs.ts";

const classes = PriorityClassService.method;
const { createJob, updateJob, getJob } = JobService.method;
const { LOWER_PRIORITY, NEVER } = PreemptionPolicy;

/** A service with class `high` of 100, class `patient` of 50, which preempts nobody, and default class `usual` of 7. */
async function withClasses(t: TestContext) {
  const fixture = await startFixture(t);
  const create = (priorityClass: object) => fixture.call(classes.createPriorityClass, { priorityClass });
  await create({ name: "high", value: 100 });
  await create({ name: "patient", value: 50, preemptionPolicy: NEVER });
  await create({ name: "usual", value: 7, globalDefault: true });
  const submit = (name: string, spec: object) => fixture.call(createJob, { job: pytorchJob(name, spec) });
  const update = (name: string, spec: object, ...paths: string[]) =>
    fixture.call(updateJob, { job: { metadata: { name }, spec: spec as never }, updateMask: { paths } });
  return { ...fixture, create, submit, update };
}

const shown = (job: Job | undefined) => [
  job?.spec?.priority,
  job?.spec?.priorityClassName,
  job?.status?.preemptionPolicy,
];

test("a priority class is created, read, listed by value, changed and deleted", async (t) => {
  const { call } = await withClasses(t);
  const got = await call(classes.getPriorityClass, { name: "patient" });
  const { value, preemptionPolicy, globalDefault, resourceVersion } = got.ok!.priorityClass!;
  assert.deepEqual([value, preemptionPolicy, globalDefault, resourceVersion], [50, NEVER, false, "1"]);
  const listed = (await call(classes.listPriorityClasses, {})).ok!.priorityClasses;
  assert.deepEqual(
    listed.map(({ name, value: of, preemptionPolicy: policy }) => [name, of, policy]),
    [
      ["high", 100, LOWER_PRIORITY],
      ["patient", 50, NEVER],
      ["usual", 7, LOWER_PRIORITY],
    ],
  );
  const change = { name: "patient", description: "waits", resourceVersion: "1" };
  const updated = await call(classes.updatePriorityClass, { priorityClass: change });
  const after = updated.ok!.priorityClass!;
  assert.deepEqual([after.description, after.value, after.preemptionPolicy], ["waits", 50, NEVER]);
  const stale = await call(classes.updatePriorityClass, { priorityClass: change });
  assert.deepEqual([stale.error?.code, stale.error?.reason], ["ABORTED", "STALE_RESOURCE_VERSION"]);
  assert.equal((await call(classes.deletePriorityClass, { name: "patient" })).error, null);
  const gone = await call(classes.getPriorityClass, { name: "patient" });
  assert.deepEqual(
    [gone.error?.code, gone.error?.reason, gone.error?.resource],
    ["NOT_FOUND", "PRIORITY_CLASS_NOT_FOUND", "patient"],
  );
});

test("what is wrong with a priority class is refused with the exact reason", async (t) => {
  const { call, create, store } = await withClasses(t);
  const exists = await create({ name: "high", value: 1 });
  assert.deepEqual([exists.error?.code, exists.error?.reason], ["ALREADY_EXISTS", "PRIORITY_CLASS_EXISTS"]);
  const second = await create({ name: "other", value: 1, globalDefault: true });
  assert.deepEqual([second.error?.code, second.error?.precondition], ["FAILED_PRECONDITION", "DEFAULT_CLASS_EXISTS"]);
  assert.match(second.error!.message, /because priority class usual is/);
  const wrong: readonly (readonly [object, string, RegExp])[] = [
    [{ name: "a" }, "value", /must be set/],
    [{ name: "system-critical", value: 1 }, "name", /does not begin with 'system-'/],
    [{ name: "A", value: 1 }, "name", /DNS label/],
    [{ name: "a", value: 1, description: "x".repeat(1025) }, "description", /1024/],
    [
      { name: "a", value: 1, preemptionPolicy: 9 },
      "preemption_policy",
      /_LOWER_PRIORITY \(1\), PREEMPTION_POLICY_NEVER \(2\)/,
    ],
  ];
  for (const [sent, field, says] of wrong) {
    const { error } = await create(sent);
    const fields = error?.fields.map((one) => one.field);
    assert.deepEqual([error?.code, fields], ["INVALID_ARGUMENT", [`priority_class.${field}`]]);
    assert.match(error!.message, says);
  }
  const changes: readonly (readonly [object, string, RegExp])[] = [
    [{ name: "high", value: 101 }, "value", /must be omitted or 100: it never changes/],
    [{ name: "high", preemptionPolicy: NEVER }, "preemption_policy", /must be omitted or LOWER_PRIORITY/],
  ];
  for (const [sent, field, says] of changes) {
    const { error } = await call(classes.updatePriorityClass, { priorityClass: sent });
    assert.deepEqual([error?.code, error?.fields[0]?.field], ["INVALID_ARGUMENT", `priority_class.${field}`]);
    assert.match(error!.message, says);
  }
  assert.equal(store.classes.size, 3);
});

test("a job copies its class, the default class, or has the priority that it names", async (t) => {
  const { call, submit } = await withClasses(t);
  const made = async (name: string, spec: object) => shown((await submit(name, spec)).ok?.job);
  assert.deepEqual(await made("a", { priorityClassName: "high" }), [100, "high", LOWER_PRIORITY]);
  assert.deepEqual(await made("b", { priorityClassName: "patient", priority: 50 }), [50, "patient", NEVER]);
  assert.deepEqual(await made("c", {}), [7, "usual", LOWER_PRIORITY]);
  assert.deepEqual(await made("d", { priority: 0 }), [0, "", LOWER_PRIORITY]);
  await call(classes.deletePriorityClass, { name: "patient" });
  assert.deepEqual(shown((await call(getJob, { name: "b" })).ok?.job), [50, "patient", NEVER]);
  await call(classes.deletePriorityClass, { name: "usual" });
  assert.deepEqual(await made("e", {}), [0, "", LOWER_PRIORITY]);
});

test("a class that does not exist, and a priority that is not that of the class, are refused", async (t) => {
  const { submit, store } = await withClasses(t);
  const typo = await submit("a", { priorityClassName: "higj" });
  assert.deepEqual(
    [typo.error?.code, typo.error?.fields[0]?.field],
    ["INVALID_ARGUMENT", "job.spec.priority_class_name"],
  );
  assert.match(typo.error!.message, /priority class higj does not exist; did you mean high\?/);
  const unknown = await submit("a", { priorityClassName: "production" });
  assert.match(unknown.error!.message, /production does not exist; there are: high, patient, usual/);
  const other = await submit("a", { priorityClassName: "high", priority: 5 });
  assert.equal(other.error?.fields[0]?.field, "job.spec.priority");
  assert.match(other.error!.message, /must be omitted or 100, the value of priority class high/);
  assert.equal(store.jobs.size, 0);
});

test("an update changes the class with its value, and another priority takes the class away", async (t) => {
  const { call, submit, update } = await withClasses(t);
  await submit("a", { priorityClassName: "patient" });
  const now = async () => shown((await call(getJob, { name: "a" })).ok?.job);
  await update("a", { priorityClassName: "high" }, "spec.priority_class_name");
  assert.deepEqual(await now(), [100, "high", LOWER_PRIORITY]);
  await update("a", { priorityClassName: "patient", priority: 50 }, "spec.priority", "spec.priority_class_name");
  assert.deepEqual(await now(), [50, "patient", NEVER]);
  await update("a", { priority: 50 }, "spec.priority");
  assert.deepEqual(await now(), [50, "patient", NEVER], "the priority of the class keeps the class");
  await update("a", { priority: 51 }, "spec.priority");
  assert.deepEqual(await now(), [51, "", LOWER_PRIORITY]);
  await update("a", { priorityClassName: "patient" }, "spec.priority_class_name");
  await update("a", {}, "spec.priority_class_name");
  assert.deepEqual(await now(), [50, "", LOWER_PRIORITY], "the priority stays without the class");
  const both = await update(
    "a",
    { priorityClassName: "high", priority: 1 },
    "spec.priority",
    "spec.priority_class_name",
  );
  assert.deepEqual([both.error?.code, both.error?.fields[0]?.field], ["INVALID_ARGUMENT", "job.spec.priority"]);
  const unknown = await update("a", { priorityClassName: "higher" }, "spec.priority_class_name");
  assert.deepEqual(unknown.error?.fields[0]?.field, "job.spec.priority_class_name");
  const long = await update("a", { priorityClassName: "x".repeat(64) }, "spec.priority_class_name");
  assert.match(long.error!.message, /at most 63/);
  assert.deepEqual(await now(), [50, "", LOWER_PRIORITY]);
});
