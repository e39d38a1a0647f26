import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fixedLengthName } from "../../../src/core/job/fixed-length-name.ts";
import { logLinks } from "../../../src/core/kinds/log-links.ts";
import { checkInputs } from "../../../src/core/pods/inputs.ts";
import { formatQuantity, parseQuantity } from "../../../src/core/pods/quantity.ts";
import { WHOLE_TEXTS } from "../../../src/core/pods/text-maker.ts";
import { checkPlaceholders } from "../../../src/core/pods/validate-placeholders.ts";
import { checkpointKeys, placesOf, podVariables, render } from "../../../src/core/pods/variables.ts";
import { reconcile } from "../../../src/core/reconcile/reconcile.ts";
import { arrayAt, type JsonObject, objectAt } from "../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../support/kinds.ts";
import { admit, CONFIG, jobOf, START_MS, template } from "../reconcile/world.ts";

const variables = podVariables({
  job: { uid: "0190-a", name: "train", namespace: "team", project: "vision" },
  admission: 2,
  attempt: 3,
  role: "Worker",
  index: 1,
  podName: "train-worker-1",
});

const inputs = {
  name: 'a "b" {{ .JobName }}',
  lr: 0.001,
  on: false,
  list: [1, "a", ["x", "y"], { k: null }],
  object: { k: ["v"] },
};

const rendered: Readonly<Record<string, readonly [text: string, expected: string]>> = {
  "names in any case and with any spaces": ["{{ .JobName }}/{{.namespace}}/{{   $ATTEMPT }}", "train/team/3"],
  "unknown names stay": ["{{ .Names }} {{ json . }} {{JobName}}", "{{ .Names }} {{ json . }} {{JobName}}"],
  "annotations of the job, else empty text": ["[{{ .Annotations.a/b }}][{{ .annotations.c }}]", "[x][]"],
  "placeholders in values stay": ["{{ .Annotations.trap }}$&", "$1{{ .JobName }}$&"],
  "inputs: text, numbers, booleans, lists, and objects as JSON": [
    "{{ .Inputs.name }} {{.inputs.lr}} {{ $INPUTS.on }} {{ .Inputs.list }} {{ .Inputs.object }}",
    'a "b" {{ .JobName }} 0.001 false [1,a,[x,y],{"k":null}] {"k":["v"]}',
  ],
  "inputs that do not exist, or are named in another case": [
    "{{ .Inputs.none }}{{ .Inputs.LR }}",
    "{{ .Inputs.none }}{{ .Inputs.LR }}",
  ],
  "inherited members of objects are not inputs": ["{{ .Inputs.toString }}", "{{ .Inputs.toString }}"],
  "a name for each retry that every program accepts": ["{{ .PerRetryUniqueKey }}", "0190_a_2_Worker_1_3"],
};
for (const [name, [text, expected]] of Object.entries(rendered)) {
  test(`placeholders: ${name}`, () => {
    const annotations = { "a/b": "x", trap: "$1{{ .JobName }}" };
    assert.equal(render(text, { variables, annotations, inputs }), expected);
  });
}

function firstPod(container: JsonObject): JsonObject {
  const spec = {
    containers: [{ name: "main", image: "i", ...container }],
    initContainers: [{ name: "init", image: "i" }],
  };
  const job = jobOf({ kind: "Job", replicaSpecs: { Worker: { template: { spec } } } }, { annotations: { run: "7" } });
  const { actions } = reconcile(
    admit(job, { cluster: "c", nowMs: START_MS, number: 1 }),
    [{ cluster: "c", pods: [], services: [], configMaps: [] }],
    START_MS,
    CONFIG,
  );
  const [pod = {}] = actions.flatMap((action) => (action.kind === "createPod" ? [action.manifest] : []));
  return objectAt(pod, "spec");
}

