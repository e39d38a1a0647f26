/**
 * A gang has others preempted for it, while hundreds of callers ask for tokens of the same pool. Planner, worker and
 * Redis are killed at each step between its nomination and its admission.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type GangwayClient } from "../../src/cli/rpc/client.ts";
import { LABEL } from "../../src/core/job/labels.ts";
import { JobPhase } from "../../src/gen/gangway/v1/job_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { ResourceManager } from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { waitUntil } from "../support/bounded.ts";
import { postgresServer } from "../support/postgres.ts";
import { seededRandom } from "../support/random.ts";
import { hasRedisServer } from "../support/redis-server.ts";
import { Caller, isPassing, type Tally } from "./conserve-caller.ts";
import { ledgerSums } from "./conserve-ledger.ts";
import { type LedgerState, recordLedger, statesOf } from "./ledger-history.ts";
import { allowPreemption, holdTokens } from "./preemption-beside-callers.ts";
import { StepGates } from "./step-gates.ts";
import { Team } from "./team.ts";

const server = await postgresServer();
const POOL = "gpu/h100";
const CLUSTER = "h100-east";
const LIMIT = 16;
/** Three gangs of two pods with two GPUs each, and the gang that needs what all of them have. */
const VICTIMS = ["first", "second", "third"];
const NOMINEE = "urgent";
const NEED = 12;
const CALLERS = 500;
const CONNECTIONS = 4;
/** Each caller rests so long after each call. */
const REST_MS = 2_000;
/** So many transactions of the ledger show that callers were busy. */
const OFTEN = CALLERS / 10;

/** What the nominee and its victims are about to record when they are killed. */
const STEPS = {
  "the nomination is recorded": { table: "token_heirs", on: "insert", when: "true" },
  "a victim is recorded as evicted": {
    table: "jobs",
    on: "update",
    when: "old.phase <> 'WAITING' and new.phase = 'WAITING'",
  },
  "the tokens of a victim go to the nominee": {
    table: "allocations",
    on: "update",
    when: "old.heirs is not null and old.released_ms is null and new.released_ms is not null",
  },
  "the admission is recorded": { table: "allocations", on: "update", when: "old.hold and not new.hold" },
  "the admission's pods are recorded": {
    table: "jobs",
    on: "update",
    when: `new.name = '${NOMINEE}' and old.phase = 'ADMITTED' and new.phase <> 'ADMITTED'`,
  },
} as const;
type Step = keyof typeof STEPS;

/** What the database says of the nominee when it is killed before a step. */
type Standing = { readonly nominated: boolean; readonly evicted: number; readonly held: number; readonly live: number };

const STANDINGS: Readonly<Record<Step, Standing>> = {
  "the nomination is recorded": { nominated: false, evicted: 0, held: 0, live: 0 },
  "a victim is recorded as evicted": { nominated: true, evicted: 3, held: 0, live: 0 },
  "the tokens of a victim go to the nominee": { nominated: true, evicted: 3, held: 0, live: 0 },
  "the admission is recorded": { nominated: true, evicted: 3, held: NEED, live: 0 },
  "the admission's pods are recorded": { nominated: false, evicted: 3, held: 0, live: 1 },
};

