import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { waitUntil } from "../support/bounded.ts";
import { addDatabase } from "../support/data-folder.ts";
import { Warehouse } from "../support/warehouse.ts";
import { installPacked, root } from "./packed.ts";

const { directory, installed, remove } = installPacked();
const bin = join(installed, "bin", "gangway");
const warehouse = await Warehouse.open("open sesame");
const env = {
  ...process.env,
  XDG_CACHE_HOME: join(directory, "cache"),
  GANGWAY_PLUGINS: "./kinds/ray-job.js,./kinds/query-job.js",
  GANGWAY_SECRETS: join(directory, "secrets"),
  WAREHOUSE_URL: warehouse.url,
};

writeFileSync(join(directory, "package.json"), JSON.stringify({ type: "module" }));
cpSync(join(installed, "examples", "plugins"), join(directory, "kinds"), { recursive: true });
addDatabase(join(directory, "data"));
mkdirSync(join(directory, "secrets"));
writeFileSync(join(directory, "secrets", "warehouse-password"), "open sesame\n");

after(async () => {
  await warehouse[Symbol.asyncDispose]();
  remove();
});

/** The installed `gangway up`, with the kinds of this test. */
class Service {
  readonly child: ChildProcess;
  output = "";
  readonly #ended: Promise<unknown>;

  constructor() {
    const args = [bin, "up", "--no-examples", "--listen", "127.0.0.1:0", "--data", join(directory, "data")];
    this.child = spawn(process.execPath, args, { cwd: directory, env, stdio: ["ignore", "pipe", "pipe"] });
    this.#ended = once(this.child, "close");
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.output += chunk.toString();
      });
    }
  }

  async address(): Promise<string> {
    return await until(() => {
      assert.equal(this.child.exitCode, null, this.output);
      return /listening on (\S+)/.exec(this.output)?.[1];
    });
  }

  async end(signal: "SIGKILL" | "SIGINT"): Promise<void> {
    this.child.kill(signal);
    await this.#ended;
  }
}

async function until<T>(ask: () => T | undefined | Promise<T | undefined>): Promise<T> {
  const answers: T[] = [];
  await waitUntil("there is an answer", async () => {
    const answer = await ask();
    if (answer !== undefined) answers.push(answer);
    return answers.length > 0;
  });
  return answers[0] as T;
}

async function gangway(address: string, args: readonly string[], stdin = ""): Promise<string> {
  const running = promisify(execFile)(process.execPath, [bin, "--address", address, ...args], { cwd: directory, env });
  running.child.stdin?.end(stdin);
  return (await running).stdout;
}

type Shown = {
  readonly metadata: { readonly uid: string };
  readonly status: {
    readonly phase: string;
    readonly draining?: boolean;
    readonly info?: { readonly phase: string; readonly logs?: { uri: string }[]; customInfo?: { rows: number } };
    readonly failure?: { readonly message: string };
  };
};

async function job(address: string, name: string): Promise<Shown> {
  return JSON.parse(await gangway(address, ["get", name, "-o", "json"]));
}

function query(name: string, statement: string): string {
  const header = `---\napiVersion: gangway.dev/v1\nkind: QueryJob\nmetadata: {name: ${name}}\n`;
  return `${header}spec: {kindSpec: {statement: ${statement}}}\n`;
}

const RAY = `---
apiVersion: gangway.dev/v1
kind: RayJob
metadata: {name: cluster}
spec:
  replicaSpecs:
    head:
      template:
        metadata: {annotations: {sim.gangway.dev/run: 50ms}}
        spec: {containers: [{name: ray, image: ray}]}
    worker: {replicas: 2, template: {spec: {containers: [{name: ray, image: ray}]}}}
`;

test("the installed declarations type-check a stranger's kinds", () => {
  const options = ["--noEmit", "--allowJs", "--checkJs", "--strict", "--module", "nodenext", "--target", "es2024"];
  const files = ["ray-job.js", "query-job.js"].map((file) => join(directory, "kinds", file));
  const tsc = join(root, "node_modules", ".bin", "tsc");
  const checked = spawnSync(tsc, [...options, "--types", "node", ...files], { cwd: directory, encoding: "utf8" });
  assert.equal(checked.status, 0, checked.stdout);
  const wrong = join(directory, "kinds", "wrong.js");
  writeFileSync(
    wrong,
    '// @ts-check\nimport { phaseInfo } from "gangway/plugin";\nphaseInfo.running({ version: "1" });\n',
  );
  const refused = spawnSync(tsc, [...options, wrong], { cwd: directory, encoding: "utf8" });
  assert.match(refused.stdout, /wrong\.js.*Type 'string' is not assignable to type 'number'/);
});

