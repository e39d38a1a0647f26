/** `npm run bench -- NAME`: measures something and a floor in the same run, and prints their ratio. */
import { parseArgs } from "node:util";
import { benchAdmit } from "./admit.ts";
import { benchAuth } from "./auth.ts";
import type { ClusterSource } from "./bench-clusters.ts";
import { benchCli } from "./cli.ts";
import { benchCost } from "./cost.ts";
import { benchFair } from "./fair.ts";
import { benchFlood } from "./flood.ts";
import { benchGang } from "./gang.ts";
import { benchPack, type PackBench } from "./pack/pack.ts";
import { benchPlan, benchPolicies } from "./plan.ts";
import { benchPlanDatabase } from "./plan-database.ts";
import { benchProcesses } from "./processes.ts";
import { benchRecord } from "./record.ts";
import { benchScale } from "./scale.ts";
import { benchStart } from "./start.ts";
import { benchSubmit } from "./submit.ts";
import { SMALL } from "./submit-parts.ts";
import { benchTokens } from "./tokens.ts";
import { benchWatch } from "./watch.ts";

const HELP = `npm run bench -- NAME [options]

Every line has a measurement and a floor, both of the same machine and run. Compare ratios, not rates. A bench that
waits for 240 s without progress ends with status 1.

  submit   durable submits, one a call by 1, 64 and 256 callers, beside a bare grpc-js echo of messages as large, and
           beside an echo that inserts the row of such a job into a table without other indexes; batches of 1,000,
           beside bare inserts of such rows in transactions of 200; and GetJob and lists of 100 jobs by each order and
           filter, beside echoes whose answers are as large
             --replicas N      the replicas of a job that is submitted, a master and workers (default 4)
             --distinct        the templates of each job have an argument and a variable of their own, as in a sweep of
                               parameters (default: the same templates in all jobs)
             --finished N      among so many jobs that have ended (default 1000000; embedded 20000)
             --seconds N       how long each is measured (default 5)
             --database WHERE  memory, or a folder's path (default: a temporary folder)
             --postgres URL    a database of the bench's own on this server instead
  tokens   tokens that callers take and give back over gRPC, with the ledger and with durability REDIS, beside an echo,
           and beside an echo with one bare script and one bare durable transaction; the counters in Redis alone, with
           few and many tokens held, beside the four commands of Flyte's resource manager, and in batches beside
           pipelined scripts; the time from a release to the grant of the next in line
             --seconds N       how long each is measured (default 5)
             --postgres URL    the server for a database of the bench's own (default: that of the tests); redis-server
                               must be on the PATH
  admit    1,000 jobs of one pod and 200 gangs of 4 on two clusters: admitted and created a second, beside a bare loop
           that creates the same pods there
             --kubeconfig FILE  a cluster; twice for two (default: two simulated ones in a process of their own)
             --planes N         real API servers of the bench's own instead; needs npm run kube:build. With --postgres
                                the default: first one, then two of them, unless there is --simulated
             --postgres URL     a database of the bench's own on this server, and a redis-server of its own (default:
                                an embedded database, and counters in the process)
             --singles N --gangs N --nodes N  other numbers of jobs, and of nodes of 64 GPUs for each cluster
  record   1,200 admissions recorded in batches, beside one at a time; and how long callers wait for tokens beside full
           batches, as a ratio to how long they wait alone
             --postgres URL     the server for a database of the bench's own (default: that of the tests)
             --gangs N --callers N --batch N --seconds N  other numbers, also of gangs in a batch (default 256), and how
                                long callers are measured alone
  watch    changes of jobs that watchers get over gRPC: how late, from the begin of a worker's record; CPU time of a
           message and of a change that nobody watches; memory of a watcher; how often a change is encoded; and the same
           beside readers that read nothing. The floor is a bare grpc-js stream of bytes that are prepared once a change
             --watchers N --filters N --changes N --stalled N  (default 1000, 10, 1000 a second, 50)
             --namespaces N     the changes come from so many; each filter selects one of them (default: one a filter)
             --seconds N        how long each is measured (default 5)
             --postgres URL     a database of the bench's own on this server (default: an embedded one)
  start    npm start until it listens, on a new folder and again, beside Node alone and PGlite alone; gangway get beside
           Node alone; and an idle installation with finished and running jobs: its statements, and its CPU time
             --finished N --running N  other numbers of jobs (default 100000, 10000)
             --seconds N        how long the idle installation is watched
             --runs N           how often each start is measured (default 15)
             --postgres URL     the server for the installation's database (default: that of the tests)
  scale    every call, take-overs, and memory, in an installation with many jobs beside one with a hundredth of them
           in the same run; sizes of tables and indexes; and how late changes come to a watch while the service prunes
           what so many ended jobs have left
             --finished N --live N  the jobs that have ended, and those that wait (default 1000000, 100000)
             --runs N           how often each call is made
             --seconds N        how long watches are measured beside pruning (default 5; 60 tell a p99)
             --postgres URL     the server for the installation's database (default: that of the tests)
  processes  the same callers on 1, 2 and 4 api processes of one database: calls a second, and the CPU time of a call in
           the api, in PostgreSQL and in the callers
             --callers N --seconds N  other numbers (default 64 callers)
             --postgres URL     the server for the database (default: that of the tests)
  gang     one gang of 1,000 replicas on a real API server with KWOK: from its submit until its last pod exists, beside
           a bare loop that creates the same pods there; writes per pod; and what 10,000 finished jobs cost an idle
           service
             --kubeconfig FILE  that cluster (default: a control plane of the bench's own, see npm run kube:build)
             --simulated        a simulated cluster instead
             --replicas N --finished N --seconds N  other numbers, and how long the idle service is watched
  cost     SQL statements, transactions and calls to Kubernetes of jobs of one pod, per job, from submission to end
             --singles N        other numbers of jobs that are submitted together (default 1,000)

  flood    two tenants of one service that knows its callers: how long the calls of one take (submits, a watch, tokens,
           logs) while the other floods it with all of them, as a ratio to how long they take without the flood; with
           the limits of callers that every installation has, and without any
             --callers N        the concurrent calls of the flood, of each kind (default 200)
             --seconds N        how long each turn is measured
             --limits WHICH     default or no: only with these
             --postgres URL     a database of the bench's own on this server, and a redis-server of its own (default:
                                an embedded database, and counters in the process)
  auth     calls of a caller with a token of OpenID Connect, with that of a robot and with a certificate, which are
           judged and counted: the CPU time of a call in the service, as a ratio to the same call to a service that
           knows nobody
             --callers N        the concurrent calls (default 16)
             --calls N --turns N  the calls of a turn, and the pairs of turns of each line (default 400, 40)
             --postgres URL     the server for a database of the bench's own (default: that of the tests); redis-server
                                and openssl must be on the PATH
  plan     the planner's state in memory, without input or output: a cold load and plan, and rounds after 1, 100 and
           10,000 changes, in CPU time of the process; beside a bare parse of the rows of the load
             --waiting N --nodes N --clusters N --asks N --queues N  (default 100000, 10000, 8, 3000, 1000)
             --rounds N         how many rounds are measured (default 200)
             --levels           the nodes are in racks and blocks, which are levels of their clusters
             --wishes           a third of the gangs need one rack for all their pods; needs --levels
             --postgres URL     the whole way instead, from a database of the bench's own on this server, in the
                                planner's thread: its times, its memory, and blocks of the main event loop
             --policies         also the same with queues that have weights, share fairly, preempt and reclaim, and how
                                many times as long that takes. It runs for some ten minutes
  pack     which part of a cluster's GPUs pods get, by four rules that choose their nodes, and carried out by the
           simulated scheduler. Status 1: a goal is missed
             --trace DIR        a folder with *node_list*.csv and *pod_list*.csv
             --churn            also gangs that come and go
             --racks            also gangs that come and go, most of which need one rack
             --seeds N --gangs N  (default 10, 1000)
  fair     teams that share quotas, on a virtual clock: the time until all gangs have ended, beside a lower bound; work
           that preemptions lost; mean waits, beside the gates of Kueue's tests; and CPU time. Each load runs twice: as
           it is, and with a minimum run time, for which the goals hold. Status 1: a goal is missed
             --loads DIR        loads in the form of Kueue's performance tests (default: its load "baseline")
             --min-runtime S    no gang is preempted within so many seconds of its admission (default 1)
  cli      calls of the command line, in CPU time; beside the start of Node alone, with HTTP/2, and with one call
             --runs N           how often each is run (default 15)

  --profile   also where the CPU time of the service went, by function
  --help      this text
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: "boolean", default: false },
    profile: { type: "boolean", default: false },
    seconds: { type: "string", default: "5" },
    database: { type: "string" },
    planes: { type: "string" },
    postgres: { type: "string" },
    kubeconfig: { type: "string", multiple: true, default: [] },
    singles: { type: "string", default: "1000" },
    gangs: { type: "string" },
    callers: { type: "string" },
    batch: { type: "string", default: "256" },
    nodes: { type: "string" },
    waiting: { type: "string", default: "100000" },
    clusters: { type: "string", default: "8" },
    asks: { type: "string", default: "3000" },
    queues: { type: "string", default: "1000" },
    rounds: { type: "string", default: "200" },
    policies: { type: "boolean", default: false },
    levels: { type: "boolean", default: false },
    wishes: { type: "boolean", default: false },
    trace: { type: "string" },
    churn: { type: "boolean", default: false },
    racks: { type: "boolean", default: false },
    seeds: { type: "string", default: "10" },
    loads: { type: "string" },
    limits: { type: "string" },
    calls: { type: "string", default: "400" },
    turns: { type: "string", default: "40" },
    "min-runtime": { type: "string", default: "1" },
    replicas: { type: "string" },
    distinct: { type: "boolean", default: false },
    finished: { type: "string" },
    running: { type: "string", default: "10000" },
    live: { type: "string", default: "100000" },
    runs: { type: "string", default: "15" },
    watchers: { type: "string", default: "1000" },
    filters: { type: "string", default: "10" },
    namespaces: { type: "string" },
    changes: { type: "string", default: "1000" },
    stalled: { type: "string", default: "50" },
    simulated: { type: "boolean", default: false },
  },
});
const DEFAULT_POSTGRES = "postgres://postgres@127.0.0.1:5432/postgres";
const print = (line: string) => console.log(line);

function planSize() {
  const { profile, waiting, nodes = "10000", clusters, asks, queues, rounds } = values;
  const fleet = { gangs: Number(waiting), nodes: Number(nodes), clusters: Number(clusters), asks: Number(asks) };
  return {
    ...fleet,
    queues: Number(queues),
    rounds: Number(rounds),
    profile,
    levels: values.levels,
    wishes: values.wishes,
  };
}

async function run(name: string | undefined): Promise<void> {
  if (values.help || name === undefined) {
    process.stdout.write(HELP);
    return;
  }
  if (name === "submit") {
    const { profile, database = null, postgres = null } = values;
    const { finished = postgres === null ? "20000" : "1000000" } = values;
    const numbers = { seconds: Number(values.seconds), finished: Number(finished) };
    const jobs = { replicas: Number(values.replicas ?? SMALL.replicas), distinct: values.distinct };
    await benchSubmit({ ...numbers, profile, database, postgres, jobs }, print);
  } else if (name === "tokens") {
    await benchTokens({ postgres: values.postgres ?? DEFAULT_POSTGRES, seconds: Number(values.seconds) }, print);
  } else if (name === "admit") {
    const { postgres = null, profile } = values;
    const { singles, gangs = "200", nodes = "32" } = values;
    const numbers = { singles: Number(singles), gangs: Number(gangs), nodes: Number(nodes) };
    for (const clusters of admitClusters()) await benchAdmit({ ...numbers, clusters, postgres, profile }, print);
  } else if (name === "record") {
    const { postgres = DEFAULT_POSTGRES, gangs = "1200", callers = "8" } = values;
    const times = { callers: Number(callers), seconds: Number(values.seconds) };
    const numbers = { ...times, gangs: Number(gangs), batch: Number(values.batch) };
    await benchRecord({ ...numbers, postgres }, print);
  } else if (name === "gang") {
    const { simulated, profile } = values;
    const numbers = { replicas: Number(values.replicas ?? 1000), finished: Number(values.finished ?? 10_000) };
    const [kubeconfig = null] = values.kubeconfig;
    await benchGang({ ...numbers, kubeconfig, simulated, idleSeconds: Number(values.seconds), profile }, print);
  } else if (name === "cost") {
    await benchCost({ jobs: Number(values.singles) }, print);
  } else if (name === "plan") {
    const { postgres } = values;
    if (postgres !== undefined) await benchPlanDatabase({ ...planSize(), postgres }, print);
    else await (values.policies ? benchPolicies : benchPlan)(planSize(), print);
  } else if (name === "pack") {
    if (!benchPack(packSettings(), print)) process.exitCode = 1;
  } else if (name === "fair") {
    const minRuntimeMs = Number(values["min-runtime"]) * 1000;
    if (!benchFair({ dir: values.loads ?? null, minRuntimeMs }, print)) process.exitCode = 1;
  } else if (name === "watch") {
    const { watchers, filters, namespaces = filters, changes, stalled, seconds, postgres = null, profile } = values;
    const readers = { watchers: Number(watchers), filters: Number(filters), stalled: Number(stalled) };
    const load = { namespaces: Number(namespaces), perSecond: Number(changes), seconds: Number(seconds) };
    await benchWatch({ ...readers, ...load, postgres, profile }, print);
  } else if (name === "start") {
    const { runs, seconds, postgres = DEFAULT_POSTGRES, finished = "100000", running } = values;
    const numbers = { runs: Number(runs), seconds: Number(seconds), finished: Number(finished) };
    await benchStart({ ...numbers, running: Number(running), postgres }, print);
  } else if (name === "scale") {
    const { runs, postgres = DEFAULT_POSTGRES, finished = "1000000", live, seconds } = values;
    const numbers = { runs: Number(runs), finished: Number(finished), live: Number(live), seconds: Number(seconds) };
    await benchScale({ ...numbers, postgres }, print);
  } else if (name === "processes") {
    const { callers = "64", seconds, postgres = DEFAULT_POSTGRES } = values;
    await benchProcesses({ postgres, seconds: Number(seconds), callers: Number(callers) }, print);
  } else if (name === "flood") {
    const { callers = "200", seconds, postgres = null } = values;
    await benchFlood({ postgres, seconds: Number(seconds), callers: Number(callers), ...floodLimits() }, print);
  } else if (name === "auth") {
    const { callers = "16", calls, turns, postgres = DEFAULT_POSTGRES } = values;
    const numbers = { callers: Number(callers), calls: Number(calls), turns: Number(turns) };
    await benchAuth({ postgres, ...numbers }, print);
  } else if (name === "cli") {
    await benchCli({ runs: Number(values.runs) }, print);
  } else {
    console.error(`there is no bench ${name}\n\n${HELP}`);
    process.exitCode = 2;
  }
}

function packSettings(): PackBench {
  const { trace: dir, seeds, gangs = "1000", churn, racks } = values;
  if (dir === undefined) throw new Error("give --trace, a folder with the nodes and tasks of a cluster");
  return { dir, seeds: Number(seeds), gangs: Number(gangs), churn, racks };
}

/** The limits with which a flood is measured. */
function floodLimits(): { readonly limits?: "default" | "no" } {
  const { limits } = values;
  if (limits === undefined) return {};
  if (limits === "default" || limits === "no") return { limits };
  throw new Error("--limits must be default or no");
}

/** The clusters of each run of the bench of admissions. */
function admitClusters(): readonly ClusterSource[] {
  const { kubeconfig, planes, postgres, simulated } = values;
  if (kubeconfig.length > 0) return [{ kind: "files", files: kubeconfig }];
  if (planes !== undefined) return [{ kind: "planes", count: Number(planes) }];
  const real = postgres !== undefined && !simulated;
  return real ? [1, 2].map((count) => ({ kind: "planes", count })) : [{ kind: "simulated", count: 2 }];
}

try {
  await run(positionals[0]);
} catch (error) {
  // A process that still waits for something must end too.
  console.error(`the bench failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
