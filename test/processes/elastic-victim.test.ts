/**
 * An elastic gang gives up members for a gang of a higher priority, while callers ask for tokens of the same pool. The
 * tokens of the members reach that gang, and nobody else.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect, type GangwayClient } from "../../src/cli/rpc/client.ts";
import { LABEL } from "../../src/core/job/labels.ts";
import { JobPhase } from "../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { waitUntil } from "../support/bounded.ts";
import { postgresServer } from "../support/postgres.ts";
import { seededRandom } from "../support/random.ts";
import { hasRedisServer } from "../support/redis-server.ts";
import { Caller, type Tally } from "./conserve-caller.ts";
import { type LedgerState, recordLedger, statesOf } from "./ledger-history.ts";
import { allowPreemption, holdTokens } from "./preemption-beside-callers.ts";
import { Team } from "./team.ts";

const server = await postgresServer();
const POOL = "gpu/h100";
const CLUSTER = "h100-east";
const LIMIT = 16;
const POD_GPUS = 2;
const VICTIM = { name: "elastic", workers: 6, minReplicas: 2 };
const NOMINEE = { name: "urgent", workers: 4 };
const CALLERS = 30;

test("the tokens of members that an elastic gang gives up reach the nominee, whoever asks for them", {
  skip: server === null || !hasRedisServer(),
}, async (t) => {
  await using parts = new AsyncDisposableStack();
  const team = await Team.start(server ?? "", ["api,planner,worker"]);
  parts.defer(() => team.close());
  const closed = new AbortController();
  const client = connect(team.children[0]?.address ?? "", closed.signal);
  parts.defer(() => {
    closed.abort();
    client.close();
  });
  await recordLedger(team.db);
  await allowPreemption(client, { pool: POOL, limit: LIMIT });
  await client.call(JobService.method.createJob, {
    job: gang(VICTIM.name, VICTIM.workers, { kind: "PyTorchJob", priority: 0, minReplicas: VICTIM.minReplicas }),
  });
  await running(client, VICTIM.name);
  await waitUntil("the nodes show all pods of the victim", async () => (await podsShown(team)) === VICTIM.workers);

  const kept = await holdTokens(client, { pool: POOL, amount: LIMIT - VICTIM.workers * POD_GPUS });
  const crowd = startCallers(client, parts);
  await crowd.refused();
  await client.call(JobService.method.createJob, {
    job: gang(NOMINEE.name, NOMINEE.workers, { kind: "Job", priority: 10 }),
  });
  await running(client, NOMINEE.name);
  await crowd.refused();
  await kept.release();
  await crowd.granted();
  await crowd.stop();
  t.diagnostic(JSON.stringify(crowd.tally));

  const uids = await uidsOf(team);
  const heldBy = (uid: string | undefined) => (state: LedgerState) =>
    state.filter(({ jobUid }) => jobUid === uid).reduce((sum, { amount }) => sum + amount, 0);
  const [ofVictim, ofNominee] = [heldBy(uids.get(VICTIM.name)), heldBy(uids.get(NOMINEE.name))];
  const states = await statesOf(team.db, POOL);
  let given = 0;
  for (const [at, state] of states.entries()) {
    const all = state.reduce((sum, { amount }) => sum + amount, 0);
    assert.ok(all <= LIMIT, `${all} of ${LIMIT}`);
    const before = states[at - 1] ?? [];
    const lost = ofVictim(before) - ofVictim(state);
    if (lost <= 0) continue;
    given += lost;
    assert.equal(ofNominee(state) - ofNominee(before), lost, `transaction ${at}`);
  }
  assert.ok(given >= NOMINEE.workers * POD_GPUS - (LIMIT - VICTIM.workers * POD_GPUS), `${given} were given up`);
  const last = states.at(-1) ?? [];
  assert.equal(ofNominee(last), NOMINEE.workers * POD_GPUS);
  await requireRunsOn(team, client, async () => ofVictim((await statesOf(team.db, POOL)).at(-1) ?? []));
});

type OfGang = { readonly kind: "Job" | "PyTorchJob"; readonly priority: number; readonly minReplicas?: number };

function gang(name: string, replicas: number, { kind, priority, minReplicas }: OfGang) {
  const annotations = { "sim.gangway.dev/run": "forever", "sim.gangway.dev/pull": "50ms" };
  const resources = { limits: { "nvidia.com/gpu": String(POD_GPUS) } };
  const spec = { containers: [{ name: "pytorch", image: "trainer", resources }] };
  const elastic =
    minReplicas === undefined
      ? {}
      : {
          kindSpec: { elasticPolicy: { minReplicas, maxReplicas: replicas } },
          runPolicy: { schedulingPolicy: { minAvailable: minReplicas } },
        };
  const replicaSpecs = { Worker: { replicas, template: { metadata: { annotations }, spec } } };
  return { metadata: { name }, spec: { kind, priority, placement: { clusters: [CLUSTER] }, replicaSpecs, ...elastic } };
}

async function running(client: GangwayClient, name: string): Promise<void> {
  await waitUntil(`${name} runs`, async () => {
    const { job } = await client.call(JobService.method.getJob, { name });
    return job?.status?.phase === JobPhase.RUNNING;
  });
}

/**
 * The pods of all jobs that the planner knows on nodes. It gives up members only where it knows their nodes, and else
 * preempts the whole gang.
 */
