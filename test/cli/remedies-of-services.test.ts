/** The commands that messages about clusters, pools, logins, databases and jobs that are set aside print. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { type SchemaFit, schemaAdvice } from "../../src/adapters/store/db/schema.ts";
import type { MigrateRequest } from "../../src/cli/shell/deps.ts";
import { judge, NOTES_COUNT_MS } from "../../src/core/blame/judge.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { ResourceManager } from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { startFixture } from "../api/fixture.ts";
import { pytorchJob } from "../api/jobs.ts";
import { gpuNodes, startProxy, until } from "../cluster/harness.ts";
import { run, type World } from "./harness.ts";
import { startLab } from "./lab-service.ts";
import { printedCommands, wordsOf } from "./printed-commands.ts";

suite("the commands that messages of admins print", { concurrency: true }, () => {
  const files: Record<string, string> = {};
  let lab: Awaited<ReturnType<typeof startLab>>;
  before(async () => {
    lab = await startLab(gpuNodes(1), files);
  });
  after(() => lab.close());

  const refused = async (line: string): Promise<string> => {
    const ran = await lab.gangway(line.split(" "));
    assert.notEqual(ran.exitCode, 0, ran.stdout);
    return ran.stderr;
  };

  test("a cluster that cannot be used is checked again once it is repaired, or removed", async (t) => {
    let isDown = true;
    const proxy = await startProxy(lab.sim.url, () => (isDown ? { status: 401 } : "pass"));
    t.after(() => proxy.close());
    files["east.yaml"] = proxy.kubeconfig;
    const commands = printedCommands(await refused("cluster add east --kubeconfig east.yaml"));
    assert.equal(commands.length, 2);
    isDown = false;
    for (const line of commands) {
      const ran = await lab.gangway(wordsOf(line));
      assert.equal(ran.exitCode, 0, `gangway ${line}: ${ran.stdout}${ran.stderr}`);
    }
    await until(async () => (await lab.gangway(["cluster", "get", "east"])).exitCode !== 0, "it is removed");
  });

  test("a token that its holder wants to give back is released", async () => {
    await lab.ok("quota register lic:a --quota 1");
    await lab.ok("alloc lic:a run-1");
    const [release = "", ...more] = printedCommands(await refused("quota release lic:a run-1"));
    assert.deepEqual([release, more], ["release", []]);
    await lab.ok(`${release} lic:a run-1`);
    await lab.ok("alloc lic:a run-2");
  });

  test("a quota is raised for a time once the queue has it", async () => {
    await lab.ok("queue create plain");
    const grant = "quota grant plain gpu/h100 8 --for 2h";
    assert.match(await refused(grant), /give it one by UpdateQueue first/);
    await lab.ok("queue update plain --quota gpu/h100=nvidia.com/gpu:8");
    await lab.ok(grant);
  });

  test("a priority class becomes the default once another one is no longer", async () => {
    await lab.ok("priority-class create old --value 1 --default yes");
    const create = "priority-class create new --value 2 --default yes";
    assert.match(await refused(create), /priority class old is; update that one first/);
    await lab.ok("priority-class update old --default no");
    await lab.ok(create);
  });

  test("a robot is made once another one of its namespace is revoked", async () => {
    await lab.ok("namespace create crew");
    await lab.ok("limits set namespace/crew --max-robot-tokens 1");
    const writePrivateFile = () => Promise.resolve();
    const create = (name: string) =>
      lab.gangway(`robot create ${name} -n crew --to ${name}.token`.split(" "), { writePrivateFile });
    assert.equal((await create("old")).exitCode, 0);
    const [revoke = "", ...more] = printedCommands((await create("new")).stderr);
    assert.deepEqual(more, []);
    await lab.ok(revoke.replace("NAME", "old"));
    assert.equal((await create("newer")).exitCode, 0);
  });

  // A dry run: a job would be placed on the cluster that another test removes.
  test("a manifest beside objects that are no jobs is taken without them", async () => {
    const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n";
    files["both.yaml"] = `${config}---
apiVersion: gangway.dev/v1
kind: Job
metadata: {name: beside}
spec: {replicaSpecs: {Worker: {template: {spec: {containers: [{name: main, image: busybox}]}}}}}
`;
    assert.match(await refused("submit both.yaml --dry-run"), /--ignore-foreign skips documents that are not jobs/);
    await lab.ok("submit both.yaml --dry-run --ignore-foreign");
  });
});

test("a job that is set aside is resumed", async (t) => {
  const { api, call, store } = await startFixture(t);
  await call(JobService.method.createJob, { job: pytorchJob("blocks") });
  const note = { what: "blocked", ended: true, alone: true, ms: 1, plugin: "p" } as const;
  const notes = ["w1", "w2"].map((worker) => ({ ...note, worker, atMs: NOTES_COUNT_MS, jobUid: "u" }));
  const blame = judge(notes, { resumedMs: null }, NOTES_COUNT_MS) ?? assert.fail("the job is to blame");
  const jobNow = () => store.jobs.get("default/blocks")?.job ?? assert.fail("there is the job");
  store.put({ ...jobNow(), status: { ...jobNow().status, setAside: { ...blame, sinceMs: 1 } } });
  const gangway = (words: readonly string[]) => run(words, { address: api.address });
  const [resume = ""] = printedCommands((await gangway(["explain", "blocks"])).stdout);
  assert.equal(resume, "resume");
  const resumed = await gangway([resume, "blocks"]);
  assert.equal(resumed.exitCode, 0, resumed.stderr);
  assert.equal(jobNow().status.setAside, undefined);
});

test("a token of a job that runs comes back once the job is cancelled", async (t) => {
  const { api, call, store, resources } = await startFixture(t);
  await call(ResourceManager.method.registerResourceQuota, { resourceNamespace: "lic:a", quota: 4n });
  await call(JobService.method.createJob, { job: pytorchJob("mnist") });
  resources.jobs.set("uid-1", "default/mnist");
  const line = { pool: "lic:a", token: "job", amount: 1, project: "nlp", namespace: "default", queue: null };
  resources.admit(line, { kind: "admission", jobUid: "uid-1", admission: 1 });
  const gangway = (words: readonly string[]) => run(words, { address: api.address });
  const { stderr } = await gangway(["quota", "release", "lic:a", "job", "--force", "--reason", "a test"]);
  const [cancel = "", ...more] = printedCommands(stderr);
  assert.deepEqual(more, []);
  const cancelled = await gangway(wordsOf(cancel));
  assert.equal(cancelled.exitCode, 0, `${cancel}: ${cancelled.stderr}`);
  assert.notEqual(store.jobs.get("default/mnist")?.job.cancel, null);
});

test("a service that is not there is started", async () => {
  const { stderr } = await run(["list"], { address: "127.0.0.1:1" });
  const [line = ""] = printedCommands(stderr);
  let started = 0;
  const up = async () => {
    started++;
    return 0;
  };
  assert.equal((await run(wordsOf(line), { up })).exitCode, 0, stderr);
  assert.equal(started, 1);
});

const fits: Readonly<Record<string, { readonly fit: SchemaFit; readonly asked: Partial<MigrateRequest> }>> = {
  "has no schema": { fit: { kind: "behind", schema: 0, program: 3, due: ["a"] }, asked: { offline: false } },
  "is one version behind": { fit: { kind: "behind", schema: 2, program: 3, due: ["a"] }, asked: { offline: false } },
  "lacks a migration": { fit: { kind: "behind", schema: 3, program: 3, due: ["a"] }, asked: { offline: false } },
  "is far behind": { fit: { kind: "farBehind", schema: 1, program: 3 }, asked: { offline: true } },
};
for (const [is, { fit, asked }] of Object.entries(fits)) {
  test(`a database that ${is} is migrated`, async () => {
    const requests: MigrateRequest[] = [];
    const migrate: World["migrate"] = async (request) => {
      requests.push(request);
      return { kind: "migrated", ran: [] };
    };
    const [line = "", ...more] = printedCommands(schemaAdvice(fit) ?? "");
    assert.deepEqual(more, []);
    assert.equal((await run(wordsOf(line), { migrate })).exitCode, 0, line);
    assert.deepEqual(requests, [{ restored: false, data: null, ...asked }]);
  });
}

test("a login without a context begins in one that is made as the message says", async () => {
  let file: string | null = null;
  const world: World = {
    configFile: {
      path: "config.yaml",
      read: async () => file,
      write: async (text) => {
        file = text;
      },
    },
  };
  const login = "login --issuer http://127.0.0.1:1 --client-id gangway".split(" ");
  const [line = ""] = printedCommands((await run(login, world)).stderr);
  const made = await run(wordsOf(line.replace("NAME", "prod").replace("HOST:PORT", "127.0.0.1:7443")), world);
  assert.equal(made.exitCode, 0, made.stderr);
  const { stderr } = await run(login, world);
  // The issuer is asked now, but nothing listens there.
  assert.match(stderr, /^error: no login at http:\/\/127\.0\.0\.1:1: /);
  assert.deepEqual(printedCommands(stderr), ["login"]);
});

test("a file that is no login is replaced by a new login", async () => {
  const files = {
    "config.yaml": "current: prod\ncontexts: {prod: {addresses: ['127.0.0.1:1'], tokenFile: logins/prod.json}}\n",
    "logins/prod.json": "{}",
  };
  const [line = ""] = printedCommands((await run(["list"], { files })).stderr);
  const words = wordsOf(line.replace("URL", "http://127.0.0.1:1").replace("ID", "gangway"));
  assert.match((await run(words, { files })).stderr, /^error: no login at http:\/\/127\.0\.0\.1:1: /);
});
