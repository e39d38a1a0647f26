/** Every command that a message about a job prints works, in every namespace, and what was refused is taken then. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { until } from "../cluster/harness.ts";
import type { World } from "./harness.ts";
import { startLab } from "./lab-service.ts";
import { printedCommands, wordsOf } from "./printed-commands.ts";

const FLAVOR = "gpu/h100=nvidia.com/gpu:gpu=h100";
const NODES = [
  { name: "n", labels: { gpu: "h100" }, allocatable: { cpu: "64", memory: "256Gi", "nvidia.com/gpu": "8" } },
];

/** A job that runs until it is ended. */
function manifest(name: string, { namespace = "", kind = "PyTorchJob", hostPath = false, image = "busybox" } = {}) {
  const mount = { name: "v", mountPath: "/v", readOnly: true };
  const container = { name: "pytorch", image, ...(hostPath ? { volumeMounts: [mount] } : {}) };
  const volumes = hostPath ? { volumes: [{ name: "v", hostPath: { path: "/data" } }] } : {};
  const template = {
    metadata: { annotations: { "sim.gangway.dev/run": "1h" } },
    spec: { containers: [container], ...volumes },
  };
  return JSON.stringify({
    apiVersion: "kubeflow.org/v1",
    kind,
    metadata: { name, ...(namespace === "" ? {} : { namespace }) },
    spec: { pytorchReplicaSpecs: { Master: { replicas: 1, template }, Worker: { replicas: 1, template } } },
  });
}

