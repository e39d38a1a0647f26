/** Runs every command of the pages, and fails on one that does not end as its page says. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { DEMO_CLUSTERS } from "../../src/adapters/simcluster/demo-clusters.ts";
import { type SimCluster, startSimCluster } from "../../src/adapters/simcluster/sim-cluster.ts";
import { clock } from "../cluster/harness.ts";
import { postgresServer } from "../support/postgres.ts";
import { type Command, commandsOf } from "./commands.ts";
import { type Installation, startEmbeddedService, startStores } from "./installations.ts";
import { hasRealCluster, hasStores } from "./needs.ts";
import { EXCEPTIONS } from "./not-run.ts";
import { allPages } from "./pages.ts";
import { openClone, type Ran, runSteps, type Step } from "./shell.ts";

/** The page whose commands set up PostgreSQL and Redis themselves. */
const ON_STORES = "docs/operating.md";
/** The page that registers a cluster: on a service of its own, since others would run jobs there. */
const REGISTERS = "docs/clusters.md";

const postgres = await postgresServer();
const isOnRealCluster = hasRealCluster();

const pages = allPages()
  .map((page) => ({ path: page.path, commands: commandsOf(page) }))
  .filter(({ commands }) => commands.length > 0);

function commandsFor(path: string): readonly Command[] {
  return pages.find((page) => page.path === path)?.commands ?? [];
}

function exceptionFor({ page, text }: Command) {
  return EXCEPTIONS.find((one) => one.page === page && one.command === text);
}

/** The commands that the test runs, each with how. */
function stepsOf(commands: readonly Command[]): readonly Step[] {
  return commands.flatMap((command) => {
    const exception = exceptionFor(command);
    if (exception === undefined) return [command];
    if (exception.kind === "afterStop") return [{ ...command, afterStop: true }];
    if (exception.kind === "background") return [{ ...command, background: exception.until }];
    if (exception.kind === "notRun" || !isOnRealCluster) return [];
    return [exception.until === undefined ? command : { ...command, background: exception.until }];
  });
}

/** A line for each command that did not end as its page says. */
function wrong(ran: readonly Ran[]): readonly string[] {
  return ran
    .filter(({ command, status }) => status !== command.status)
    .map(
      ({ command: { page, line, text, status: promised }, status, output }) =>
        `${page}:${line}: ${text}\n  ended with ${status}, not ${promised}:\n${output}`,
    );
}

async function runPage(commands: readonly Command[], installation: Installation, files: Record<string, string> = {}) {
  const clone = openClone();
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(clone.directory, name), text);
    const { environment, replace } = installation;
    return await runSteps(stepsOf(commands), { directory: clone.directory, environment, replace });
  } finally {
    clone.remove();
  }
}

suite("the commands of the pages", { concurrency: 2 }, () => {
  let embedded: Installation;
  let east: SimCluster;
  /** The kubeconfig that pages take for granted. */
  const files: Record<string, string> = {};

  before(async () => {
    east = await startSimCluster({ name: "east", nodes: DEMO_CLUSTERS[0]?.nodes ?? [], directory: null, clock });
    files["east.yaml"] = east.kubeconfig();
    embedded = await startEmbeddedService();
  });

  after(async () => {
    await embedded.close();
    await east.close();
  });

  for (const { path, commands } of pages.filter(({ path }) => ![ON_STORES, REGISTERS].includes(path))) {
    test(path, async () => assert.deepEqual(wrong(await runPage(commands, embedded)), []));
  }

  test(REGISTERS, async () => {
    const service = await startEmbeddedService();
    try {
      assert.deepEqual(wrong(await runPage(commandsFor(REGISTERS), service, isOnRealCluster ? {} : files)), []);
    } finally {
      await service.close();
    }
  });

  test(ON_STORES, { skip: !hasStores(postgres) && "needs PostgreSQL with its pg_dump, and redis-server" }, async () => {
    const stores = await startStores(postgres ?? "");
    try {
      assert.deepEqual(wrong(await runPage(commandsFor(ON_STORES), stores, files)), []);
    } finally {
      await stores.close();
    }
  });
});

test("every command that is not simply run is in its page, and has a reason", () => {
  const known = new Set(pages.flatMap(({ commands }) => commands.map(({ page, text }) => `${page}: ${text}`)));
  assert.deepEqual(
    EXCEPTIONS.filter(({ page, command, reason }) => !known.has(`${page}: ${command}`) || reason === ""),
    [],
  );
});
