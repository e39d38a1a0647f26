import assert from "node:assert/strict";
import { test } from "node:test";
import { readAnnotations, type SecretKey } from "../../../src/core/pods/pod-annotations.ts";

const read = (annotations: Readonly<Record<string, string>>) => readAnnotations({ metadata: { annotations } });
const pathsOf = (key: string, value: string) => read({ [key]: value }).errors.map(({ path }) => path);

const SECRETS = "gangway.dev/secrets";
const variable = (secret: string, key: string): SecretKey => ({ secret, key, asFile: false });

const secrets: Record<string, { readonly text: string; readonly keys: readonly SecretKey[] }> = {
  "no text": { text: "", keys: [] },
  "spaces and commas alone": { text: " , ,", keys: [] },
  "a key for a variable": { text: "db/password", keys: [variable("db", "password")] },
  "a key that is named as a variable": { text: "db/password:env", keys: [variable("db", "password")] },
  "a key for a file": { text: "db/tls.crt:file", keys: [{ secret: "db", key: "tls.crt", asFile: true }] },
  "several keys with spaces": { text: " db/a ,db.eu/_b ", keys: [variable("db", "a"), variable("db.eu", "_b")] },
  "a key that begins with one dot": { text: "db/.env", keys: [variable("db", ".env")] },
};
for (const [name, { text, keys }] of Object.entries(secrets)) {
  test(`secrets of ${name} are read`, () => {
    const { secrets: found, errors } = read({ [SECRETS]: text });
    assert.deepEqual([found, errors], [keys, []]);
  });
}

const wrong = ["db", "db/", "/key", "Db/key", "-db/key", "db-/key", "db/a b", "db/key:path", "db/.", "db/..", "db/..a"];
for (const text of wrong) {
  test(`the secret ${text} is refused, and the others are read`, () => {
    const { secrets: found, errors } = read({ [SECRETS]: `a/b,${text}` });
    assert.deepEqual(found, [variable("a", "b")]);
    assert.deepEqual(
      errors.map(({ path }) => path),
      ['metadata.annotations["gangway.dev/secrets"]'],
    );
    assert.ok(errors[0]?.message.includes(`"${text}"`), "the message names the wrong secret");
  });
}

test("a message shows at most the first 80 characters of a secret", () => {
  const [error] = read({ [SECRETS]: "x".repeat(200) }).errors;
  assert.match(error?.message ?? "", /"x{80}"/);
});

const accelerators: Record<string, { readonly size: string; readonly read: object }> = {
  "no partition": { size: "", read: { partitionSize: "", unpartitioned: false } },
  "a partition": { size: " 1g.5gb ", read: { partitionSize: "1g.5gb", unpartitioned: false } },
  "whole GPUs": { size: "unpartitioned", read: { partitionSize: "", unpartitioned: true } },
};
for (const [name, { size, read: expected }] of Object.entries(accelerators)) {
  test(`an accelerator with ${name} is read`, () => {
    const { accelerator, errors } = read({
      "gangway.dev/gpu-device": "nvidia-a100",
      "gangway.dev/gpu-partition-size": size,
    });
    assert.deepEqual([accelerator, errors], [{ device: "nvidia-a100", ...expected }, []]);
  });
}

test("GPUs are named by values of labels, of at most 63 characters", () => {
  for (const key of ["gangway.dev/gpu-device", "gangway.dev/gpu-partition-size"]) {
    for (const value of ["a", "A100_80.GB-x", "a".repeat(63)]) assert.deepEqual(pathsOf(key, value), []);
    for (const value of ["-a", "a.", "a b", "a".repeat(64)]) {
      assert.deepEqual(pathsOf(key, value), [`metadata.annotations["${key}"]`]);
    }
  }
});

test("places and the pod template are read without the spaces around them, and are empty if omitted", () => {
  const { podTemplate, inputs, outputs } = read({
    "gangway.dev/pod-template": " big ",
    "gangway.dev/inputs": " s3://in ",
    "gangway.dev/outputs": "s3://out\n",
  });
  assert.deepEqual([podTemplate, inputs, outputs], ["big", "s3://in", "s3://out"]);
  const { errors, pilot, ...nothing } = readAnnotations({});
  assert.deepEqual(pilot, { inputPath: "", outputPath: "", format: "", inputs: [], outputs: [] });
  assert.deepEqual(errors, []);
  assert.deepEqual(nothing, {
    accelerator: { device: "", partitionSize: "", unpartitioned: false },
    podTemplate: "",
    secrets: [],
    inputs: "",
    outputs: "",
  });
});

const pilots: Record<string, { readonly annotations: Readonly<Record<string, string>>; readonly message: string }> = {
  "a folder that does not begin at the root": {
    annotations: { "gangway.dev/input-path": "data" },
    message: 'is "data": must be a folder such as /data/in, of at most 4096 characters',
  },
  "one folder for inputs and outputs": {
    annotations: { "gangway.dev/input-path": "/data", "gangway.dev/output-path": "/data" },
    message: "must not be the folder of the inputs",
  },
  "a format that Flyte does not have": {
    annotations: { "gangway.dev/input-format": "XML" },
    message: 'is "XML": must be one of JSON, YAML, PROTO',
  },
  "a word that is neither true nor false": {
    annotations: { "gangway.dev/interruptible": "yes" },
    message: 'is "yes": must be true or false',
  },
  "an interface without a type": {
    annotations: { "gangway.dev/input-interface": "model=blob, epochs" },
    message:
      'has "epochs": must be NAME=TYPE; types are none, integer, float, string, boolean, datetime, duration, ' +
      "binary, error, struct, blob, multipart, and TYPE[] for a list",
  },
  "an interface with a name twice": {
    annotations: { "gangway.dev/output-interface": "a=float,a=string" },
    message: "has a twice",
  },
};
for (const [name, { annotations, message }] of Object.entries(pilots)) {
  test(`refused: ${name}`, () => {
    assert.deepEqual(
      read(annotations).errors.map((one) => one.message),
      [message],
    );
  });
}

test("a template says where its inputs and outputs are, and what Flyte's co-pilot must know of them", () => {
  const { pilot, errors } = read({
    "gangway.dev/input-path": "/data/in",
    "gangway.dev/input-format": "YAML",
    "gangway.dev/input-interface": "model=blob, tags=string[]",
    "gangway.dev/output-interface": "loss=float",
  });
  assert.deepEqual(errors, []);
  assert.deepEqual(pilot, {
    inputPath: "/data/in",
    outputPath: "",
    format: "YAML",
    inputs: [
      { name: "model", type: "blob" },
      { name: "tags", type: "string[]" },
    ],
    outputs: [{ name: "loss", type: "float" }],
  });
});