test("the template's annotations name the places; each attempt has its own place for raw outputs", () => {
  const at = (annotations: JsonObject) =>
    placesOf({ metadata: { annotations } }, { variables, inputs: { set: 7 } }, WHOLE_TEXTS);
  assert.deepEqual(at({}), {});
  assert.deepEqual(at({ "gangway.dev/inputs": " s3://in/{{ .Inputs.set }}/{{ .ReplicaIndex }} " }), {
    Input: "s3://in/7/1",
    InputPrefix: "s3://in/7/1",
  });
  assert.deepEqual(at({ "gangway.dev/outputs": "s3://out/{{ .JobName }}/" }), {
    OutputPrefix: "s3://out/train/",
    RawOutputDataPrefix: "s3://out/train/0190_a_2_Worker_1_3",
  });
});

const findings: Record<
  string,
  { text: string; inputs?: JsonObject; annotations?: JsonObject; errors?: string[]; warnings?: string[] }
> = {
  "inputs and annotations of the job": {
    text: "{{ .Inputs.lr }} {{ .Annotations.any }} {{ .jobname }}",
    inputs: { lr: 1 },
  },
  "an input that the job does not have": {
    text: "--lr={{ .Inputs.rate }}",
    inputs: { lr: 1, epochs: 2 },
    errors: ["spec.containers[0].args[0] uses {{ .Inputs.rate }}, but the job's inputs are epochs, lr"],
  },
  "an input of a job without inputs": {
    text: "{{ $inputs.x }}",
    errors: ["spec.containers[0].args[0] uses {{ .Inputs.x }}, but the job has no inputs"],
  },
  "a place that the template does not name": {
    text: "{{ .OutputPrefix }}",
    annotations: { "gangway.dev/inputs": "s3://in" },
    errors: [
      "spec.containers[0].args[0] " +
        "uses {{ .OutputPrefix }}, so the template must have the annotation gangway.dev/outputs",
    ],
  },
  "a place that the template names": {
    text: "{{ .Input }}/a {{ .InputPrefix }}",
    annotations: { "gangway.dev/inputs": "s3://in" },
  },
  "a place with an input that the job does not have": {
    text: "x",
    annotations: { "gangway.dev/inputs": "s3://in/{{ .Inputs.day }}" },
    errors: ['metadata.annotations["gangway.dev/inputs"] uses {{ .Inputs.day }}, but the job has no inputs'],
  },
  "a misspelt name": {
    text: "{{ .JobNmae }}",
    warnings: [
      "spec.containers[0].args[0] {{ .JobNmae }} is not a placeholder of Gangway and stays unchanged: " +
        "did you mean JobName?",
    ],
  },
  "templates of other programs": { text: "{{ json . }} {{JobName}} {{ range .Items }}" },
};
for (const [name, { text, inputs: given = {}, annotations = {}, errors = [], warnings = [] }] of Object.entries(
  findings,
)) {
  test(`check of placeholders: ${name}`, () => {
    const spec = { containers: [{ name: "main", image: "i", args: [text] }] };
    const found = checkPlaceholders({ metadata: { annotations }, spec }, given);
    const lines = (list: readonly { readonly path: string; readonly message: string }[]) =>
      list.map(({ path, message }) => `${path} ${message}`);
    assert.deepEqual([lines(found.errors), lines(found.warnings)], [errors, warnings]);
  });
}

