import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { after, before, suite, test } from "node:test";
import fc from "fast-check";
import { parseAllDocuments } from "yaml";
import type { Job } from "../../src/core/job/job.ts";
import type { SentJob, SentSpec } from "../../src/core/job/request/sent.ts";
import { fromManifest } from "../../src/core/kinds/manifest/from-manifest.ts";
import { PLAIN_POD_CONFIG, type PodConfig } from "../../src/core/pods/pod-config.ts";
import { policyInForce } from "../../src/core/pods/policy/pod-policy.ts";
import { formatMilli, parseMilli, parseQuantity } from "../../src/core/pods/quantity.ts";
import { reconcile } from "../../src/core/reconcile/reconcile.ts";
import { TemplateJudge } from "../../src/intake/judged-templates.ts";
import { newJob } from "../../src/intake/new-job.ts";
import { arrayAt, isJsonObject, type JsonObject, objectAt, stringAt } from "../../src/runtime/json.ts";
import { configs, templates } from "../core/pods/pod-arbitraries.ts";
import { admit, CONFIG, jobOf, START_MS } from "../core/reconcile/world.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { controlPlaneBuilt } from "./build.ts";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";

const ROOT = new URL("../../", import.meta.url);
const TEMPLATES = 500;
const QUANTITIES = 10_000;
/** The number of quantities in one object, well below the largest size of an object. */
const BATCH = 1_000;

const digits = fc.oneof(
  fc.integer({ min: 0, max: 2000 }).map(String),
  fc.bigInt({ min: 0n, max: 10n ** 16n }).map(String),
  fc.constantFrom("1000", "1024", "1048576", "1000000", "9223372036854775807", "9223372036854775808", "007"),
);
const fraction = fc.oneof(
  { weight: 4, arbitrary: fc.constant("") },
  fc.constant("."),
  fc.integer({ min: 0, max: 999 }).map((value) => `.${String(value).padStart(3, "0")}`),
  fc.bigInt({ min: 0n, max: 10n ** 12n - 1n }).map((value) => `.${String(value).padStart(12, "0")}`),
);
const suffix = fc.oneof(
  fc.constantFrom("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"),
  fc
    .tuple(fc.constantFrom("e", "E"), fc.constantFrom("", "+", "-"), fc.integer({ min: 0, max: 9 }))
    .map((one) => one.join("")),
);
/** There is no suffix above E, and the server forgets the thousands that would want one: 1000000P comes back as 1. */
const NANO_MAX = 10n ** 21n * 10n ** 9n;
const quantity = fc
  .tuple(fc.constantFrom("", "", "", "+"), digits, fraction, suffix)
  .map((parts) => parts.join(""))
  .filter((text) => (parseQuantity(text)?.nano ?? 0n) < NANO_MAX);

suite("pods on a real API server", { skip: !controlPlaneBuilt() }, () => {
  let plane: ControlPlane;

  before(async () => {
    plane = await startControlPlane();
  });

  after(() => plane.stop());

  async function dryRun(path: string, body: JsonObject) {
    return plane.client.request({ method: "POST", path, query: { dryRun: "All" }, body });
  }

  /** The server's forms of quantities, as it stores them in a ResourceList. */
  async function answersTo(texts: readonly string[]): Promise<readonly string[]> {
    // Names of Kubernetes' own domain may have any amount, and fractions of it.
    const hard = Object.fromEntries(texts.map((text, index) => [`kubernetes.io/q${index}`, text]));
    const made = await dryRun("/api/v1/namespaces/default/resourcequotas", {
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { name: "quantities" },
      spec: { hard },
    });
    assert.ok(made.kind === "ok", made.kind === "failed" ? made.message : "");
    const answered = objectAt(objectAt(made.object, "spec"), "hard");
    return texts.map((_text, index) => String(answered[`kubernetes.io/q${index}`]));
  }

  test(`${QUANTITIES} random quantities have the server's value and canonical form`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(quantity, { minLength: BATCH, maxLength: BATCH }), async (texts) => {
        const written = await answersTo(texts);
        // The server keeps the text of a short quantity, and writes one with more digits in canonical form.
        const canonical = await answersTo(texts.map(padded));
        const found = texts.map((text, index) => {
          const ours = canonicalAmount(text);
          return { text, ours, theirs: canonical[index], sameValue: canonicalAmount(written[index] ?? "") === ours };
        });
        assert.deepEqual(
          found.filter(({ ours, theirs, sameValue }) => ours !== theirs || !sameValue),
          [],
        );
      }),
      { numRuns: QUANTITIES / BATCH, endOnFailure: true },
    );
  });

  /** Creates the service accounts of kinds before their pods. */
  async function ensureAccount(name: string | undefined): Promise<void> {
    if (name === undefined) return;
    const body = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name } };
    await plane.client.request({ method: "POST", path: "/api/v1/namespaces/default/serviceaccounts", body });
  }

  async function checkTaken(pods: readonly JsonObject[], what: string): Promise<void> {
    assert.ok(pods.length > 0, what);
    for (const pod of pods) {
      await ensureAccount(stringAt(objectAt(pod, "spec"), "serviceAccountName"));
      const taken = await dryRun("/api/v1/namespaces/default/pods", pod);
      assert.equal(taken.kind, "ok", `${what}: ${taken.kind === "failed" ? taken.message : ""}`);
    }
  }

  test("the server accepts every pod of every example", async () => {
    for (const file of globSync("examples/**/*.yaml", { cwd: ROOT })) {
      for (const document of parseAllDocuments(readFileSync(new URL(file, ROOT), "utf8"))) {
        const outcome = fromManifest(document.toJS() as JsonObject, OWN_KINDS);
        // One of the examples shows a refusal.
        if (outcome.kind === "refused") continue;
        const { pods, violations } = podsOf(outcome.manifest.spec, PLAIN_POD_CONFIG, "example");
        if (violations.length === 0) await checkTaken(pods, file);
      }
    }
  });

  test(`the server accepts pods of ${TEMPLATES} random templates unless Gangway refuses them first`, async () => {
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(templates, configs, fc.boolean(), async (template, config, interruptible) => {
        const sent = { kind: "Job", replicaSpecs: { Worker: { template } }, runPolicy: { interruptible } };
        const { pods, violations } = podsOf(sent, config, "random");
        if (violations.length > 0) return;
        await checkTaken(pods, "random");
        accepted += 1;
      }),
      { numRuns: TEMPLATES, endOnFailure: true },
    );
    assert.ok(accepted > TEMPLATES / 3, `only ${accepted} were accepted: the rest proves nothing`);
  });

  test("a template field that Gangway refuses is refused by the server too", async () => {
    await fc.assert(
      fc.asyncProperty(templates, spoilt, async (template, { field, spoil }) => {
        const spec = objectAt(template, "spec");
        const [first, ...others] = arrayAt(spec, "containers").filter(isJsonObject);
        const wrong = { spec: { ...spec, containers: [spoil(first ?? {}), ...others] } };
        const sent = { kind: "Job", replicaSpecs: { Worker: { template: wrong } } };
        assert.notDeepEqual(podsOf(sent, PLAIN_POD_CONFIG, "wrong").violations, []);
        const [pod = {}] = uncheckedPods(wrong);
        const refused = await dryRun("/api/v1/namespaces/default/pods", pod);
        assert.ok(refused.kind === "failed" && refused.message.includes(field), JSON.stringify([field, refused]));
      }),
      { numRuns: 100, endOnFailure: true },
    );
  });
});