test("an unusable entry of GANGWAY_PLUGINS is a precise error, and nothing starts", () => {
  const cases = {
    "./kinds/none.js": /GANGWAY_PLUGINS names \.\/kinds\/none\.js, which cannot be loaded: /,
    "./package.json": /GANGWAY_PLUGINS names \.\/package\.json, which cannot be loaded: /,
    "./kinds/wrong.js": /GANGWAY_PLUGINS names \.\/kinds\/wrong\.js, which exports no list named plugins/,
    "./kinds/ray-job.js,./kinds/ray-job.js": /GANGWAY_PLUGINS: two plugins have the id ray/,
  };
  const ran = (names: string, args: readonly string[]) => {
    const variables = { ...env, GANGWAY_PLUGINS: names };
    return spawnSync(process.execPath, [bin, ...args], { cwd: directory, env: variables, encoding: "utf8" });
  };
  for (const [names, says] of Object.entries(cases)) {
    const { status, stderr } = ran(names, ["list", "--kind", "RayJob"]);
    assert.equal(status, 2);
    assert.match(stderr, says);
  }
  const data = join(directory, "never-made");
  const { status, stderr } = ran("./kinds/none.js", ["up", "--listen", "127.0.0.1:0", "--data", data]);
  assert.equal(status, 2);
  assert.match(stderr, /^error: GANGWAY_PLUGINS names/m);
  assert.equal(existsSync(data), false);
});

test("a plugin kind with pods and one that calls a service are served, also across a kill", async (t) => {
  let service = new Service();
  t.after(() => service.end("SIGKILL"));
  let address = await service.address();
  const manifests = RAY + query("a", "one") + query("b", "two") + query("c", "three");
  await gangway(address, ["submit", "-f", "-", "--wait"], manifests);
  const [cluster, a] = [await job(address, "cluster"), await job(address, "a")];
  assert.equal(cluster.status.phase, "JOB_PHASE_SUCCEEDED");
  assert.equal(a.status.phase, "JOB_PHASE_SUCCEEDED");
  assert.equal(a.status.info?.phase, "TASK_PHASE_SUCCESS");
  assert.equal(a.status.info?.customInfo?.rows, 2);
  assert.deepEqual(
    a.status.info?.logs?.map(({ uri }) => uri),
    [`${warehouse.url}/ui/gw-${a.metadata.uid}-1-1`],
  );
  assert.equal(warehouse.started.length, 3);
  assert.equal(warehouse.together, 2, "two slots are two queries at a time");

  // An existing result is reused. A job whose identical job still runs waits for that result.
  const cached = (name: string) => query(name, "count").replace("spec: {", "spec: {runPolicy: {cacheKey: counts}, ");
  await gangway(address, ["submit", "-f", "-", "--wait"], cached("first") + cached("second"));
  await gangway(address, ["submit", "-f", "-", "--wait"], cached("third"));
  const results = await Promise.all(["first", "second", "third"].map((name) => job(address, name)));
  assert.ok(results.every(({ status }) => status.phase === "JOB_PHASE_SUCCEEDED"));
  assert.equal(warehouse.started.length, 4, "one of the three has run");
  assert.equal(results[2]?.status.info?.customInfo?.rows, 2);

  // Two jobs that never end hold both slots, so the third waits. This survives a kill, and nothing is started twice.
  const names = ["x", "y", "z"];
  await gangway(address, ["submit", "-f", "-"], names.map((name) => query(name, "forever")).join(""));
  const waits = await until(async () => {
    const jobs = await Promise.all(names.map(async (name) => ({ name, ...(await job(address, name)).status })));
    const running = jobs.filter(({ phase }) => phase === "JOB_PHASE_RUNNING");
    const waiting = jobs.find(({ info }) => info?.phase === "TASK_PHASE_WAITING_FOR_RESOURCES");
    return running.length === 2 ? waiting : undefined;
  });
  const explained = await gangway(address, ["explain", waits.name]);
  assert.match(explained, /waiting for resources: 1 asked of pool warehouse, which uses 2 of 2/);
  assert.match(await gangway(address, ["quota", "allocations", "--pool", "warehouse"]), /gw-/);
  await service.end("SIGKILL");
  service = new Service();
  address = await service.address();
  const runs = ["x", "y"].find((name) => name !== waits.name) ?? "";
  await gangway(address, ["cancel", runs]);
  const cancelled = await until(async () => {
    const { status, metadata } = await job(address, runs);
    return status.phase === "JOB_PHASE_CANCELLED" && !status.draining ? metadata : undefined;
  });
  assert.ok(warehouse.deleted.includes(`gw-${cancelled.uid}-1-1`), "the warehouse was told");
  for (const name of ["x", "y", "z"]) await gangway(address, ["delete", name]);
  await until(async () => (/\b[xyz]\b/.test(await gangway(address, ["list", "-o", "name"])) ? undefined : true));
  assert.equal(warehouse.running, 0);
  assert.equal(new Set(warehouse.started).size, warehouse.started.length);
  const held = await gangway(address, ["quota", "allocations", "--pool", "warehouse"]);
  assert.doesNotMatch(held, /gw-/);
  await service.end("SIGINT");
});
