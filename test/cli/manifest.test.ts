import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { toJson } from "@bufbuild/protobuf";
import fc from "fast-check";
import { readManifests } from "../../src/cli/manifest/read-manifests.ts";
import { processIo } from "../../src/cli/shell/process-io.ts";
import { JobSchema } from "../../src/gen/gangway/v1/job_pb.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";
import { type Json, objectAt } from "../../src/runtime/json.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { findShippedRuntime } from "../support/shipped-runtimes.ts";
import { pytorchManifest } from "./harness.ts";
import { parseDocuments } from "./parse-documents.ts";

const EXAMPLES = join(import.meta.dirname, "../../examples");

/** The errors of one manifest file as `field: message`. If it can be sent, its warnings. */
function judge(text: string, namespace = { name: "default", isExplicit: false }) {
  const { documents, errors } = parseDocuments({ name: "job.yaml", text });
  const jobs: unknown[] = [];
  const warnings: string[] = [];
  const refused = [...errors];
  for (const { where, value } of documents) {
    const outcome = readManifest(value, { kinds: OWN_KINDS, namespace });
    if (outcome.kind === "invalid")
      refused.push(...outcome.errors.map((note) => `${where}: ${note.field}: ${note.message}`));
    else {
      jobs.push(toJson(JobSchema, outcome.job));
      warnings.push(...outcome.warnings.map((note) => note.field));
    }
  }
  return { jobs, warnings, refused };
}

const ours = (spec: string, kind = "Job") =>
  `apiVersion: gangway.dev/v1\nkind: ${kind}\nmetadata: {name: a}\nspec:\n` +
  `  replicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: i}]}}}}\n${spec}`;

const refused: Record<string, { text: string; errors: RegExp[] }> = {
  "a kind that is not served is refused by its name": {
    text: "apiVersion: kubeflow.org/v1\nkind: MXJob\nmetadata: {name: a}\nspec: {}",
    errors: [/document 1: : kind MXJob is not served: /],
  },
  "an old version of a kind is refused by its name": {
    text: "apiVersion: kubeflow.org/v1alpha1\nkind: MPIJob\nmetadata: {name: a}\nspec: {gpus: 4}",
    errors: [/apiVersion: must be kubeflow.org\/v1 for kind MPIJob, not kubeflow.org\/v1alpha1/],
  },
  "an unknown kind is refused with those that are served": {
    text: "apiVersion: kubeflow.org/v1\nkind: NoJob\nmetadata: {name: a}\nspec: {}",
    errors: [/unknown kind NoJob; the served kinds are PyTorchJob, TFJob, .*, Job/],
  },
  "another API is refused": {
    text: "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec: {}",
    errors: [/apiVersion: must be kubeflow.org\/v1, batch\/v1, .* or gangway.dev\/v1, not "batch\/v1", the version of/],
  },
  "a Job of Kubernetes is refused by the members that are wrong, by the names that it has": {
    text: batchManifest("  selector: {}\n  completions: 3\n  maxFailedIndexes: 1\n  suspended: true", "Always"),
    errors: [
      /spec.suspended: is not a known field: did you mean suspend\?/,
      /spec.selector: is set by Gangway; remove it/,
      /spec.template.spec.restartPolicy: must be OnFailure or Never/,
    ],
  },
  "rules of a Job of Kubernetes that contradict each other are named as its manifest spells them": {
    text: batchManifest("  maxFailedIndexes: 1\n  successPolicy: {rules: [{succeededIndexes: '0'}]}"),
    errors: [/spec.maxFailedIndexes: needs backoffLimitPerIndex/, /spec.successPolicy: needs completionMode Indexed/],
  },
  "what is no job is refused by its kind, whatever else is in its file": {
    text: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a}\nspec: {accessModes: [ReadWriteOnce]}",
    errors: [/apiVersion: must be .*, not "v1", the version of this PersistentVolumeClaim$/],
  },
  "a kind from before Kubeflow's API group is refused by its name": {
    text: "apiVersion: mlkube.io/v1beta1\nkind: TfJob\nmetadata: {name: a}\nspec: {replica_specs: [{tf_port: 2222}]}",
    errors: [/apiVersion: must be .*, not "mlkube.io\/v1beta1", the version of this TfJob$/],
  },
  "a chart's template that was not rendered is refused at its place": {
    text: pytorchManifest("a").replace("name: a", "name: {{ .Release.Name }}"),
    errors: [
      /^job.yaml, document 1: keys must be strings at line \d+, column \d+; templates with {{ }} must be rendered/,
    ],
  },
  "a second document is called by its number": {
    text: `${pytorchManifest("a")}---\nkind: [`,
    errors: [/^job.yaml, document 2: .*line/],
  },
  "a document that is no object is refused": { text: "- a\n- b", errors: [/document 1: : must be an object/] },
  "a name is required": {
    text: pytorchManifest("a").replace("name: a", "labels: {}"),
    errors: [/metadata.name: is required/],
  },
  "suspend is a flag": {
    text: pytorchManifest("a", "  runPolicy: {suspend: 1}"),
    errors: [/spec.runPolicy.suspend: must be true or false/],
  },
  "managedBy is refused": {
    text: pytorchManifest("a", "  runPolicy: {managedBy: x}"),
    errors: [/spec.runPolicy.managedBy: /],
  },
  "a wrong elasticPolicy is refused as the manifest spells it": {
    text: pytorchManifest("a", "  elasticPolicy: {minReplicas: 3, maxReplicas: 2}"),
    errors: [/: spec.elasticPolicy.maxReplicas: must be at least minReplicas, 3/],
  },
  "wrong members of a TFJob are refused together": {
    text: pytorchManifest("a", "  successPolicy: Most\n  enableDynamicWorker: 1")
      .replace("PyTorchJob", "TFJob")
      .replace("pytorchReplicaSpecs", "tfReplicaSpecs")
      .replaceAll("name: pytorch", "name: tensorflow"),
    errors: [/spec.successPolicy: must be one of "", AllWorkers/, /spec.enableDynamicWorker: must be true or false/],
  },
  "a wrong enum value names those that there are": {
    text: pytorchManifest("a", "  runPolicy: {cleanPodPolicy: Some}"),
    errors: [/spec.runPolicy.cleanPodPolicy: must be one of All, Running, None/],
  },
  "negative replicas are found at their field": {
    text: pytorchManifest("a").replace("replicas: 2", "replicas: -2"),
    errors: [/spec.pytorchReplicaSpecs.Worker.replicas: must not be negative/],
  },
  "a number that JSON does not have is refused": {
    text: pytorchManifest("a").replace("image: example.com/train", "image: .nan"),
    errors: [/^job.yaml, document 1: spec.*image: must be a finite number/],
  },
  "another kind inside than outside is refused": {
    text: ours("  kind: TFJob", "PyTorchJob"),
    errors: [/spec.kind: must be PyTorchJob/],
  },
  "an unknown field of our own form is refused": {
    text: ours("  prioritty: 5"),
    errors: [/spec.prioritty: is not a known field/],
  },
};

