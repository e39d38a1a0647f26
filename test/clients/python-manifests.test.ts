/** The client in Python makes the same jobs of manifests as the command line. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { toJson } from "@bufbuild/protobuf";
import { listKinds } from "../../src/api/job/list-kinds.ts";
import { JobSchema } from "../../src/gen/gangway/v1/job_pb.ts";
import { readManifest } from "../../src/manifest/read-manifest.ts";
import { arrayAt, isJsonObject, type Json, stringAt } from "../../src/runtime/json.ts";
import { parseDocuments } from "../cli/parse-documents.ts";
import { root } from "../docs/pages.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { PYTHON, runPython } from "./python.ts";

const FOLDERS = ["examples", "examples/kinds", "examples/walk", "test/cli/public-manifests"];
/** Versions of manifests that the client sends as they are. */
const SENT_VERSIONS = ["batch/v1", "jobset.x-k8s.io/v1alpha2", "trainer.kubeflow.org/v1alpha1"];

/** A PyTorchJob with this metadata and these members of its spec, in the flow style of YAML. */
function pytorch({ metadata = "", spec = "" }: { metadata?: string; spec?: string }): string {
  return `apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: a${metadata}}
spec:
  pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: i}]}}}}
${spec}`;
}

/** Every setting as an annotation. */
const SETTINGS = `
  gangway.dev/queue: nlp, gangway.dev/priority: "-3", gangway.dev/clusters: "east, west",
  gangway.dev/cluster-selector: "region=eu,tier=prod", gangway.dev/gpu-model: h100, gangway.dev/min-available: "1",
  gangway.dev/required-topology: rack,
  gangway.dev/schedule-timeout: 10m, gangway.dev/partial: RESTART, gangway.dev/max-preemptions: "0",
  gangway.dev/max-runtime: 1h30m, gangway.dev/backfill: "true", gangway.dev/interruptible: "false",
  gangway.dev/interruptible-failure-threshold: "2", gangway.dev/restart-scope: gang, gangway.dev/backoff-limit: "4",
  gangway.dev/system-backoff-limit: "5", gangway.dev/start-backoff-limit: "6", gangway.dev/active-deadline: 2h,
  gangway.dev/ttl-after-finished: "60", gangway.dev/clean-pod-policy: All,
  gangway.dev/clean-pod-policy-at-limit: CLEAN_POD_POLICY_NONE, gangway.dev/cache-key: k, example.com/kept: x`;

const read: Readonly<Record<string, string>> = {
  "every setting": pytorch({ metadata: `, annotations: {${SETTINGS}}` }),
  "a class that replaces a priority": `apiVersion: gangway.dev/v1
kind: Job
metadata: {generateName: a-, namespace: team, annotations: {gangway.dev/priority-class: high}}
spec:
  priority: 5
  inputs: {x: [1, 2.5, null]}
  replicaSpecs: {Worker: {replicas: 2, restartPolicy: on_failure, template: {spec: {containers: [{name: a}]}}}}
  runPolicy:
    activeDeadlineSeconds: "3000000000"
    maxRuntime: 500ms
    restartScope: RESTART_SCOPE_GANG
    schedulingPolicy: {minResources: {cpu: 1.5, memory: 4Gi}, priorityClass: batch, partial: KEEP}
  placement: {clusters: [east], clusterSelector: {a: b}, gpuModels: [h100]}`,
  "wishes for topology": `apiVersion: gangway.dev/v1
kind: Job
metadata: {name: a, annotations: {gangway.dev/preferred-topology: block}}
spec:
  replicaSpecs:
    Worker:
      replicas: 4
      template: {spec: {containers: [{name: a}]}}
      topology: {preferred: rack, slices: [{level: rack, size: 2}, {level: host, size: 1}]}
    Other: {topology: {}, template: {spec: {containers: [{name: a}]}}}
  placement: {topology: {required: rack}}`,
  "another kind in a Job": `apiVersion: gangway.dev/v1
kind: Job
metadata: {name: a}
spec:
  kind: TFJob
  kindSpec: {successPolicy: ""}
  replicaSpecs: {Chief: {template: {spec: {containers: [{name: tensorflow}]}}}}`,
  "members that older manifests have in the spec": pytorch({ spec: "  cleanPodPolicy: Running\n  backoffLimit: 3" }),
  "members of Kueue": pytorch({
    metadata: `, labels: {kueue.x-k8s.io/queue-name: q, kueue.x-k8s.io/max-exec-time-seconds: "90"},
      annotations: {kueue.x-k8s.io/job-min-parallelism: "1"}`,
    spec: "  runPolicy: {suspend: true, managedBy: kueue.x-k8s.io/multikueue}",
  }),
  "a run policy without members": pytorch({ spec: "  runPolicy: {}\n  nprocPerNode: auto" }),
};

