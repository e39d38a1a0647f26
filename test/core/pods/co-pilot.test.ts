import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { CoPilotConfig } from "../../../src/core/pods/pod-config.ts";
import { PLAIN_POD_CONFIG } from "../../../src/core/pods/pod-config.ts";
import { shapeTemplate } from "../../../src/core/pods/shape-template.ts";
import { arrayAt, type JsonObject, objectAt, stringAt } from "../../../src/runtime/json.ts";

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

/** Waits until a process catches SIGTERM, as Linux reports it. */
async function listening(pid: number): Promise<void> {
  const SIGTERM_BIT = 1n << 14n;
  for (;;) {
    const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "0";
    if ((BigInt(`0x${caught}`) & SIGTERM_BIT) !== 0n) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
