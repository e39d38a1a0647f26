import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import type { RunningService } from "../../src/cli/service/up.ts";
import { startEmbedded } from "../../src/compose/embedded.ts";
import { readConfig } from "../../src/config/config.ts";
import { type Ran, run } from "../cli/harness.ts";
import { gpuNodes, until } from "../cluster/harness.ts";
import { newDataFolder } from "../support/data-folder.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { controlPlaneBuilt } from "./build.ts";
import { type ControlPlane, startControlPlane } from "./control-plane.ts";
import { TRAINING_STAGES } from "./stages.ts";
import { addNodes } from "./subject.ts";

const FLAVOR = "gpu/h100=nvidia.com/gpu:nvidia.com/gpu.product=h100";
const ADMIN_TOKEN = `token-${randomBytes(16).toString("hex")}`;
const NOBODY_TOKEN = `token-${randomBytes(16).toString("hex")}`;

/** A gang that only nodes of the flavor accept. */
function manifest(name: string, members: { readonly runs: "briefly" | "for ever"; readonly timeoutSeconds?: number }) {
  // A pod that our stages do not play runs until it is deleted.
  const attempt = members.runs === "briefly" ? [] : ["annotations: {test.gangway.dev/runs: for-ever}"];
  return `apiVersion: gangway.dev/v1
kind: Job
metadata: {name: ${name}}
spec:
  runPolicy: {cleanPodPolicy: All, schedulingPolicy: {scheduleTimeoutSeconds: ${members.timeoutSeconds ?? 600}}}
  replicaSpecs:
    Worker:
      replicas: 2
      template:
        metadata: {${attempt.join(", ")}}
        spec:
          containers:
            - {name: main, image: registry.example.com/train:1, resources: {limits: {nvidia.com/gpu: 4}}}
`;
}

