import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { SentJob } from "../../src/core/job/request/sent.ts";
import { hashedAsk } from "../../src/core/plan/model/ask.ts";
import { PLAIN_POD_CONFIG } from "../../src/core/pods/pod-config.ts";
import { type PodPolicy, policyInForce, TRIAL_DEFAULT } from "../../src/core/pods/policy/pod-policy.ts";
import { TemplateJudge } from "../../src/intake/judged-templates.ts";
import { newJob } from "../../src/intake/new-job.ts";
import type { JsonObject } from "../../src/runtime/json.ts";
import { configs, templates } from "../core/pods/pod-arbitraries.ts";
import { OWN_KINDS } from "../support/kinds.ts";

const GOOD = { spec: { containers: [{ name: "main", image: "x" }] } };

/** The replica type beside the workers, of kinds that have one. */
const LEADS: Readonly<Record<string, string>> = { PyTorchJob: "Master", MPIJob: "Launcher", TFJob: "Chief" };
const KINDS = ["Job", ...Object.keys(LEADS), "JAXJob"];

function rulesOf(podConfig = PLAIN_POD_CONFIG, policy: PodPolicy | null = null, isNew = false) {
  const podPolicy = policyInForce(policy, TRIAL_DEFAULT);
  return { kinds: OWN_KINDS, podConfig, podPolicy, isNew, isReserved: () => false };
}

type MoreOfJob = Partial<SentJob> & { readonly interruptible?: boolean; readonly kind?: string };

function jobOf(template: JsonObject, { interruptible = false, kind = "Job", ...rest }: MoreOfJob = {}): SentJob {
  const lead = LEADS[kind];
  const replicaSpecs = {
    ...(lead === undefined ? {} : { [lead]: { replicas: 1, template } }),
    Worker: { replicas: 2, template },
  };
  const spec = { kind, replicaSpecs, runPolicy: { interruptible } };
  return { namespace: "team", name: "train", generateName: "", labels: {}, annotations: {}, spec, ...rest };
}

/** Texts that decide nothing about pods, and some that are judged, because of their placeholders. */
const texts = fc.constantFrom("", "a", "b", "{{ .JobName }}", "{{ .Inputs.none }}", "{{ .nothing }}", "$(A)", "\u0000");

/** The template whose first container has these texts. */
function withTexts(template: JsonObject, [one, other]: readonly string[]): JsonObject {
  const spec = template["spec"] as JsonObject;
  const [first, ...rest] = spec["containers"] as readonly JsonObject[];
  const container = { ...first, args: [one ?? "", "-v"], env: [{ name: "TRIAL", value: other ?? "" }] };
  return { ...template, spec: { ...spec, containers: [container, ...rest] } };
}

const policies = fc.constantFrom<PodPolicy | null>(
  null,
  { level: "privileged", allow: [], limits: {} },
  { level: "restricted", allow: [], limits: {} },
  { level: null, allow: [], limits: { image: ["busybox*"] } },
);

test("a job is judged as if no other job had been judged before", () => {
  const asked = fc.record({
    template: fc.oneof(templates, fc.constant(GOOD)),
    texts: fc.option(fc.tuple(texts, texts)),
    spoilt: fc.constantFrom<JsonObject>({}, {}, {}, { hostNetwork: true }, { x: 1 }, { nodeName: Number.NaN }),
    name: fc.constantFrom("a", "b", "0"),
    namespace: fc.constantFrom("team", "other"),
    kind: fc.constantFrom(...KINDS),
    interruptible: fc.boolean(),
    policy: policies,
    isNew: fc.boolean(),
  });
  const sequences = fc.tuple(fc.array(asked, { minLength: 2, maxLength: 6 }), fc.array(configs, { minLength: 1 }));
  fc.assert(
    fc.property(sequences, ([jobs, platforms]) => {
      const judge = new TemplateJudge();
      for (const platform of platforms) {
        for (const { template: plain, texts, spoilt, policy, isNew, ...more } of [...jobs, ...jobs]) {
          const template = texts === null ? plain : withTexts(plain, texts);
          const spec = { ...(template["spec"] as JsonObject), ...spoilt };
          const sent = jobOf({ ...template, spec }, more);
          const rules = rulesOf(platform, policy, isNew);
          const { made, ...found } = judge.judge(sent, rules, more.name !== "0");
          const { made: alone, ...expected } = new TemplateJudge().judge(sent, rules, false);
          assert.deepEqual(found, expected);
          assert.deepEqual(made?.templates, alone?.templates);
          assert.deepEqual(made?.ask(), alone?.ask());
        }
      }
    }),
    { numRuns: 20 },
  );
});

