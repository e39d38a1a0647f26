import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { QueueRecord } from "../../src/core/admin/queue.ts";
import { queueUses } from "../../src/core/plan/explain/queue-uses.ts";
import { DEFAULT_POLICY } from "../../src/core/plan/model/queue-policy.ts";
import { startFixture } from "../api/fixture.ts";
import { queueRecord } from "../api/memory-store.ts";
import { run } from "./harness.ts";

const gpus = (model: string, nominal: number) => ({ flavor: `gpu/${model}`, resource: "nvidia.com/gpu", nominal });

/** A tree with use, and a queue beside it. */
function queuesWithUse(): readonly QueueRecord[] {
  const records = [
    { ...queueRecord("all"), quotas: [gpus("h100", 4)], policy: { ...DEFAULT_POLICY, fairSharing: [] } },
    { ...queueRecord("nlp"), parent: "all", quotas: [gpus("h100", 8), gpus("a100", 2)] },
    { ...queueRecord("nlp-dev"), parent: "nlp", quotas: [gpus("a100", 0)], policy: { ...DEFAULT_POLICY, weight: 0 } },
    { ...queueRecord("vision"), parent: "all", quotas: [gpus("h100", 4)], policy: { ...DEFAULT_POLICY, weight: 2 } },
    { ...queueRecord("default"), quotas: [gpus("h100", 8)] },
  ];
  const uses = queueUses(records, [
    { queue: "nlp-dev", pool: "gpu/a100", used: 1 },
    { queue: "nlp", pool: "gpu/h100", used: 2 },
    { queue: "vision", pool: "gpu/h100", used: 9 },
    { queue: "default", pool: "gpu/h100", used: 3 },
  ]);
  return records.map((record) => ({ ...record, ...uses.get(record.name) }));
}

async function treeOf(t: TestContext, line: string, queues = queuesWithUse()) {
  const { store, api } = await startFixture(t);
  store.queues.clear();
  for (const record of queues) store.queues.set(record.name, record);
  return run(line.split(" "), { address: api.address, files: {} });
}

test("queue tree shows each queue below its parent, with what it uses, borrows and lends", async (t) => {
  const { exitCode, stdout } = await treeOf(t, "queue tree");
  assert.equal(exitCode, 0);
  assert.equal(
    stdout,
    [
      "NAME         WEIGHT     SHARE  USED/QUOTA",
      "all               1         0  gpu/h100 11/4 (2 lent), gpu/a100 1/0",
      "└ nlp             1         0  gpu/h100 2/8 (3 lent), gpu/a100 1/2 (1 lent)",
      "└── nlp-dev       0  infinite  gpu/a100 1/0 (1 borrowed)",
      "└ vision          2       139  gpu/h100 9/4 (5 borrowed)",
      "default           1         0  gpu/h100 3/8",
      "",
    ].join("\n"),
  );
});

test("queue tree NAME shows the branch of the queue alone, also as JSON", async (t) => {
  const { stdout } = await treeOf(t, "queue tree nlp");
  assert.equal(
    stdout,
    [
      "NAME       WEIGHT     SHARE  USED/QUOTA",
      "nlp             1         0  gpu/h100 2/8 (3 lent), gpu/a100 1/2 (1 lent)",
      "└ nlp-dev       0  infinite  gpu/a100 1/0 (1 borrowed)",
      "",
    ].join("\n"),
  );
  const json = await treeOf(t, "queue tree nlp -o json");
  const { queues } = JSON.parse(json.stdout) as { queues: { name: string; use: { share?: unknown } }[] };
  assert.deepEqual(
    queues.map(({ name, use }) => [name, use.share ?? 0]),
    [
      ["nlp", 0],
      ["nlp-dev", "Infinity"],
    ],
  );
});

test("the jobs of queues below count in a limit of running jobs, as queue list and get show", async (t) => {
  const counts: Readonly<Record<string, Partial<QueueRecord>>> = {
    all: { maxRunningJobs: 20, admitted: 1 },
    nlp: { maxRunningJobs: 2, admitted: 0, waiting: 1, maxWaitingJobs: 5 },
    "nlp-dev": { admitted: 3, waiting: 4 },
    vision: { admitted: 2 },
  };
  const queues = queuesWithUse().map((record) => ({ ...record, ...counts[record.name] }));
  const { stdout } = await treeOf(t, "queue list", queues);
  const cells = stdout.split("\n").map((line) => / (\S+) +(\S+) +gpu/.exec(line)?.slice(1));
  assert.deepEqual(cells.slice(1, 6), [
    ["0", "6/20"],
    ["1/5", "3/2"],
    ["4", "3"],
    ["0", "2"],
    ["0", "0"],
  ]);
  assert.match((await treeOf(t, "queue get nlp", queues)).stdout, / 1\/5 +3\/2 +gpu/);
});

test("a queue above counts what queues below use beyond their guarantees, as the help says", async (t) => {
  const queues = [
    { ...queueRecord("ml"), quotas: [gpus("h100", 2)] },
    { ...queueRecord("dev"), parent: "ml", quotas: [{ ...gpus("h100", 8), lendingLimit: 3 }] },
  ];
  const uses = queueUses(queues, [{ queue: "dev", pool: "gpu/h100", used: 9 }]);
  const shown = queues.map((record) => ({ ...record, ...uses.get(record.name) }));
  const { stdout } = await treeOf(t, "queue tree", shown);
  assert.match(stdout, /ml .* gpu\/h100 4\/2 .*\n└ dev .* gpu\/h100 9\/8 /);
  const help = (await treeOf(t, "queue tree --help")).stdout.replace(/\s+/g, " ");
  assert.match(help, /A child counts with its use above its guarantee \(quota minus lending limit\)/);
});

test("queue tree of a queue that does not exist, and of no queues, says so", async (t) => {
  const { exitCode, stderr } = await treeOf(t, "queue tree nowhere");
  assert.deepEqual([exitCode, stderr], [3, "error: queue nowhere does not exist\n"]);
  assert.match((await treeOf(t, "queue tree", [])).stderr, /no queues/);
});
