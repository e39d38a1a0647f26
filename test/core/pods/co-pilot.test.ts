import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { typedInterface, variableMap } from "../../../src/core/pods/flyte/task-interface.ts";
import type { CoPilotConfig } from "../../../src/core/pods/pod-config.ts";
import { PLAIN_POD_CONFIG } from "../../../src/core/pods/pod-config.ts";
import { readPodConfig } from "../../../src/core/pods/read-pod-config.ts";
import { shapeTemplate } from "../../../src/core/pods/shape-template.ts";
import { arrayAt, type JsonObject, objectAt, stringAt } from "../../../src/runtime/json.ts";

/** Where Gangway's co-pilot has outputs, unless the platform or a template says something else. */
const coPilotPath = "/var/outputs";
const directory = mkdtempSync(join(tmpdir(), "gangway-co-pilot-"));
after(() => rmSync(directory, { recursive: true, force: true }));
const place = (...names: readonly string[]) => join(directory, ...names);

/** The storage and the pod's folders are local folders. */
const coPilot: CoPilotConfig = {
  image: "copier",
  command: ["cp", "-rT", "{{ .From }}", "{{ .To }}"],
  env: [{ name: "STORAGE", value: "local" }],
  envFrom: [],
  inputPath: place("pod", "inputs"),
  outputPath: place("pod", "outputs"),
  cpu: "500m",
  memory: "128Mi",
  timeoutSeconds: 60,
};

function shapedSpec(annotations: Readonly<Record<string, string>>): JsonObject {
  const template = {
    metadata: { annotations },
    spec: {
      containers: [
        { name: "main", image: "i" },
        { name: "side", image: "i" },
      ],
    },
  };
  const shaping = { namespace: "n", interruptible: false, primaryContainer: "main" };
  const outcome = shapeTemplate(template, { ...shaping, config: { ...PLAIN_POD_CONFIG, coPilot } });
  assert.ok(outcome.kind === "shaped", JSON.stringify(outcome));
  return objectAt(outcome.template, "spec");
}

const commandOf = (spec: JsonObject, name: string) => {
  const found = arrayAt(spec, "initContainers").find((one) => stringAt(one, "name") === name);
  return arrayAt(found, "command").map(String);
};

test("the uploader is a sidecar before the downloader, and only the primary container mounts the folders", () => {
  const spec = shapedSpec({ "gangway.dev/inputs": "in", "gangway.dev/outputs": "out" });
  assert.deepEqual(
    arrayAt(spec, "initContainers").map((one) => [stringAt(one, "name"), stringAt(one, "restartPolicy")]),
    [
      ["gangway-uploader", "Always"],
      ["gangway-downloader", undefined],
    ],
  );
  const [main, side] = arrayAt(spec, "containers").map((one) => arrayAt(one, "volumeMounts"));
  assert.deepEqual(main, [
    { name: "gangway-outputs", mountPath: coPilot.outputPath },
    { name: "gangway-inputs", mountPath: coPilot.inputPath },
  ]);
  assert.deepEqual(side, []);
  assert.equal(spec["terminationGracePeriodSeconds"], 60);
});

test("inputs are downloaded before the program starts, and outputs are uploaded only after it has ended", async () => {
  const store = place("store");
  mkdirSync(join(store, "in"), { recursive: true });
  mkdirSync(coPilot.inputPath, { recursive: true });
  mkdirSync(coPilot.outputPath, { recursive: true });
  writeFileSync(join(store, "in", "data"), "42");
  const spec = shapedSpec({ "gangway.dev/inputs": join(store, "in"), "gangway.dev/outputs": join(store, "out") });

  const [uploads = "", ...uploadArgs] = commandOf(spec, "gangway-uploader");
  const uploader = spawn(uploads, [...uploadArgs], { stdio: "ignore" });
  const ended = once(uploader, "exit");
  const [downloads = "", ...downloadArgs] = commandOf(spec, "gangway-downloader");
  assert.equal(spawnSync(downloads, [...downloadArgs]).status, 0);
  const input = readFileSync(join(coPilot.inputPath, "data"), "utf8");
  writeFileSync(join(coPilot.outputPath, "result"), `got ${input}`);
  assert.ok(!existsSync(join(store, "out")), "nothing is taken away while the program runs");

  // The kubelet sends this signal once the pod's containers have ended. Before the trap is set, it would end the shell.
  await listening(uploader.pid ?? 0);
  uploader.kill("SIGTERM");
  assert.deepEqual(await ended, [0, null]);
  assert.equal(readFileSync(join(store, "out", "result"), "utf8"), "got 42");
});