async function podsShown({ db }: Team): Promise<number> {
  const [row] = await db.query<{ pods: number }>(PODS_SHOWN);
  return row?.pods ?? 0;
}

const PODS_SHOWN = `
select coalesce(sum(json_array_length(entry -> 'members')), 0)::int as pods
  from cluster_capacity where kind = 'node' and entry is not null`;

/** Callers that ask for tokens, wait for them, renew and release them without a pause until `stop`. */
function startCallers(client: GangwayClient, parts: AsyncDisposableStack) {
  const random = seededRandom(1);
  const tally: Tally = { calls: 0, granted: 0, refused: 0, released: 0, unavailable: 0 };
  let isStopped = false;
  const act = async (_: unknown, at: number) => {
    const caller = new Caller({ holder: `caller-${at}`, pools: [POOL], client: () => client, random, tally });
    while (!isStopped) await caller.act(1, () => true);
    await caller.settle();
  };
  const acting = Promise.all(Array.from({ length: CALLERS }, act));
  acting.catch(() => {});
  parts.defer(() => {
    isStopped = true;
  });
  const until = (what: string, holds: () => boolean) => Promise.race([acting, waitUntil(what, holds)]);
  const granted = () => until("callers get tokens", () => tally.granted > 3);
  const refused = () => {
    const before = tally.refused;
    return until("callers are refused", () => tally.refused > before + CALLERS);
  };
  const stop = async () => {
    isStopped = true;
    await acting;
  };
  return { tally, granted, refused, stop };
}

async function uidsOf({ db }: Team): Promise<ReadonlyMap<string, string>> {
  const rows = await db.query<{ name: string; uid: string }>("select name, uid from jobs");
  return new Map(rows.map(({ name, uid }) => [name, uid]));
}

/**
 * The victim has its first admission and as many pods as it holds tokens for, and was not preempted. It may grow again
 * once the callers have stopped: then the pods follow the tokens.
 */
async function requireRunsOn(
  { clusters, db }: Team,
  client: GangwayClient,
  heldNow: () => Promise<number>,
): Promise<void> {
  const { job } = await client.call(JobService.method.getJob, { name: VICTIM.name });
  assert.deepEqual([job?.status?.phase, job?.status?.attempts?.preemptions], [JobPhase.RUNNING, 0]);
  const admissions = await db.query(
    "select a.number, a.state from admissions a join jobs j on j.uid = a.job_uid where j.name = $1",
    [VICTIM.name],
  );
  assert.deepEqual(admissions, [{ number: 1, state: "live" }]);
  const ownPods = () => {
    const pods = [...(clusters.find(({ name }) => name === CLUSTER)?.model.store.objects("pods") ?? [])];
    return pods.filter(({ metadata }) => metadata.labels?.[LABEL.jobName] === VICTIM.name);
  };
  await waitUntil("the victim has as many pods as it holds tokens for", async () => {
    const held = await heldNow();
    assert.ok(held >= VICTIM.minReplicas * POD_GPUS && held < VICTIM.workers * POD_GPUS, `it holds ${held}`);
    return ownPods().length === held / POD_GPUS;
  });
  const { events } = await client.call(JobService.method.listJobEvents, { name: VICTIM.name });
  const said = events.filter(({ reason }) => reason === "GivesUpMembers").map(({ message }) => message);
  assert.match(said.join("\n"), /default\/urgent/);
}
