import assert from "node:assert/strict";
import { LABEL } from "../../src/core/job/labels.ts";
import { CleanPodPolicy } from "../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { type Team, until } from "./team.ts";

const ENDED = "('SUCCEEDED', 'FAILED', 'CANCELLED')";

/** Submits small gangs, each under a request id until it is acknowledged, to whichever API answers. */
export async function submitUntil(team: Team, done: AbortSignal, acknowledged: Set<string>): Promise<void> {
  for (let count = 1; !done.aborted; count += 1) {
    const name = `gang-${count}`;
    while (!(await submit(team, name))) await new Promise((resolve) => setTimeout(resolve, 50));
    acknowledged.add(name);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Waits until every job has ended and holds nothing, then counts: each succeeded once, and nothing is left anywhere. */
export async function allEndOnce(team: Team, names: ReadonlySet<string>): Promise<void> {
  const one = async <R>(sql: string) => (await team.db.query<R>(sql))[0] as R;
  await until(async () => {
    const { open } = await one<{ open: number }>(
      `select count(*)::int as open from jobs where phase not in ${ENDED} or status::jsonb ->> 'draining' = 'true'`,
    );
    const { used } = await one<{ used: number }>("select coalesce(sum(used), 0)::int as used from allocation_sums");
    const { there } = await one<{ there: number }>("select count(*)::int as there from admission_clusters");
    return open === 0 && used === 0 && there === 0;
  }, "every job has ended, no token is held and nothing is left in a cluster");
  await countTheEnds(team, names);
}

async function countTheEnds(team: Team, names: ReadonlySet<string>): Promise<void> {
  const jobs = await team.db.query<{ name: string; phase: string }>("select name, phase from jobs");
  assert.deepEqual(new Set(jobs.map(({ name }) => name)), new Set(names), "what was acknowledged is there");
  assert.deepEqual(
    jobs.filter(({ phase }) => phase !== "SUCCEEDED"),
    [],
    "every job succeeded",
  );
  const twice = await team.db.query(
    "select name from job_events where reason = 'JobSucceeded' group by name having count(*) <> 1",
  );
  assert.deepEqual(twice, [], "each ended once");
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