suite("clusters that are registered while the service runs", { skip: !controlPlaneBuilt() }, () => {
  const data = newDataFolder("gangway-register-");
  const files: Record<string, string> = {
    "briefly.yaml": manifest("briefly", { runs: "briefly" }),
    "for-ever.yaml": manifest("for-ever", { runs: "for ever", timeoutSeconds: 2 }),
  };
  const config = readConfig(data, {
    GANGWAY_CREDENTIALS_KEY: randomBytes(32).toString("base64"),
    GANGWAY_DATA: data,
    GANGWAY_LOG_LEVEL: "trace",
  });
  let plane: ControlPlane;
  let service: RunningService;

  const start = () =>
    startEmbedded(
      { exit: false, examples: false, listen: "127.0.0.1:0", data: null, insecure: false, simulate: true },
      config,
      OWN_KINDS,
    );
  const gangway = (...argv: readonly string[]): Promise<Ran> => run(argv, { address: service.address, files });
  const ok = async (...argv: readonly string[]): Promise<string> => {
    const ran = await gangway(...argv);
    assert.equal(ran.exitCode, 0, `gangway ${argv.join(" ")}: ${ran.stderr}${ran.stdout}`);
    return ran.stdout;
  };
  const isReady = async () => /real +ready/.test(await ok("cluster", "list"));

  before(async () => {
    plane = await startControlPlane({
      stages: TRAINING_STAGES,
      tokens: [`${ADMIN_TOKEN},boss,boss,"system:masters"`, `${NOBODY_TOKEN},nobody,nobody`],
    });
    await addNodes(plane, gpuNodes(2));
    files["real.yaml"] = plane.kubeconfig(ADMIN_TOKEN);
    files["nobody.yaml"] = plane.kubeconfig(NOBODY_TOKEN);
    service = await start();
  });

  after(async () => {
    await service.close();
    await plane.stop();
    rmSync(data, { recursive: true, force: true });
  });

  test("a dry run prints one line for each missing permission, and registers nothing", async () => {
    const { exitCode, stdout } = await gangway("cluster", "add", "real", "--kubeconfig", "nobody.yaml", "--dry-run");
    assert.equal(exitCode, 3);
    const lines = stdout.split("\n").filter((line) => line.startsWith("error: MissingPermission"));
    assert.ok(
      lines.includes(
        "error: MissingPermission: Gangway may not watch nodes in all namespaces: needed to know what room there is. " +
          "Without it, no gang is admitted there",
      ),
    );
    assert.equal(lines.length, 20, stdout);
    assert.match(
      stdout,
      /^warning: MissingPermission: Gangway may not get namespaces named kube-system: needed to tell/m,
    );
    assert.equal((await gangway("cluster", "get", "real")).exitCode, 3);
  });

  test("a kubeconfig with a program or files is refused, naming each of them", async () => {
    const parsed = JSON.parse(plane.kubeconfig());
    parsed.users[0].user = { exec: { command: "sh" }, "client-key": "/etc/key" };
    files["exec.yaml"] = JSON.stringify(parsed);
    const { exitCode, stderr } = await gangway("cluster", "add", "bad", "--kubeconfig", "exec.yaml");
    assert.equal(exitCode, 3);
    assert.match(stderr, /exec runs a program/);
    assert.match(stderr, /client-key names a file/);
    const byPath = await gangway("cluster", "add", "bad", "--server-file", "/etc/passwd");
    assert.equal(byPath.exitCode, 3);
    assert.match(byPath.stderr, /names a file of the server's/);
  });

  test("a registered cluster is connected, and gangs run there to their end", async () => {
    const said = await ok(
      "cluster",
      "add",
      "real",
      "--kubeconfig",
      "real.yaml",
      "--flavor",
      FLAVOR,
      "--label",
      "zone=a",
    );
    assert.match(said, /cluster\/real registered\nok: answers, Kubernetes v1\.36/);
    assert.equal((await gangway("cluster", "add", "real", "--kubeconfig", "real.yaml")).exitCode, 3, "once only");
    await until(isReady, "the cluster is ready");
    for (const simulated of ["h100-east", "a100-west"]) await ok("cluster", "cordon", simulated);
    await ok("submit", "--wait", "-f", "briefly.yaml");
    assert.match(await ok("get", "briefly", "-o", "json"), /"cluster": "real"/);
  });

  test("its token appears neither in answers nor in logs nor in the database", async () => {
    for (const output of ["json", "yaml", "table"]) {
      const shown = `${await ok("cluster", "get", "real", "-o", output)}${await ok("cluster", "list", "-o", output)}`;
      assert.ok(!shown.includes(ADMIN_TOKEN));
    }
    const written = readdirSync(data, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    assert.ok(written.length > 10, "the database was found");
    for (const entry of written) {
      const text = readFileSync(join(entry.parentPath, entry.name)).toString("latin1");
      assert.ok(!text.includes(ADMIN_TOKEN), entry.name);
      assert.ok(!text.includes(Buffer.from(ADMIN_TOKEN).toString("base64").slice(2, 40)), entry.name);
    }
  });

  test("a check warns of another queueing system that sees pods of our namespaces", async () => {
    assert.match(await ok("cluster", "check", "real"), /^ok: answers, Kubernetes v1\.36\.3, clock within [12] s$/m);
    const webhook = {
      name: "mpod.kb.io",
      admissionReviewVersions: ["v1"],
      sideEffects: "None",
      failurePolicy: "Ignore",
      objectSelector: { matchLabels: { never: "matches" } },
      clientConfig: { url: "https://127.0.0.1:1/" },
      rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] }],
    };
    const path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    const body = { metadata: { name: "kueue-mutating-webhook-configuration" }, webhooks: [webhook] };
    assert.equal((await plane.client.request({ method: "POST", path, body })).kind, "ok");
    assert.match(
      await ok("cluster", "check", "real"),
      /^warning: OtherQueueingSystem: .*kueue sees new pods of default/m,
    );
    assert.match(await ok("cluster", "check", "h100-east"), /^ok: answers/);
  });

  test("after a restart of the service it is connected again", async () => {
    await service.close();
    service = await start();
    await plane.client.request({
      method: "PATCH",
      path: "/api/v1/nodes/node-0",
      body: { metadata: { labels: { a: "b" } } },
    });
    await until(
      async () => (await ok("cluster", "capacity", "real", "-o", "json")).includes('"a": "b"'),
      "observed again",
    );
  });

  test("a cluster with gangs is not removed but may be forgotten, and its gangs are admitted elsewhere", async () => {
    await ok("submit", "-f", "for-ever.yaml");
    const get = () => ok("get", "for-ever", "-o", "json");
    await until(async () => /JOB_PHASE_RUNNING/.test(await get()), "it runs");
    const refused = await gangway("cluster", "remove", "real");
    assert.equal(refused.exitCode, 3);
    assert.match(refused.stderr, /in use by 1 gang/);
    await plane.stopApiServer();
    const state = async () => JSON.parse(await ok("cluster", "get", "real", "-o", "json")).state;
    await until(async () => (await state()) === "CLUSTER_STATE_UNREACHABLE", "it is noticed");
    assert.match(await ok("explain", "for-ever"), /cluster real has not answered since /);
    await ok("cluster", "remove", "real", "--forget", "--confirm", "real");
    assert.equal((await gangway("cluster", "get", "real")).exitCode, 3);
    await ok("cluster", "uncordon", "h100-east");
    await until(async () => /"cluster": "h100-east"/.test(await get()), "it is admitted to the other cluster");
    await ok("cancel", "for-ever");
  });

  test("it can be registered again, and the gang's old objects there are cleaned up", async () => {
    await plane.startApiServer();
    await ok("cluster", "add", "real", "--kubeconfig", "real.yaml", "--flavor", FLAVOR);
    const query = { labelSelector: "gangway.dev/job-uid" };
    const left = async () => {
      const listed = await plane.client.request({ method: "GET", path: "/api/v1/pods", query });
      return listed.kind === "ok" && Array.isArray(listed.object["items"]) ? listed.object["items"].length : -1;
    };
    assert.ok((await left()) >= 0);
    await until(async () => (await left()) === 0, "nothing is left");
    await until(
      async () => (await gangway("cluster", "remove", "real")).exitCode === 0,
      "removed once nothing is there",
    );
  });
});