for (const [name, { text, errors }] of Object.entries(refused)) {
  test(name, () => {
    const judged = judge(text);
    assert.deepEqual(judged.jobs.length, text.includes("---") ? 1 : 0);
    assert.equal(judged.refused.length, errors.length, judged.refused.join("\n"));
    for (const [at, error] of errors.entries()) assert.match(judged.refused[at] ?? "", error);
  });
}

function batchManifest(spec: string, restartPolicy = "Never"): string {
  const container = "containers: [{name: main, image: i}]";
  return `apiVersion: batch/v1
kind: Job
metadata: {name: a}
spec:
${spec}
  template: {spec: {restartPolicy: ${restartPolicy}, ${container}}}`;
}

const mpiManifest = `apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: a}
spec:
  slotsPerWorker: 1
  cleanPodPolicy: Running
  mpiReplicaSpecs:
    Launcher: {replicas: 1, template: {spec: {containers: [{name: mpi-launcher, image: i, command: [horovodrun]}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: mpi-worker, image: i}]}}}
`;
const elasticManifest = pytorchManifest(
  "a",
  "  elasticPolicy: {minReplicas: 1, maxReplicas: 3, rdzvBackend: c10d, " +
    "metrics: [{type: Resource, resource: {name: cpu}}]}",
);

const accepted: Record<string, { text: string; warnings?: string[]; spec: object }> = {
  "an MPIJob with its run policy at the old place and containers of other names": {
    text: mpiManifest,
    spec: {
      kind: "MPIJob",
      runPolicy: { cleanPodPolicy: "CLEAN_POD_POLICY_RUNNING" },
      kindSpec: { slotsPerWorker: 1 },
    },
  },
  "an elastic PyTorchJob that was made for an autoscaler": {
    text: elasticManifest,
    spec: {
      kindSpec: {
        elasticPolicy: {
          minReplicas: 1,
          maxReplicas: 3,
          rdzvBackend: "c10d",
          metrics: [{ type: "Resource", resource: { name: "cpu" } }],
        },
      },
    },
  },
  "inputs of our own manifest": {
    text: `apiVersion: gangway.dev/v1
kind: Job
metadata: {name: a}
spec:
  kind: Job
  inputs: {lr: 0.1, files: [a, b]}
  replicaSpecs: {Worker: {template: {spec: {containers: [{name: main, image: i}]}}}}
`,
    spec: { kind: "Job", inputs: { lr: 0.1, files: ["a", "b"] } },
  },
  "Kubeflow's replica specs become ours": {
    text: pytorchManifest("a", "  nprocPerNode: auto"),
    spec: { kind: "PyTorchJob", kindSpec: { nprocPerNode: "auto" } },
  },
  "what steers a cluster's gang scheduler is sent": {
    text: pytorchManifest(
      "a",
      "  runPolicy: {schedulingPolicy: {minAvailable: 2, minResources: {cpu: 1}, priorityClass: high}}",
    ),
    spec: {
      runPolicy: { schedulingPolicy: { minAvailable: 2, minResources: { cpu: "1" }, priorityClass: "high" } },
    },
  },
  "what was read back from a cluster is ignored with a warning": {
    text: `${pytorchManifest("a").replace("{name: a}", "{name: a, uid: x}")}status: {}`,
    warnings: ["status", "metadata.uid"],
    spec: { kind: "PyTorchJob" },
  },
  "a job can be submitted suspended": {
    text: pytorchManifest("a", "  runPolicy: {suspend: true, activeDeadlineSeconds: 9}"),
    spec: { runPolicy: { suspend: true, activeDeadlineSeconds: "9" } },
  },
  "enum values of our own form are taken in both forms": {
    text: ours(
      "  runPolicy: {cleanPodPolicy: CLEAN_POD_POLICY_ALL, restartScope: GANG}\n" +
        "  priority: 7\n  placement: {gpuModels: [h100]}",
    ),
    spec: {
      kind: "Job",
      priority: 7,
      runPolicy: { cleanPodPolicy: "CLEAN_POD_POLICY_ALL", restartScope: "RESTART_SCOPE_GANG" },
      placement: { gpuModels: ["h100"] },
    },
  },
  "any kind has our own form": { text: ours("  priority: 1", "PyTorchJob"), spec: { kind: "PyTorchJob", priority: 1 } },
};