test("a nominee boards with the tokens of its victims, whoever is killed meanwhile and whoever asks for them", {
  skip: server === null || !hasRedisServer(),
}, async (t) => {
  await using parts = new AsyncDisposableStack();
  const team = await Team.start(server ?? "", ["api", "planner,worker"]);
  parts.defer(() => team.close());
  const clients = clientsOf(team, parts);
  const [client] = clients as [GangwayClient];
  await recordLedger(team.db);
  await allowPreemption(client, { pool: POOL, limit: LIMIT });
  for (const name of VICTIMS) await client.call(JobService.method.createJob, { job: gang(name, 2, 0) });
  for (const name of VICTIMS) await running(client, name);

  // Without it, four free tokens would spare one of the victims.
  await holdTokens(client, { pool: POOL, amount: 1 });
  const crowd = startCallers(clients, parts);
  const pods = watchPods(team, parts);
  const gates = parts.use(await StepGates.close(team.url, STEPS));
  await client.call(JobService.method.createJob, { job: gang(NOMINEE, NEED / 2, 10) });
  for (const step of Object.keys(STEPS) as Step[]) {
    await gates.reached(step);
    const doomed = team.children.filter(({ roles }) => roles !== "api");
    await Promise.all([...doomed.map((child) => child.end("SIGKILL")), team.redis.kill()]);
    await gates.endWaiting(step);
    assert.deepEqual(await standing(team), STANDINGS[step], `killed before ${step}`);
    await team.redis.start();
    for (const child of doomed) await team.replace(child);
    await crowd.more();
    await requireConserved(team, client);
    t.diagnostic(`killed before ${step}: ${JSON.stringify(crowd.tally)}`);
    await gates.open(step);
  }
  await running(client, NOMINEE);
  await crowd.more();
  await waitUntil("callers have changed the ledger often", async () => (await sinceVictimsRan(team)).length > OFTEN);
  await crowd.stop();
  await requireConserved(team, client);
  await requireOneAdmission(team);
  assert.deepEqual(pods.doubled, []);
  await requireNeverFree(team);
});

function clientsOf(team: Team, parts: AsyncDisposableStack): readonly GangwayClient[] {
  const closed = new AbortController();
  parts.defer(() => closed.abort());
  return Array.from({ length: CONNECTIONS }, () => {
    const client = connect(team.children[0]?.address ?? "", closed.signal);
    parts.defer(() => client.close());
    return client;
  });
}

function gang(name: string, replicas: number, priority: number) {
  const annotations = { "sim.gangway.dev/run": "forever", "sim.gangway.dev/pull": "50ms" };
  const container = { name: "main", image: "trainer", resources: { limits: { "nvidia.com/gpu": "2" } } };
  const template = { metadata: { annotations }, spec: { containers: [container] } };
  const placement = { clusters: [CLUSTER] };
  return {
    metadata: { name },
    spec: { kind: "Job", priority, placement, replicaSpecs: { Worker: { replicas, template } } },
  };
}

async function running(client: GangwayClient, name: string): Promise<void> {
  await waitUntil(`${name} runs`, async () => {
    const { job } = await client.call(JobService.method.getJob, { name });
    return job?.status?.phase === JobPhase.RUNNING;
  });
}

/** Callers that ask for tokens, wait for them, renew, repeat and release them until `stop`. */
function startCallers(clients: readonly GangwayClient[], parts: AsyncDisposableStack) {
  const random = seededRandom(1);
  const tally: Tally = { calls: 0, granted: 0, refused: 0, released: 0, unavailable: 0 };
  const client = () => clients[Math.floor(random() * clients.length)] as GangwayClient;
  const stopped = new AbortController();
  const act = async (_: unknown, at: number) => {
    const caller = new Caller({ holder: `caller-${at}`, pools: [POOL], client, random, tally });
    await sleep(random() * REST_MS);
    while (!stopped.signal.aborted) {
      await caller.act(1, () => true);
      await sleep(REST_MS * (0.5 + random()));
    }
    await caller.settle();
  };
  const acting = Promise.all(Array.from({ length: CALLERS }, act));
  acting.catch(() => {});
  parts.defer(() => stopped.abort());
  /** Resolves once callers got tokens and were refused some more. */
  const more = async () => {
    const before = { ...tally };
    const holds = () => tally.granted > before.granted && tally.refused > before.refused + CALLERS / 10;
    await Promise.race([acting, waitUntil("callers get tokens, and are refused others", holds)]);
  };
  const stop = async () => {
    stopped.abort();
    await acting;
  };
  return { tally, more, stop };
}

