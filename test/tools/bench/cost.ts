import { randomBytes } from "node:crypto";
import type { KubeClient } from "../../../src/adapters/cluster/client.ts";
import type { Db } from "../../../src/adapters/store/db/db.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { waitForCount } from "../../support/bounded.ts";
import { benchClusters } from "./bench-clusters.ts";
import { benchJob } from "./bench-jobs.ts";
import { type Counted, countedDb } from "./counted-db.ts";
import { startScheduling } from "./scheduling.ts";
import { scratchDb } from "./scratch-db.ts";

export type CostBench = {
  /** How many jobs of one pod are submitted together. */
  readonly jobs: number;
};

/** The cost of one job from its submission until nothing of it is left to do. */
export type Cost = { readonly statements: number; readonly transactions: number; readonly kubernetesCalls: number };

const GPUS_PER_NODE = 64;
const clock = systemClock();

/** Counts the SQL statements, the transactions and the calls to Kubernetes of jobs of one pod, per job. */
export async function benchCost({ jobs }: CostBench, print: (line: string) => void): Promise<Cost> {
  await using parts = new AsyncDisposableStack();
  const nodes = { count: Math.ceil(jobs / GPUS_PER_NODE), gpus: GPUS_PER_NODE };
  const { clusters, run } = await benchClusters({ kind: "simulated", count: 1 }, nodes, parts);
  const counts = new Map<string, number>();
  const count = (what: string) => void counts.set(what, (counts.get(what) ?? 0) + 1);
  const db = countedDb(await scratchDb(parts), (what) => {
    const name = nameOf(what);
    if (name !== null) count(name);
  });
  const wrapClient = (client: KubeClient): KubeClient => ({
    ...client,
    request: (request) => {
      count(`kubernetes ${request.method} ${request.path.split("/").at(request.method === "POST" ? -1 : -2)}`);
      return client.request(request);
    },
  });
  const service = await startScheduling({
    db,
    clusters,
    clock,
    random: randomBytes,
    quota: jobs,
    wrapClient,
  });
  parts.defer(() => service.close());
  counts.clear();
  const names = Array.from({ length: jobs }, (_, at) => `single-${at}`);
  await service.submit(names.map((name) => benchJob({ namespace: run, name, replicas: 1, runs: "500ms" })));
  service.start();
  await waitForCount("settled jobs", () => settledJobs(db), { wanted: jobs });
  const total = (kind: string) =>
    [...counts].reduce((sum, [what, times]) => (what.startsWith(`${kind} `) ? sum + times : sum), 0) / jobs;
  for (const [what, times] of [...counts].sort(([, a], [, b]) => b - a)) {
    print(`${(times / jobs).toFixed(2).padStart(7)}  ${what}`);
  }
  const cost = {
    statements: total("statement"),
    transactions: total("transaction"),
    kubernetesCalls: total("kubernetes"),
  };
  print(
    `per job: ${Object.entries(cost)
      .map(([what, times]) => `${times.toFixed(2)} ${what}`)
      .join(", ")}`,
  );
  return cost;
}

/** Jobs that have ended, hold no tokens, and that no worker has to look at again. */
async function settledJobs(db: Db): Promise<number> {
  const [row] = await db.query<{ count: number }>(SETTLED);
  return row?.count ?? 0;
}

const SETTLED = `
select count(*)::int as count from jobs j
 where completion_ms is not null and recheck_at_ms is null
   and not exists (select from admissions a where a.job_uid = j.uid and a.tokens_released_ms is null)`;

/** A statement by its beginning. Null: the bench's own question, which is not counted. */
function nameOf(what: Counted): string | null {
  if (what.kind === "transaction") return "transaction of several statements";
  return what.text === SETTLED ? null : `statement ${what.text.trim().split(/\s+/).slice(0, 6).join(" ")}`;
}