test("the template's path and checkpoints are refused without a place, and filled in with one", () => {
  const placeholders = ["{{ .taskTemplatePath }}", "{{ .checkpointOutputPrefix }}", "{{ .prevCheckpointPrefix }}"];
  const spec = { initContainers: [{ name: "i", image: "i", command: placeholders }] };
  assert.deepEqual(
    checkPlaceholders({ spec }, {}).errors.map(({ path, message }) => `${path} ${message}`),
    [
      "spec.initContainers[0].command[0] uses {{ .TaskTemplatePath }}, " +
        "so the template must have the annotation gangway.dev/task-template",
      "spec.initContainers[0].command[1] uses {{ .CheckpointOutputPrefix }}, " +
        "so the template must have the annotation gangway.dev/checkpoints",
      "spec.initContainers[0].command[2] uses {{ .PrevCheckpointPrefix }}, " +
        "so the template must have the annotation gangway.dev/checkpoints",
    ],
  );
  const annotations = {
    "gangway.dev/task-template": "s3://t/{{ .JobName }}.pb",
    "gangway.dev/checkpoints": "s3://c/{{ .Namespace }}/",
  };
  assert.deepEqual(checkPlaceholders({ metadata: { annotations }, spec }, {}), { errors: [], warnings: [] });
  const placesAt = (given: Readonly<Record<string, string>>) =>
    placesOf(
      { metadata: { annotations } },
      { variables: given, checkpoints: checkpointKeys(given, WHOLE_TEXTS) },
      WHOLE_TEXTS,
    );
  assert.deepEqual(placesAt(variables), {
    TaskTemplatePath: "s3://t/train.pb",
    CheckpointOutputPrefix: "s3://c/team/0190-a_Worker_1_3",
    PrevCheckpointPrefix: "s3://c/team/0190-a_Worker_1_2",
  });
  assert.equal(placesAt({ ...variables, Attempt: "1" })["PrevCheckpointPrefix"], "", "nothing was before the first");
});

test("an attempt finds the checkpoints of the one before it, and no two attempts share a place", () => {
  const who = fc.record({ uid: fc.uuid(), role: fc.constantFrom("Master", "Worker"), index: fc.nat(9) });
  fc.assert(
    fc.property(who, fc.integer({ min: 1, max: 30 }), ({ uid, role, index }, attempts) => {
      const keys = Array.from({ length: attempts }, (_, at) =>
        checkpointKeys(
          { JobUid: uid, ReplicaType: role, ReplicaIndex: String(index), Attempt: String(at + 1) },
          WHOLE_TEXTS,
        ),
      );
      assert.deepEqual(
        keys.map(({ previous }) => previous),
        [null, ...keys.slice(0, -1).map(({ own }) => own)],
      );
      assert.equal(new Set(keys.map(({ own }) => own)).size, attempts);
    }),
  );
});

test("every placeholder that passes the check is filled in", () => {
  const piece = fc.constantFrom(
    "{{ .Inputs.a }}",
    "{{.inputs.b}}",
    "{{ .Inputs.c }}",
    "{{ .OutputPrefix }}",
    "{{ .JobName }}",
    "x",
  );
  const some = fc.dictionary(
    fc.constantFrom("a", "b", "c"),
    fc.oneof(fc.integer(), fc.boolean(), fc.constantFrom("v", "w")),
  );
  fc.assert(
    fc.property(fc.array(piece), some, fc.boolean(), (pieces, given, hasOutputs) => {
      const annotations: JsonObject = hasOutputs ? { "gangway.dev/outputs": "s3://out" } : {};
      const text = pieces.join("");
      const own = { metadata: { annotations }, spec: { containers: [{ name: "main", image: "i", args: [text] }] } };
      const known = { variables, inputs: given };
      const shown = render(text, { ...known, variables: { ...variables, ...placesOf(own, known, WHOLE_TEXTS) } });
      assert.equal(checkPlaceholders(own, given).errors.length > 0, shown.includes("{{"));
    }),
  );
});

const wrongInputs: Record<string, readonly [JsonObject, string]> = {
  null: [
    { a: null },
    "a must be text, a number, true, false, a list or an object; null is not allowed, nor null in a list",
  ],
  "null in a list": [
    { a: [1, [null]] },
    "a must be text, a number, true, false, a list or an object; null is not allowed, nor null in a list",
  ],
  "a name with a space": [
    { "a b": 1 },
    "a b must have a name of at most 63 characters: a letter or _, then letters, digits, _ and -",
  ],
  "too much": [{ a: "x".repeat(70_000) }, " has 70008 characters of JSON: at most 65536 are allowed"],
  "too many": [
    Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`a${at}`, 1])),
    " has 101 inputs: at most 100 are allowed",
  ],
};
for (const [name, [given, expected]] of Object.entries(wrongInputs)) {
  test(`inputs are refused: ${name}`, () => {
    assert.deepEqual(
      checkInputs(given).map(({ path, message }) => `${path} ${message}`),
      [expected],
    );
  });
}

