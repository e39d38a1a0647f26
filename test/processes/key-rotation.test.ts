/** The keys of credentials are rotated while jobs run, and the process that does it is killed in the middle. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { sealKubeconfig } from "../../src/adapters/cluster/credentials.ts";
import { listKeyUses } from "../../src/adapters/store/admin/credential-keys.ts";
import { connect } from "../../src/cli/rpc/client.ts";
import { ClusterService } from "../../src/gen/gangway/v1/cluster_service_pb.ts";
import { run } from "../cli/harness.ts";
import { waitUntil } from "../support/bounded.ts";
import { postgresServer } from "../support/postgres.ts";
import { hasRedisServer } from "../support/redis-server.ts";
import type { ServeChild } from "../support/serve-process.ts";
import { allEndOnce, submitUntil } from "./gangs.ts";
import { CREDENTIALS_KEY, Team } from "./team.ts";

const server = await postgresServer();
const left = server === null || !hasRedisServer();
/** Beside the clusters of a team, more than a page of a rotation. */
const MORE_CLUSTERS = 25;
const INSERT_CLUSTER = `
insert into clusters (name, labels, flavors, simulated, credentials, create_ms) values ($1, '{}', '[]', false, $2, 0)`;
const BYTES = { default: CREDENTIALS_KEY, next: randomBytes(32), third: randomBytes(32) };

describe("the keys of credentials", { skip: left }, () => {
  const folder = mkdtempSync(join(tmpdir(), "gangway-rotation-"));
  const file = join(folder, "keys.yaml");
  let team: Team;
  before(async () => {
    write("default", "default");
    // The file has the only keys.
    const env = { GANGWAY_CREDENTIALS_KEYS_FILE: file, GANGWAY_CREDENTIALS_KEY: "" };
    team = await Team.start(server ?? "", ["api", "api", "planner", "worker", "worker"], { env });
  });
  after(async () => {
    await team.close();
    rmSync(folder, { recursive: true });
  });

  /** As a mounted secret changes. */
  function write(current: keyof typeof BYTES, ...names: readonly (keyof typeof BYTES)[]): void {
    const keys = names.map((name) => ({ name, key: BYTES[name].toString("base64") }));
    writeFileSync(`${file}.new`, JSON.stringify({ current, keys }));
    renameSync(`${file}.new`, file);
  }

  const apis = () => team.children.filter(({ roles }) => roles === "api");
  const gangway = (child: ServeChild | undefined, line: string) =>
    run(line.split(" "), { address: child?.address ?? "" });
  const uses = async () =>
    Object.fromEntries((await listKeyUses(team.db)).map(({ name, clusters }) => [name, clusters.length]));
  const allEncryptWith = (name: string) =>
    waitUntil(`every API process encrypts with ${name}`, async () => {
      const listed = await Promise.all(apis().map((child) => gangway(child, "keys list")));
      return listed.every(({ stdout }) => new RegExp(`^${name} +current`, "m").test(stdout));
    });

  /** Starts a rotation, and kills its process while it waits for the credentials of the last cluster. */
  async function killInTheMiddle(last: string): Promise<void> {
    const [first] = apis();
    assert.ok(first !== undefined);
    await team.db.tx(async (tx) => {
      await tx.query("select 1 from clusters where name = $1 for update", [last]);
      const rotating = gangway(first, "keys rotate --to next");
      await waitUntil("the first page is committed", async () => ((await uses())["next"] ?? 0) > 0);
      await team.replace(first);
      assert.equal((await rotating).exitCode, 4, "the command says that the service is away");
    });
    await Promise.all(team.children.map((child) => child.serving()));
  }

  test("are rotated while jobs run and processes are killed; then the old key can go", async () => {
    const [sealed] = team.clusters;
    const kubeconfig = (sealed?.kubeconfig() ?? "").replace(/https?:\/\/[^\s"]+/g, "http://127.0.0.1:1");
    const key = { name: "default", bytes: CREDENTIALS_KEY };
    const names = Array.from({ length: MORE_CLUSTERS }, (_, at) => `z-${String(at).padStart(2, "0")}`);
    for (const name of names) {
      const credentials = sealKubeconfig(key, name, kubeconfig);
      await team.db.query(INSERT_CLUSTER, [name, JSON.stringify(credentials)]);
    }
    const all = team.clusters.length + MORE_CLUSTERS;
    assert.deepEqual(await uses(), { default: all });
    const jobs = new Set<string>();
    const done = new AbortController();
    const submitting = submitUntil(team, done.signal, jobs);
    const more = async () => {
      const enough = jobs.size + 4;
      await waitUntil("more jobs are acknowledged", () => jobs.size >= enough);
    };
    await more();
    write("next", "default", "next");
    await allEncryptWith("next");
    await killInTheMiddle(names.at(-1) ?? "");
    assert.deepEqual(await uses(), { next: 20, default: all - 20 });

    const rest = await gangway(apis()[1], "keys rotate --to next");
    assert.deepEqual(rest, {
      exitCode: 0,
      stdout: `${all - 20} kubeconfigs encrypted again with key/next\n`,
      stderr: "",
    });
    assert.deepEqual(await uses(), { next: all });
    const again = await gangway(apis()[0], "keys rotate");
    assert.deepEqual(again, { exitCode: 0, stdout: "0 kubeconfigs encrypted again with key/next\n", stderr: "" });
    done.abort();
    await submitting;
    // The jobs that still wait run with the new key alone.
    write("next", "next");
    for (const child of team.children.filter(({ roles }) => roles !== "planner")) await team.replace(child);
    await Promise.all(team.children.map((child) => child.serving()));
    await allEndOnce(team, jobs);
    for (const { output } of team.children) assert.doesNotMatch(output, /key of credentials missing/);
  });

  test("that are removed too early are named with their clusters, and work once they are put back", async () => {
    const [name = ""] = team.clusters.map((cluster) => cluster.name).sort();
    write("third", "third");
    await allEncryptWith("third");
    const missing = `key/next is missing: the service cannot use the kubeconfigs of ${name}, `;
    const listed = await gangway(apis()[0], "keys list -o name");
    assert.deepEqual([listed.stdout, listed.stderr.slice(0, missing.length)], ["key/next\nkey/third\n", missing]);
    const rotated = await gangway(apis()[0], "keys rotate");
    assert.deepEqual([rotated.exitCode, rotated.stdout], [3, "0 kubeconfigs encrypted again with key/third\n"]);
    const encrypted =
      "the cluster's credentials are encrypted with the key next; there are third here: put the key back";
    assert.ok(rotated.stderr.startsWith(`error: cluster/${name}: ${encrypted}`), rotated.stderr);

    // A process that starts now has to open them.
    const [first] = apis();
    assert.ok(first !== undefined);
    await team.replace(first);
    const [started] = apis();
    await started?.serving();
    assert.match(started?.output ?? "", new RegExp(`"key":"next","clusters":\\["${name}".*key of credentials missing`));
    const stop = new AbortController();
    const client = connect(started?.address ?? "", stop.signal);
    const problem = async () => (await client.call(ClusterService.method.getCluster, { name })).cluster?.problem;
    assert.ok((await problem())?.startsWith(encrypted));
    write("third", "third", "next");
    await waitUntil("the cluster is usable again", async () => (await problem()) === "");
    client.close();
    stop.abort();
    assert.equal((await gangway(started, "keys rotate")).exitCode, 0);
    assert.deepEqual(Object.keys(await uses()), ["third"]);
  });
});