/** The pods of a job as a worker creates them, or the problems if the job is not accepted. */
function podsOf(sent: SentSpec, config: PodConfig, name: string) {
  const kind = OWN_KINDS.kindOf(sent.kind);
  assert.ok(kind !== undefined);
  const job: SentJob = { namespace: "default", name, generateName: "", labels: {}, annotations: {}, spec: sent };
  const podPolicy = policyInForce(null, { level: "privileged", warn: [] });
  const rules = { kinds: OWN_KINDS, podConfig: config, podPolicy, isNew: false, isReserved: () => false };
  const { violations: own, pods, made: of } = new TemplateJudge().judge(job, rules, false);
  const violations = [...own, ...pods];
  const facts = {
    kind,
    project: "p",
    namespaceQueue: null,
    priorityClass: null,
    uid: "job-1",
    name,
    createdBy: "a",
    nowMs: START_MS,
  };
  if (violations.length > 0) return { violations, pods: [] };
  const made = newJob(job, { ...facts, templates: of?.templates ?? {} });
  return { violations, pods: createdPods(made) };
}

function createdPods(job: Job): readonly JsonObject[] {
  const seen = { cluster: "c", pods: [], services: [], configMaps: [] };
  const admitted = admit(job, { cluster: "c", nowMs: START_MS, number: 1 });
  const { actions } = reconcile(admitted, [seen], START_MS, CONFIG);
  return actions.flatMap((action) => (action.kind === "createPod" ? [action.manifest] : []));
}

/** The pods of a job that is built without validation. */
function uncheckedPods(template: JsonObject): readonly JsonObject[] {
  return createdPods(jobOf({ kind: "Job", replicaSpecs: { Worker: { template } } }, { namespace: "default" }));
}

/** Templates that Gangway refuses for one field, and the server's complaint about them. */
const spoilt = fc.constantFrom<{ readonly field: string; readonly spoil: (container: JsonObject) => JsonObject }>(
  { field: "spec.containers[0].name", spoil: (one) => ({ ...one, name: "Main" }) },
  { field: "spec.containers[0].image", spoil: ({ image: _image, ...one }) => one },
  { field: "quantities must match", spoil: (one) => ({ ...one, resources: { limits: { cpu: "many" } } }) },
  {
    field: "spec.containers[0].resources.limits[memory]",
    spoil: (one) => ({ ...one, resources: { limits: { memory: "-1" } } }),
  },
  {
    field: "spec.containers[0].resources.requests",
    spoil: (one) => ({ ...one, resources: { limits: { cpu: "1" }, requests: { cpu: "1001m" } } }),
  },
  {
    field: "spec.containers[0].resources.limits",
    spoil: (one) => ({ ...one, resources: { requests: { "nvidia.com/gpu": "1" } } }),
  },
  { field: "must be a standard resource", spoil: (one) => ({ ...one, resources: { limits: { gpu: "1" } } }) },
  { field: "must be an integer", spoil: (one) => ({ ...one, resources: { limits: { "nvidia.com/gpu": "1500m" } } }) },
  {
    field: "spec.containers[0].volumeMounts[0].name",
    spoil: (one) => ({ ...one, volumeMounts: [{ name: "nowhere", mountPath: "/n" }] }),
  },
);

function canonicalAmount(text: string): string {
  const quantity = parseQuantity(text);
  const milli = parseMilli(text);
  assert.ok(quantity !== null && milli !== null, text);
  return formatMilli(milli, quantity.format);
}

/** The same quantity with more decimal places. */
function padded(text: string): string {
  const zeros = "0".repeat(20);
  return text.replace(/^([+]?\d+)(\.\d*)?/, (_whole, units: string, places = ".") => `${units}${places}${zeros}`);
}