for (const [name, { text, warnings = [], spec }] of Object.entries(accepted)) {
  test(name, () => {
    const judged = judge(text);
    assert.deepEqual(judged.refused, []);
    assert.deepEqual(judged.warnings, warnings);
    const read = objectAt(judged.jobs[0], "spec");
    assert.deepEqual(Object.fromEntries(Object.keys(spec).map((member) => [member, read[member]])), spec);
  });
}

test("the documents of a file are read in order, and empty ones are skipped", () => {
  const { jobs } = judge(`${pytorchManifest("a")}---\n# nothing\n---\n${pytorchManifest("b")}`);
  assert.deepEqual(
    jobs.map((job) => objectAt(job, "metadata")["name"]),
    ["a", "b"],
  );
});

test("a manifest's namespace overrides the default, and must equal --namespace", () => {
  const text = pytorchManifest("a").replace("{name: a}", "{name: a, namespace: nlp}");
  assert.equal(objectAt(judge(text).jobs[0], "metadata")["namespace"], "nlp");
  assert.deepEqual(judge(text, { name: "nlp", isExplicit: true }).refused, []);
  assert.match(
    judge(text, { name: "other", isExplicit: true }).refused[0] ?? "",
    /metadata.namespace: is nlp, but --namespace is other/,
  );
});

test("any JSON value gets a result or an error", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (spec, metadata) => {
      for (const kind of ["PyTorchJob", "TFJob", "Job"]) {
        const apiVersion = kind === "Job" ? "gangway.dev/v1" : "kubeflow.org/v1";
        const outcome = readManifest({ apiVersion, kind, metadata, spec } as Json, {
          kinds: OWN_KINDS,
          namespace: { name: "default", isExplicit: false },
        });
        assert.ok(outcome.kind === "job" || outcome.errors.length > 0);
      }
    }),
  );
});

test("every example can be sent and says how it should end", async () => {
  const read = await readManifests([EXAMPLES], {
    io: processIo(process, () => {}),
    kinds: OWN_KINDS,
    namespace: { name: "default", isExplicit: true },
    findRuntime: findShippedRuntime,
  });
  assert.deepEqual({ errors: read.errors, warnings: read.warnings }, { errors: [], warnings: [] });
  const files = readdirSync(EXAMPLES).filter((name) => name.endsWith(".yaml"));
  assert.equal(read.ready.length, files.length);
  for (const { job } of read.ready)
    assert.match(job.metadata?.annotations["gangway.dev/expect"] ?? "", /^(Succeeded|Failed)$/);
  const readme = readFileSync(join(EXAMPLES, "README.md"), "utf8");
  assert.deepEqual(
    files.filter((name) => !readme.includes(name)),
    [],
  );
});

const endless = {
  "a list that holds itself": "a: &x [*x]",
  "a mapping that holds itself below": "a: &x {b: {c: [1, *x]}}",
  "two that hold each other": "a: &x {b: &y {c: *x, d: *y}}",
  "a whole document": "&x {a: *x}",
};
for (const [name, text] of Object.entries(endless)) {
  test(`an alias to its own anchor is an error: ${name}`, () => {
    const { documents, errors } = parseDocuments({ name: "a.yaml", text });
    assert.deepEqual(documents, []);
    assert.match(errors.join(), /^a\.yaml, document 1: line 1 has an alias that is part of its own anchor$/);
  });
}

test("an alias to an anchor that has ended is expanded", () => {
  const { documents, errors } = parseDocuments({ name: "a.yaml", text: "a: &x [1]\nb: [*x, *x]" });
  assert.deepEqual([documents.map(({ value }) => value), errors], [[{ a: [1], b: [[1], [1]] }], []]);
});
