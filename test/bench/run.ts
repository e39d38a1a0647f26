/** `npm run bench -- NAME`: measures something and a floor in the same run, and prints their ratio. */
import { parseArgs } from "node:util";
import { benchAdmit } from "./admit.ts";
import type { ClusterSource } from "./bench-clusters.ts";
import { benchCli } from "./cli.ts";
import { benchCost } from "./cost.ts";
import { benchGang } from "./gang.ts";
import { benchPlan } from "./plan.ts";
import { benchPlanDatabase } from "./plan-database.ts";
import { benchTrace } from "./plan-trace.ts";
import { benchRecord } from "./record.ts";
import { benchSubmit } from "./submit.ts";

const HELP = `npm run bench -- NAME [options]

Every line has a measurement and a floor, both of the same machine and run. Compare ratios, not rates. A bench that
waits for 240 s without progress ends with status 1.

  submit   durable submits, one a call by 1, 64 and 256 callers, beside a bare grpc-js echo of messages as large;
           and batches of 1,000, beside bare inserts of rows as large in transactions of 200
             --seconds N       how long each is measured (default 5)
             --database WHERE  memory, or a folder's path (default: a temporary folder)
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
  gang     one gang of 1,000 replicas on a real API server with KWOK: from its submit until its last pod exists, beside
           a bare loop that creates the same pods there; writes per pod; and what 10,000 finished jobs cost an idle
           service
             --kubeconfig FILE  that cluster (default: a control plane of the bench's own, see npm run kube:build)
             --simulated        a simulated cluster instead
             --replicas N --finished N --seconds N  other numbers, and how long the idle service is watched
  cost     SQL statements, transactions and calls to Kubernetes of jobs of one pod, per job, from submission to end
             --singles N        other numbers of jobs that are submitted together (default 1,000)

  plan     the planner's state in memory, without input or output: a cold load and plan, and rounds after 1, 100 and
           10,000 changes, in CPU time of the planner's thread; beside a bare parse of the rows of the load
             --waiting N --nodes N --clusters N --asks N --queues N  (default 100000, 10000, 8, 3000, 1000)
             --rounds N         how many rounds are measured (default 200)
             --postgres URL     the whole way instead, from a database of the bench's own on this server, in the
                                planner's thread: its times, its memory, and blocks of the main event loop
             --trace DIR        places the tasks of a cluster's trace instead, and prints the part of GPUs that they get
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
    callers: { type: "string", default: "8" },
    batch: { type: "string", default: "256" },
    nodes: { type: "string" },
    waiting: { type: "string", default: "100000" },
    clusters: { type: "string", default: "8" },
    asks: { type: "string", default: "3000" },
    queues: { type: "string", default: "1000" },
    rounds: { type: "string", default: "200" },
    trace: { type: "string" },
    replicas: { type: "string", default: "1000" },
    finished: { type: "string", default: "10000" },
    runs: { type: "string", default: "15" },
    simulated: { type: "boolean", default: false },
  },
});
const DEFAULT_POSTGRES = "postgres://postgres@127.0.0.1:5432/postgres";
const print = (line: string) => console.log(line);

function planSize() {
  const { profile, waiting, nodes = "10000", clusters, asks, queues, rounds } = values;
  const fleet = { gangs: Number(waiting), nodes: Number(nodes), clusters: Number(clusters), asks: Number(asks) };
  return { ...fleet, queues: Number(queues), rounds: Number(rounds), profile };
}

async function run(name: string | undefined): Promise<void> {
  if (values.help || name === undefined) {
    process.stdout.write(HELP);
    return;
  }
  if (name === "submit") {
    const { profile, database } = values;
    await benchSubmit({ seconds: Number(values.seconds), profile, database: database ?? null }, print);
  } else if (name === "admit") {
    const { postgres = null, profile } = values;
    const { singles, gangs = "200", nodes = "32" } = values;
    const numbers = { singles: Number(singles), gangs: Number(gangs), nodes: Number(nodes) };
    for (const clusters of admitClusters()) await benchAdmit({ ...numbers, clusters, postgres, profile }, print);
  } else if (name === "record") {
    const { postgres = DEFAULT_POSTGRES, gangs = "1200", callers } = values;
    const times = { callers: Number(callers), seconds: Number(values.seconds) };
    const numbers = { ...times, gangs: Number(gangs), batch: Number(values.batch) };
    await benchRecord({ ...numbers, postgres }, print);
  } else if (name === "gang") {
    const { simulated, profile } = values;
    const numbers = { replicas: Number(values.replicas), finished: Number(values.finished) };
    const [kubeconfig = null] = values.kubeconfig;
    await benchGang({ ...numbers, kubeconfig, simulated, idleSeconds: Number(values.seconds), profile }, print);
  } else if (name === "cost") {
    await benchCost({ jobs: Number(values.singles) }, print);
  } else if (name === "plan") {
    const { trace, postgres } = values;
    if (trace !== undefined) benchTrace(trace, print);
    else if (postgres !== undefined) await benchPlanDatabase({ ...planSize(), postgres }, print);
    else await benchPlan(planSize(), print);
  } else if (name === "cli") {
    await benchCli({ runs: Number(values.runs) }, print);
  } else {
    console.error(`there is no bench ${name}\n\n${HELP}`);
    process.exitCode = 2;
  }
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
