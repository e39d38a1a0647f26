import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fixedLengthName } from "../../src/core/job/fixed-length-name.ts";
import { logLinks } from "../../src/core/kinds/log-links.ts";
import { formatQuantity, parseQuantity } from "../../src/core/pods/quantity.ts";
import { podVariables, render } from "../../src/core/pods/variables.ts";
import { reconcile } from "../../src/core/reconcile/reconcile.ts";
import { arrayAt, type JsonObject, objectAt } from "../../src/runtime/json.ts";
import { admit, CONFIG, jobOf, START_MS, template } from "./world.ts";

const variables = podVariables({
  job: { uid: "0190-a", name: "train", namespace: "team", project: "vision" },
  admission: 2,
  attempt: 3,
  role: "Worker",
  index: 1,
  podName: "train-worker-1",
});

const rendered: Readonly<Record<string, readonly [text: string, expected: string]>> = {
  "names in any case and with any room": ["{{ .JobName }}/{{.namespace}}/{{   $ATTEMPT }}", "train/team/3"],
  "what is no name of ours stays": ["{{ .Names }} {{ json . }} {{JobName}}", "{{ .Names }} {{ json . }} {{JobName}}"],
  "annotations of the job, empty where it has none": ["[{{ .Annotations.a/b }}][{{ .annotations.c }}]", "[x][]"],
  "values are not looked into": ["{{ .Annotations.trap }}$&", "$1{{ .JobName }}$&"],
  "a name for every retry that any program takes": ["{{ .PerRetryUniqueKey }}", "0190_a_2_Worker_1_3"],
};
for (const [name, [text, expected]] of Object.entries(rendered)) {
  test(`placeholders: ${name}`, () => {
    assert.equal(render(text, variables, { "a/b": "x", trap: "$1{{ .JobName }}" }), expected);
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

test("every container of a pod is told who it is, and what it sets itself stays", () => {
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

test("log links name the containers of the admitted pods, on the cluster where they are", () => {
  const job = jobOf({ kind: "PyTorchJob", replicaSpecs: { Master: { template: template("pytorch") } } }, { name: "j" });
  const templates = [
    { name: "store", uri: "https://logs/{{ .cluster }}/{{ .namespace }}/{{ .podName }}/{{ .containerName }}" },
  ];
  assert.deepEqual(logLinks(job, templates), []);
  const admitted = admit(job, { cluster: "east", nowMs: START_MS, number: 1 });
  assert.deepEqual(logLinks(admitted, templates), [
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

test("a name is within its lengths or refused, the same for the same parts, and another for others", () => {
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