test("the ask of judged templates is that of the job that is recorded", () => {
  fc.assert(
    fc.property(templates, configs, fc.boolean(), (template, platform, interruptible) => {
      const sent = jobOf(template, { interruptible });
      const { made, violations, pods } = new TemplateJudge().judge(sent, rulesOf(platform), true);
      fc.pre(violations.length === 0 && pods.length === 0);
      const kind = OWN_KINDS.kindOf("Job");
      assert.ok(kind !== undefined && made !== null);
      const priorityClass = { name: "high", value: 7, preemptionPolicy: "NEVER", description: "" } as const;
      const facts = { kind, project: "p", namespaceQueue: "q", priorityClass, uid: "u", createdBy: "a", nowMs: 1 };
      const job = newJob(sent, { ...facts, name: "train", templates: made.templates });
      assert.deepEqual(made.ask(), hashedAsk(job, OWN_KINDS));
    }),
    { numRuns: 100 },
  );
});

test("jobs that differ in their names alone are judged once", () => {
  const judge = new TemplateJudge();
  const made = (name: string, template: JsonObject = GOOD) =>
    judge.judge(jobOf(template, { name }), rulesOf(), true).made;
  const first = made("a");
  assert.equal(made("b"), first);
  assert.notEqual(judge.judge(jobOf(GOOD), rulesOf(), false).made, first);
});

test("jobs that differ in commands, arguments and values of variables alone are judged once", () => {
  const judge = new TemplateJudge();
  const judged = (trial: string) => judge.judge(jobOf(withTexts(GOOD, [trial, trial])), rulesOf(), true);
  const [first, second] = [judged("1"), judged("2")];
  assert.equal(second.made?.ask, first.made?.ask);
  assert.deepEqual(second.made?.templates["Worker"]?.template, withTexts(GOOD, ["2", "2"]));
  const wrong = judged("{{ .Inputs.none }}");
  assert.match(wrong.violations[0]?.message ?? "", /Inputs\.none/);
  const again = judged("3");
  assert.deepEqual([again.violations, again.warnings], [[], []]);
  assert.deepEqual(again.made?.templates["Worker"]?.template, withTexts(GOOD, ["3", "3"]));
});

test("the judgements of many jobs do not stay", () => {
  const judge = new TemplateJudge();
  const made = (image: string) => {
    const template = { spec: { containers: [{ name: "main", image }] } };
    return judge.judge(jobOf(template), rulesOf(), true).made;
  };
  const [first, second] = [made("0"), made("1")];
  for (let at = 2; at < 256; at++) made(String(at));
  assert.equal(made("0"), first, "the one that was used last stays");
  made("256");
  assert.equal(made("0"), first);
  assert.notEqual(made("1"), second, "the one that was not used for longest goes");
  const long = "x".repeat(70_000);
  assert.notEqual(made(long), made(long), "a long one is not kept");
});

test("a template that is too large is named, so that nothing else reads it", () => {
  const limits = Object.fromEntries(Array.from({ length: 1_001 }, (_, at) => [`example.com/r${at}`, "1"]));
  const large = { spec: { containers: [{ name: "main", image: "x", resources: { limits } }] } };
  const toldOf = (template: JsonObject) => new TemplateJudge().judge(jobOf(template), rulesOf(), true).tooLarge;
  assert.deepEqual(toldOf(large), new Set(["Worker"]));
  assert.deepEqual(toldOf(GOOD), new Set());
});
