/** `npm run fuzz -- N`: calls every RPC with requests that nobody meant to send. */
import { parseArgs } from "node:util";
import { type CostOptions, fuzzCost } from "./cost/cost.ts";
import { fuzz } from "./fuzz.ts";
import { methodsNamed } from "./plan.ts";
import { replay } from "./replay.ts";
import { fuzzTenants } from "./tenant/fuzz.ts";

const HELP = `npm run fuzz -- [N] [options]

Sends N calls (default 10,000) to a service in a process of its own: requests made from the descriptors of every RPC,
good requests with parts changed, raw bytes, and misused HTTP/2. Ends with status 1 if a call is answered with INTERNAL,
UNKNOWN or UNAVAILABLE, if a call that failed has changed a table, if the service stalls for more than a second, logs an
error, ends, or keeps memory, sockets, connections or rows.

With --tenant, the callers are a submitter, a viewer and an operator of one namespace, and name what another tenant has.
Ends with status 1 if a call changes something of the other tenant, if an answer tells of it, or if an answer about a
thing of the other tenant differs from that about a thing that does not exist.

  --http           calls over HTTP: in JSON, damaged JSON, the binary form and gRPC-Web, by the bytes of each request
  --tenant         as above
  --digest-every N with --tenant, compares the other tenant's rows after each N calls (default: 20)
  --seed S         the same calls as another run with this seed (default: the time)
  --postgres URL   runs the service on a new database of this PostgreSQL server (default: embedded)
  --redis URL      the service counts tokens in this Redis
  --only NAME      calls only this RPC or service, such as JobService.CreateJob or JobService; may be repeated
  --seconds S      ends after this time, also if there are calls left
  --counts         prints how often each RPC was answered with each status
  --replay WHICH   sends the calls of a failure's file again, or the calls of a seed up to one: SEED:N
  --help           this text

npm run fuzz -- cost [N] [options]

Sends N grown requests (default 1,000): each list, map, text and document of each RPC, and each member and annotation
of templates, grows to its limit and beyond, alone and by pairs. Ends with status 1 if a call, or a worker's step of the
job that it makes, costs more CPU time or memory than its size allows, grows faster than its size, or keeps a second
caller waiting. Takes --seed, --postgres, --redis and --only, and:

  --from K         begins with the input of this number (default: 0)
  --bytes-max B    how large inputs grow (default: 4 MiB)
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: "boolean", default: false },
    http: { type: "boolean", default: false },
    tenant: { type: "boolean", default: false },
    "digest-every": { type: "string", default: "20" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    postgres: { type: "string" },
    redis: { type: "string" },
    only: { type: "string", multiple: true, default: [] },
    seconds: { type: "string" },
    counts: { type: "boolean", default: false },
    replay: { type: "string" },
    from: { type: "string", default: "0" },
    "bytes-max": { type: "string", default: String(4 * 2 ** 20) },
  },
});
const print = (line: string) => console.log(line);

async function main(): Promise<number> {
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const parts = { postgres: values.postgres ?? null, redis: values.redis ?? null };
  const methods = methodsNamed(values.only);
  if (positionals[0] === "cost") return cost({ ...parts, methods });
  if (values.replay !== undefined) return replay(values.replay, { ...parts, http: values.http, methods, print });
  const seed = Number(values.seed);
  const calls = Number(positionals[0] ?? "10000");
  const digestEvery = Number(values["digest-every"]);
  if (!Number.isSafeInteger(seed) || !Number.isSafeInteger(calls))
    throw new Error("N and --seed must be whole numbers");
  if (!Number.isSafeInteger(digestEvery) || digestEvery < 1)
    throw new Error("--digest-every must be a whole number of at least 1");
  print(`seed ${seed}`);
  const secondsMax = values.seconds === undefined ? {} : { secondsMax: Number(values.seconds) };
  const options = { ...parts, ...secondsMax, http: values.http, calls, seed, methods, print };
  const report = await (values.tenant ? fuzzTenants({ ...options, digestEvery }) : fuzz(options));
  const rate = Math.round(report.calls / report.seconds);
  printCounts(report.counts);
  const problems = report.findings.length + report.stalls.length;
  const found = problems === 0 ? "nothing found" : `${problems} found`;
  print(`${report.calls} calls in ${Math.round(report.seconds)} s (${rate}/s): ${found}`);
  return problems === 0 ? 0 : 1;
}

function printCounts(counts: ReadonlyMap<string, number>): void {
  if (values.counts) for (const [key, count] of [...counts].sort()) print(`${String(count).padStart(7)} ${key}`);
}

async function cost(parts: Pick<CostOptions, "postgres" | "redis" | "methods">): Promise<number> {
  const [inputs, seed, from, bytesMax] = [positionals[1] ?? "1000", values.seed, values.from, values["bytes-max"]].map(
    Number,
  ) as [number, number, number, number];
  if (![inputs, seed, from, bytesMax].every(Number.isSafeInteger))
    throw new Error("N, --seed, --from and --bytes-max must be whole numbers");
  print(`seed ${seed}`);
  const report = await fuzzCost({ ...parts, inputs, seed, from, bytesMin: 2_000, bytesMax, print });
  printCounts(report.counts);
  const found = report.findings.length === 0 ? "nothing found" : `${report.findings.length} found`;
  const gone = report.gone === 0 ? "" : `; ${report.gone} did not repeat`;
  print(`${report.inputs} inputs and ${report.steps} jobs in ${Math.round(report.seconds)} s: ${found}${gone}`);
  return report.findings.length === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  // A connection or a child that is still open must not keep the process alive.
  console.error(`the fuzz failed: ${error instanceof Error ? error.stack : String(error)}`);
  process.exit(1);
}
