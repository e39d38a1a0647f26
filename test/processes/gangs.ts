import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { LABEL } from "../../src/core/job/labels.ts";
import { CleanPodPolicy } from "../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { waitUntil } from "../support/bounded.ts";
import type { Team } from "./team.ts";

const ENDED = "('SUCCEEDED', 'FAILED', 'CANCELLED')";

/** Submits small gangs to any API that answers. Repeats each under its request id until it is acknowledged. */
export async function submitUntil(team: Team, done: AbortSignal, acknowledged: Set<string>): Promise<void> {
  for (let count = 1; !done.aborted; count += 1) {
    const name = `gang-${count}`;
    await waitUntil(`an API process accepts ${name}`, () => submit(team, name));
    acknowledged.add(name);
    await sleep(100);
  }
}

/** Waits until every job has ended and holds no tokens. Checks that each succeeded once and left nothing behind. */
export async function allEndOnce(team: Team, names: ReadonlySet<string>): Promise<void> {
  const one = async <R>(sql: string) => (await team.db.query<R>(sql))[0] as R;
  await waitUntil("every job has ended, no token is held and nothing is left in a cluster", async () => {
    const { open } = await one<{ open: number }>(
      `select count(*)::int as open from jobs where phase not in ${ENDED} or status::jsonb ->> 'draining' = 'true'`,
    );
    const { used } = await one<{ used: number }>("select coalesce(sum(used), 0)::int as used from allocation_sums");
    const { there } = await one<{ there: number }>("select count(*)::int as there from admission_clusters");
    return open === 0 && used === 0 && there === 0;
  });
  await countTheEnds(team, names);
}

async function countTheEnds(team: Team, names: ReadonlySet<string>): Promise<void> {
  const jobs = await team.db.query<{ name: string; phase: string }>("select name, phase from jobs");
  assert.deepEqual(
    new Set(jobs.map(({ name }) => name)),
    new Set(names),
    "every acknowledged job exists, and no other",
  );
  assert.deepEqual(
    jobs.filter(({ phase }) => phase !== "SUCCEEDED"),
    [],
    "every job succeeded",
  );
  const twice = await team.db.query(
    "select name from job_events where reason = 'JobSucceeded' group by name having count(*) <> 1",
  );
  assert.deepEqual(twice, [], "each job ended once");
  for (const cluster of team.clusters) {
    for (const resource of ["pods", "services", "configmaps"] as const) {
      const there = [...cluster.model.store.objects(resource)]
        .filter(({ metadata }) => LABEL.installation in (metadata.labels ?? {}))
        .map(({ metadata }) => metadata.name);
      assert.deepEqual(there, [], `${resource} of ${cluster.name}`);
    }
  }
}

async function submit(team: Team, name: string): Promise<boolean> {
  const closed = new AbortController();
  const client = team.client(closed.signal);
  if (client === null) return false;
  try {
    await client.call(JobService.method.createJob, { job: gang(name), requestId: name });
    return true;
  } catch {
    return false;
  } finally {
    closed.abort();
    client.close();
  }
}

function gang(name: string) {
  const annotations = { "sim.gangway.dev/run": "500ms", "sim.gangway.dev/pull": "50ms" };
  const container = { name: "main", image: "trainer", resources: { limits: { "nvidia.com/gpu": "2" } } };
  return {
    metadata: { name },
    spec: {
      kind: "Job",
      runPolicy: { cleanPodPolicy: CleanPodPolicy.ALL },
      replicaSpecs: {
        Worker: { replicas: 3, template: { metadata: { annotations }, spec: { containers: [container] } } },
      },
    },
  };
}