const refused: Readonly<Record<string, string>> = {
  "another manager": pytorch({ spec: "  runPolicy: {managedBy: someone}" }),
  "two values of one member": pytorch({ spec: "  backoffLimit: 3\n  runPolicy: {backoffLimit: 4}" }),
  "a setting without a value": pytorch({ metadata: ', annotations: {gangway.dev/queue: ""}' }),
  "a setting out of its range": pytorch({ metadata: ', annotations: {gangway.dev/min-available: "0"}' }),
  "another kind inside": "apiVersion: gangway.dev/v1\nkind: TFJob\nmetadata: {name: a}\nspec: {kind: MPIJob}",
  "a kind that is not served": "apiVersion: kubeflow.org/v1\nkind: NoJob\nmetadata: {name: a}\nspec: {}",
  "another API": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {}",
  "no name": "apiVersion: gangway.dev/v1\nkind: Job\nmetadata: {}\nspec: {replicaSpecs: {}}",
  "no replicas": "apiVersion: gangway.dev/v1\nkind: Job\nmetadata: {name: a}\nspec: {}",
};

/**
 * What becomes of the documents of a text: they are sent, or the command line's outcome, which is the job as JSON, or
 * that it is refused.
 */
function expected(text: string): Json {
  const { documents, errors } = parseDocuments({ name: "job.yaml", text });
  assert.deepEqual(errors, []);
  return documents
    .flatMap(({ value }) => itemsOf(value))
    .map((value) => {
      if (isJsonObject(value) && SENT_VERSIONS.includes(stringAt(value, "apiVersion") ?? "")) return { sent: value };
      const outcome = readManifest(value, { kinds: OWN_KINDS, namespace: { name: "default", isExplicit: false } });
      return outcome.kind === "invalid" ? { problems: true } : { job: toJson(JobSchema, outcome.job) as Json };
    });
}

/** The objects of a `List`, as the command line takes them. */
function itemsOf(value: Json): readonly Json[] {
  return isJsonObject(value) && value["kind"] === "List" ? arrayAt(value, "items") : [value];
}

/** What the client makes of the documents of each text. `serviceReads` false: the service is older. */
function byPython(
  texts: readonly string[],
  { serviceReads = true } = {},
): readonly { job?: Json; sent?: Json; problems?: Json }[][] {
  const kinds = listKinds(OWN_KINDS).kinds.map((kind) => ({
    name: kind.name,
    api_version: kind.apiVersion,
    replica_specs_field: kind.replicaSpecsField,
    without_pods: kind.withoutPods,
    is_default: kind.isDefault,
    has_own_form: serviceReads && kind.hasOwnForm,
  }));
  return JSON.parse(runPython(["clients/python/tests/manifest_jobs.py"], { input: JSON.stringify({ kinds, texts }) }));
}

suite("manifests in Python", { skip: PYTHON === null && "needs Python 3 with grpcio and PyYAML" }, () => {
  test("each makes the job that the command line makes", () => {
    const files = FOLDERS.flatMap((folder) => {
      const names = readdirSync(join(root, folder)).filter((name) => /\.(yaml|json)$/.test(name));
      return names.map((name) => [name, readFileSync(join(root, folder, name), "utf8")] as const);
    });
    assert.ok(files.length > 30, "manifests were found");
    const cases = [...files, ...Object.entries(read), ...Object.entries(refused)];
    const outcomes = byPython(cases.map(([, text]) => text));
    for (const [at, [name, text]] of cases.entries()) {
      const bare = outcomes[at]?.map((one) => (one.problems === undefined ? one : { problems: true }));
      assert.deepEqual(bare, expected(text), name);
    }
    const sent = outcomes.flat().map((one) => stringAt(one.sent, "apiVersion"));
    for (const version of SENT_VERSIONS) assert.ok(sent.includes(version), `${version} is sent`);
    const jobs = Object.keys(read).map((name) => outcomes[cases.findIndex(([one]) => one === name)]);
    assert.ok(
      jobs.every((one) => one?.every(({ job }) => job !== undefined)),
      "these make jobs",
    );
  });

  test("a manifest of an older operator is sent as it is, and refused where the service reads none", () => {
    const older = readFileSync(join(root, "examples/kinds/caffe2.yaml"), "utf8");
    assert.match(older, /Caffe2Job/);
    const alpha = older.replace(/apiVersion: .*/, "apiVersion: kubeflow.org/v1alpha1");
    assert.match(JSON.stringify(byPython([alpha])), /"sent":/);
    assert.match(JSON.stringify(byPython([alpha], { serviceReads: false })), /apiVersion: must be/);
  });
});