test("every container of a pod gets the variables of its pod, and keeps its own", () => {
  const spec = firstPod({
    command: ["run", "--run={{ .Annotations.run }}"],
    args: ["{{ .ReplicaType }}-{{ .ReplicaIndex }}"],
    env: [{ name: "GANGWAY_PROJECT", value: "mine" }],
  });
  const [main] = arrayAt(spec, "containers");
  const [init] = arrayAt(spec, "initContainers");
  assert.deepEqual(arrayAt(main, "command"), ["run", "--run=7"]);
  assert.deepEqual(arrayAt(main, "args"), ["Worker-0"]);
  const env = (container: unknown) =>
    Object.fromEntries(
      arrayAt(container, "env").map((one) => [objectAt({ one }, "one")["name"], objectAt({ one }, "one")["value"]]),
    );
  const {
    GANGWAY_PROJECT: project,
    GANGWAY_REPLICA_TYPE: role,
    GANGWAY_ATTEMPT: attempt,
    GANGWAY_POD_NAME: pod,
  } = env(main);
  assert.deepEqual([project, role, attempt, typeof pod], ["mine", "Worker", "1", "string"]);
  assert.equal(env(init)["GANGWAY_REPLICA_INDEX"], "0");
});

test("log links name the containers of the admitted pods and their cluster", () => {
  const job = jobOf({ kind: "PyTorchJob", replicaSpecs: { Master: { template: template("pytorch") } } }, { name: "j" });
  const kind = OWN_KINDS.kindOf("PyTorchJob");
  const templates = [
    { name: "store", uri: "https://logs/{{ .cluster }}/{{ .namespace }}/{{ .podName }}/{{ .containerName }}" },
  ];
  assert.deepEqual(logLinks(job, kind, templates), []);
  const admitted = admit(job, { cluster: "east", nowMs: START_MS, number: 1 });
  assert.deepEqual(logLinks(admitted, kind, templates), [
    {
      name: "store",
      uri: `https://logs/east/${job.namespace}/j-master-0/pytorch`,
      replica: "Master/0",
      container: "pytorch",
    },
  ]);
});

const quantities: Readonly<Record<string, string>> = {
  "0.5": "500m",
  "1000m": "1",
  "1.5Gi": "1536Mi",
  "1023Ki": "1023Ki",
  "1Ki": "1Ki",
  "0.5Ki": "512",
  "1e3": "1e3",
  "100000": "100k",
  "0.0000000001": "1n",
  "-0.0000000001": "-1n",
  "12E": "12E",
  "3000E": "3000E",
  "8Ei": "9223372036854775807",
};
for (const [text, expected] of Object.entries(quantities)) {
  test(`the canonical form of ${text} is ${expected}`, () => {
    const quantity = parseQuantity(text);
    assert.ok(quantity !== null);
    assert.equal(formatQuantity(quantity), expected);
  });
}

test("a name is within its lengths or refused, and differs exactly if its joined parts differ", () => {
  const part = fc.string({ unit: fc.constantFrom("a", "b", "0"), maxLength: 12 });
  const parts = fc.array(part, { minLength: 1, maxLength: 5 });
  const lengths = fc.record({ min: fc.nat(10), max: fc.integer({ min: 10, max: 40 }) });
  fc.assert(
    fc.property(parts, parts, lengths, fc.constantFrom(64, 128), (one, other, within, bits) => {
      const [a, b] = [fixedLengthName(one, within, bits), fixedLengthName(other, within, bits)];
      assert.deepEqual(fixedLengthName([...one], within, bits), a);
      const shown = (list: readonly string[]) =>
        list
          .filter((text) => text !== "")
          .join("-")
          .padEnd(within.min, "0");
      if (a.kind === "refused") return assert.ok(shown(one).length > within.max);
      assert.ok(a.name.length >= within.min && a.name.length <= within.max);
      if (b.kind === "name") assert.equal(a.name === b.name, shown(one) === shown(other));
    }),
  );
});