/** The shaped spec of a template with one container, on a platform with Flyte's own co-pilot. */
function pilotedByFlyte(annotations: Readonly<Record<string, string>>, resources: JsonObject = {}) {
  const file = { "co-pilot": { image: "flytecopilot", storage: "1Gi", timeout: "2m" } };
  const outcome = readPodConfig(file, () => undefined);
  assert.ok(outcome.kind === "read");
  const template = { metadata: { annotations }, spec: { containers: [{ name: "main", image: "i", resources }] } };
  return shapeTemplate(template, {
    namespace: "n",
    interruptible: false,
    primaryContainer: "main",
    config: outcome.config,
  });
}

test("Flyte's co-pilot gets its own arguments: places, format and interfaces", () => {
  const outcome = pilotedByFlyte({
    "gangway.dev/inputs": "s3://b/in",
    "gangway.dev/outputs": "s3://b/out",
    "gangway.dev/input-path": "/data/in",
    "gangway.dev/input-format": "YAML",
    "gangway.dev/input-interface": "x=integer",
    "gangway.dev/output-interface": "loss=float",
  });
  assert.ok(outcome.kind === "shaped", JSON.stringify(outcome));
  const spec = objectAt(outcome.template, "spec");
  assert.deepEqual(commandOf(spec, "gangway-downloader").slice(2), [
    "download",
    "--from-remote",
    "s3://b/in",
    "--to-output-prefix",
    "s3://b/out",
    "--to-local-dir",
    "/data/in",
    "--format",
    "YAML",
    "--input-interface",
    variableMap([{ name: "x", type: "integer" }]),
  ]);
  const inputs = [{ name: "x", type: "integer" }];
  assert.deepEqual(commandOf(spec, "gangway-uploader").slice(2), [
    "sidecar",
    "--timeout",
    "120s",
    "--to-raw-output",
    "{{ .RawOutputDataPrefix }}",
    "--to-output-prefix",
    "s3://b/out",
    "--from-local-dir",
    coPilotPath,
    "--interface",
    typedInterface({ inputs, outputs: [{ name: "loss", type: "float" }] }),
  ]);
});

test("Flyte's co-pilot copies value by value, so a template without names and types is refused", () => {
  const outcome = pilotedByFlyte({ "gangway.dev/inputs": "s3://b/in", "gangway.dev/outputs": "s3://b/out" });
  assert.ok(outcome.kind === "refused");
  assert.deepEqual(
    outcome.errors.map(({ path, message }) => `${path} ${message}`),
    ["input", "output"].map(
      (one) =>
        `metadata.annotations["gangway.dev/${one}-interface"] is required: ` +
        `this platform's co-pilot needs the names and types of ${one}s, as model=blob`,
    ),
  );
});

test("the volumes are as large as the storage that the primary container asks for, else as the platform says", () => {
  const annotations = {
    "gangway.dev/inputs": "s3://b/in",
    "gangway.dev/input-interface": "x=integer",
  };
  const sizes: readonly (readonly [resources: JsonObject, size: string])[] = [
    [{}, "1Gi"],
    [{ requests: { storage: "3Gi" } }, "3Gi"],
    [{ requests: { storage: "3Gi" }, limits: { storage: "5Gi", cpu: "2" } }, "5Gi"],
  ];
  for (const [resources, size] of sizes) {
    const outcome = pilotedByFlyte(annotations, resources);
    assert.ok(outcome.kind === "shaped", JSON.stringify(outcome));
    const spec = objectAt(outcome.template, "spec");
    assert.deepEqual(arrayAt(spec, "volumes"), [{ name: "gangway-inputs", emptyDir: { sizeLimit: size } }]);
    const [main] = arrayAt(spec, "containers");
    assert.doesNotMatch(JSON.stringify(objectAt(main, "resources")), /storage/, "no container can have it");
  }
});

/** Waits until a process catches SIGTERM, as Linux reports it. */
async function listening(pid: number): Promise<void> {
  const SIGTERM_BIT = 1n << 14n;
  for (;;) {
    const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "0";
    if ((BigInt(`0x${caught}`) & SIGTERM_BIT) !== 0n) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