suite("the commands that messages about jobs print", { concurrency: true }, () => {
  const files: Record<string, string> = {};
  let lab: Awaited<ReturnType<typeof startLab>>;

  before(async () => {
    lab = await startLab(NODES, files);
    await lab.ok(`cluster add lab --kubeconfig lab.kubeconfig --flavor ${FLAVOR}`);
    await lab.ok("namespace create nlp");
    await lab.ok("namespace create other");
    await lab.ok("namespace create paths");
  });
  after(() => lab.close());

  const phaseOf = async (name: string, namespace: string) =>
    (await lab.gangway(["get", name, "-n", namespace, "-o", "jsonpath={.status.phase}"])).stdout;
  const isGone = async (name: string, namespace: string) =>
    (await lab.gangway(["get", name, "-n", namespace])).stderr.includes("not found");

  /** Runs the only command that a text prints, which must succeed, and returns what it wrote. */
  async function followed(text: string, world: World = {}): Promise<string> {
    const [line = "", ...more] = printedCommands(text);
    assert.ok(line !== "" && more.length === 0, text);
    const ran = await lab.gangway(wordsOf(line), world);
    assert.equal(ran.exitCode, 0, `gangway ${line}: ${ran.stderr}`);
    return ran.stdout;
  }

  type Way = { readonly file: string; readonly flags: readonly string[]; readonly world: World; readonly in: string };
  /** The ways in which a user says the namespace of a job. The next command has the same environment, and no flags. */
  const ways: Readonly<Record<string, Way>> = {
    "that it does not name": { file: "", flags: [], world: {}, in: "default" },
    "of its manifest": { file: "nlp", flags: [], world: {}, in: "nlp" },
    "of the command line": { file: "", flags: ["-n", "nlp"], world: {}, in: "nlp" },
    "of the environment": { file: "", flags: [], world: { namespace: "nlp" }, in: "nlp" },
    "of its manifest, with another one in the environment": {
      file: "default",
      flags: [],
      world: { namespace: "nlp" },
      in: "default",
    },
    "of the command line, with another one in the environment": {
      file: "",
      flags: ["-n", "default"],
      world: { namespace: "nlp" },
      in: "default",
    },
  };
  for (const [at, [name, way]] of Object.entries(ways).entries()) {
    const { flags, world } = way;

    test(`a job that has ended in a namespace ${name} runs anew, or makes room for another one`, async () => {
      const job = `ended-${at}`;
      files[`${job}.json`] = manifest(job, { namespace: way.file });
      const submitted = await lab.gangway(["submit", `${job}.json`, ...flags], world);
      assert.equal(submitted.exitCode, 0, submitted.stderr);
      await lab.ok(`cancel ${job} -n ${way.in}`);
      await until(async () => (await phaseOf(job, way.in)) === "JOB_PHASE_CANCELLED", "it has ended");
      const again = await lab.gangway(["submit", `${job}.json`, ...flags], world);
      assert.match(await followed(again.stderr, world), /^pytorchjob\/ended-\d-\w+ created\n$/);

      files[`${job}.json`] = manifest(job, { namespace: way.file, image: "alpine" });
      const differs = await lab.gangway(["submit", `${job}.json`, ...flags], world);
      assert.equal(differs.exitCode, 3, differs.stderr);
      assert.equal(await followed(differs.stderr, world), `pytorchjob/${job} deleted\n`);
      await until(() => isGone(job, way.in), "its record is gone");
      const accepted = await lab.gangway(["submit", `${job}.json`, ...flags], world);
      assert.equal(accepted.exitCode, 0, accepted.stderr);
    });

    test(`a job that is waited for in vain in a namespace ${name} is listed`, async () => {
      const job = `slow-${at}`;
      files[`${job}.json`] = manifest(job, { namespace: way.file });
      const waited = await lab.gangway(["submit", `${job}.json`, "--wait", "--timeout", "1ms", ...flags], world);
      assert.equal(waited.exitCode, 124, waited.stderr);
      assert.match(await followed(waited.stderr, world), new RegExp(`^${job} `, "m"));
    });
  }

  test("jobs of several namespaces that are waited for in vain are listed", async () => {
    files["two.yaml"] = `${manifest("one", { namespace: "nlp" })}\n---\n${manifest("two", { namespace: "other" })}`;
    const waited = await lab.gangway(["submit", "two.yaml", "--wait", "--timeout", "1ms"]);
    assert.equal(waited.exitCode, 124, waited.stderr);
    const listed = await followed(waited.stderr);
    for (const job of ["one", "two"]) assert.match(listed, new RegExp(` ${job} `), listed);
  });

  test("a job that is admitted changes its size once it is suspended", async () => {
    files["fixed.json"] = manifest("fixed");
    await lab.ok("submit fixed.json");
    await until(async () => (await phaseOf("fixed", "default")) === "JOB_PHASE_RUNNING", "it runs");
    const refused = await lab.gangway(["scale", "fixed", "Worker=2"]);
    assert.match(refused.stderr, /while it is admitted: suspend it first/);
    await lab.ok("suspend fixed");
    await until(async () => (await phaseOf("fixed", "default")) === "JOB_PHASE_SUSPENDED", "it is suspended");
    await lab.ok("scale fixed Worker=2");
    await lab.ok("resume fixed");
    const replaced = await lab.gangway(["rerun", "fixed", "--replace"]);
    assert.match(replaced.stderr, /cancel it first, or leave out --replace/);
    await lab.ok("rerun fixed");
    await lab.ok("cancel fixed");
    await until(async () => (await phaseOf("fixed", "default")) === "JOB_PHASE_CANCELLED", "it has ended");
    await lab.ok("rerun fixed --replace");
    const unsure = await lab.gangway(["delete", "--all"]);
    assert.match(unsure.stderr, /; add --yes to do it/);
  });

  test("a warning of pods that other installations refuse prints what an admin allows them with there", async () => {
    files["paths.json"] = manifest("paths", { namespace: "paths", hostPath: true });
    const warned = await lab.gangway(["submit", "paths.json", "--dry-run"]);
    assert.equal(warned.exitCode, 0);
    assert.match(warned.stderr, /There, an admin allows it with: /);
    // The warning repeats for each replica type. It also names the command that runs such an installation.
    const commands = new Set(printedCommands(warned.stderr).filter((line) => line !== "serve"));
    assert.equal(commands.size, 1, warned.stderr);
    // An installation without the allowances of a trial refuses the pods.
    await lab.ok("namespace update paths --pod-security baseline");
    assert.equal((await lab.gangway(["submit", "paths.json", "--dry-run"])).exitCode, 3);
    for (const line of commands) assert.equal((await lab.gangway(wordsOf(line))).exitCode, 0, line);
    const taken = await lab.gangway(["submit", "paths.json", "--dry-run", "--strict"]);
    assert.deepEqual([taken.exitCode, printedCommands(taken.stderr)], [0, []], taken.stderr);
  });
});