/** Looks at the cluster all the time. `doubled`: replicas of which two pods were there at the same time. */
function watchPods(team: Team, parts: AsyncDisposableStack) {
  const doubled: string[] = [];
  const [cluster] = team.clusters.filter(({ name }) => name === CLUSTER);
  const look = () => {
    const seen = new Set<string>();
    for (const { metadata } of cluster?.model.store.objects("pods") ?? []) {
      const { labels = {}, name } = metadata;
      const replica = `${labels[LABEL.jobUid]} ${labels[LABEL.replicaIndex]}`;
      if (seen.has(replica)) doubled.push(`${name}, ${replica}`);
      seen.add(replica);
    }
  };
  const timer = setInterval(look, 5);
  parts.defer(() => clearInterval(timer));
  return { doubled };
}

async function standing({ db }: Team): Promise<Standing> {
  const [row] = await db.query<Standing>(STANDING, [NOMINEE, VICTIMS]);
  return row ?? assert.fail();
}

const STANDING = `
select exists (select from token_heirs h where h.job_uid = j.uid) as nominated,
       (select count(*)::int from jobs v
         where v.name = any($2) and (v.status ->> 'eviction' is not null or v.phase = 'WAITING')) as evicted,
       (select coalesce(sum(amount), 0)::int from allocations a
         where a.job_uid = j.uid and a.hold and a.released_ms is null) as held,
       (select count(*)::int from admissions a where a.job_uid = j.uid and a.state = 'live') as live
  from jobs j
 where j.name = $1`;

/** The sums of the ledger are those of its rows, within the limit, and the counters agree with it. */
async function requireConserved({ db }: Team, client: GangwayClient): Promise<void> {
  for (const { pool, kept, counted } of await ledgerSums(db)) {
    assert.equal(kept, counted, pool);
    if (pool === POOL) assert.ok(counted <= LIMIT, `${counted} of ${LIMIT} ${pool}`);
  }
  await waitUntil("counters and ledger agree", async () => {
    try {
      const { differences } = await client.call(ResourceManager.method.reconcileQuota, { dryRun: true });
      return differences.length === 0;
    } catch (error) {
      if (!isPassing(error)) throw error;
      return false;
    }
  });
}

/** The nominee has one admission and each of its pods once; its victims wait. */
async function requireOneAdmission(team: Team): Promise<void> {
  const admissions = await team.db.query(
    "select a.number, a.state from admissions a join jobs j on j.uid = a.job_uid where j.name = $1",
    [NOMINEE],
  );
  assert.deepEqual(admissions, [{ number: 1, state: "live" }]);
  const [cluster] = team.clusters.filter(({ name }) => name === CLUSTER);
  const ofJob = [...(cluster?.model.store.objects("pods") ?? [])]
    .filter(({ metadata }) => metadata.labels?.[LABEL.jobName] === NOMINEE)
    .map(({ metadata }) => metadata.labels?.[LABEL.replicaIndex])
    .sort();
  assert.deepEqual(ofJob, ["0", "1", "2", "3", "4", "5"]);
}

/**
 * After each transaction the nominee and its victims together hold what the victims held, so that the tokens were never
 * free, and all holders together are within the limit.
 */
async function requireNeverFree(team: Team): Promise<void> {
  const states = await sinceVictimsRan(team);
  assert.ok(states.length > OFTEN, `${states.length} transactions`);
  assert.deepEqual([...new Set(states.map(({ kept }) => kept))], [NEED]);
  assert.ok(Math.max(...states.map(({ all }) => all)) === LIMIT, `less than ${LIMIT} were held at most`);
}

/** What the gangs' first admissions and all holders hold after each transaction since all victims run. */
async function sinceVictimsRan({ db }: Team) {
  const jobs = await db.query<{ uid: string }>("select uid from jobs");
  const gangs = new Set(jobs.map(({ uid }) => uid));
  const sum = (rows: LedgerState) => rows.reduce((all, { amount }) => all + amount, 0);
  const states = (await statesOf(db, POOL)).map((rows) => {
    const ofGangs = rows.filter(({ jobUid, admission }) => jobUid !== null && gangs.has(jobUid) && admission === 1);
    return { kept: sum(ofGangs), all: sum(rows) };
  });
  const from = states.findIndex(({ kept }) => kept === NEED);
  return from < 0 ? [] : states.slice(from);
}
