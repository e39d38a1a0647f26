/** What it costs that a service knows its callers and judges their calls, beside the same calls without that. */
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { GangwayClient } from "../../src/cli/rpc/client.ts";
import { AccessService } from "../../src/gen/gangway/v1/access_service_pb.ts";
import { JobService } from "../../src/gen/gangway/v1/job_service_pb.ts";
import { ResourceManager } from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { Certificates } from "../support/certificates.ts";
import type { MainProcess } from "../support/main-process.ts";
import { processCpuMs } from "./cpu-time.ts";
import {
  knownClient,
  makePlaces,
  POOL,
  type Stores,
  startIssuer,
  startKnown,
  startStores,
  suspendedJob,
} from "./known-service.ts";
import { callRate } from "./measure.ts";

export type AuthBench = {
  readonly postgres: string;
  /** How long each turn of each caller is measured. */
  readonly seconds: number;
  readonly callers: number;
  /** Omitted: 10. */
  readonly turns?: number;
};

/** Limits that no call reaches, so that calls are counted and none is refused. */
const HIGH = { callsPerSecond: 1_000_000, burst: 1_000_000, callsInFlight: 1_000_000 };
const TENANT = "tenant";
const ROBOT = "bench";
const HOUR_MS = 3_600_000;

/** A caller, and the one beside which it is measured: it makes the same calls to a service that knows nobody. */
type Known = { readonly name: string; readonly known: Measured; readonly floor: Measured };
type Measured = { readonly service: MainProcess; readonly client: GangwayClient };

/** Returns for each method and kind of calls the CPU time of a call in the service, as a ratio to that without. */
export async function benchAuth(
  bench: AuthBench,
  print: (line: string) => void,
): Promise<Readonly<Record<string, number>>> {
  await using parts = new AsyncDisposableStack();
  const ratios: Record<string, number> = {};
  const stores = await startStores(parts, bench.postgres);
  for (const { name, known, floor } of await startAll(parts, stores)) {
    for (const [load, call] of Object.entries(LOADS)) {
      const { knownMs, floorMs, ratio } = await measure({ known, floor }, { ...bench, load: `${name} ${load}`, call });
      ratios[`${name}, ${load}`] = ratio;
      const text = `CPU of a call ${knownMs.toFixed(3)} ms, without ${floorMs.toFixed(3)} ms`;
      print(`${name.padEnd(12)} ${load.padEnd(9)} ${text}; ratio ${ratio.toFixed(3)}`);
    }
  }
  return ratios;
}

/** Services on one database. Those with TLS are beside one with TLS, because only the certificate is to be measured. */
async function startAll(parts: AsyncDisposableStack, stores: Stores): Promise<readonly Known[]> {
  const issuer = await startIssuer(parts);
  const certificates = new Certificates();
  parts.defer(() => certificates.remove());
  const { certFile, keyFile } = certificates.sign("client", "DNS:client.example");
  const subjects = [`login:${TENANT}`, `robot:${ROBOT}`, "dns:client.example"];
  const common = {
    stores,
    tenants: subjects.map((subject) => ({ subject, namespace: TENANT })),
    limits: { defaults: HIGH },
  };
  const start = (of: Pick<Parameters<typeof startKnown>[1], "issuer" | "tls">) =>
    startKnown(parts, { ...common, ...of });
  const open = await start({ issuer: null });
  const tokens = await start({ issuer: issuer.url });
  const tlsOnly = await start({ issuer: null, tls: { certificates, asks: false } });
  const asking = await start({ issuer: null, tls: { certificates, asks: true } });
  const root = knownClient(parts, tokens, { token: await issuer.token("root") });
  await makePlaces(root, [TENANT]);
  await root.call(JobService.method.createJob, suspendedJob(TENANT, SHOWN));
  const { secret } = await root.call(AccessService.method.createRobotToken, {
    name: ROBOT,
    ttl: durationFromMs(24 * HOUR_MS),
  });
  const ca = certificates.read(certificates.caFile);
  const own = { cert: certificates.read(certFile), key: certificates.read(keyFile) };
  const client = (service: MainProcess, shown?: Parameters<typeof knownClient>[2]) => ({
    service,
    client: knownClient(parts, service, shown),
  });
  const floor = client(open);
  return [
    { name: "OIDC", known: client(tokens, { token: await issuer.token(TENANT) }), floor },
    { name: "robot", known: client(tokens, { token: secret }), floor },
    {
      name: "certificate",
      known: client(asking, { tls: { ca, serverName: null, ...own } }),
      floor: client(tlsOnly, { tls: { ca, serverName: null, cert: null, key: null } }),
    },
  ];
}

const SHOWN = "shown";
type MakeCall = (client: GangwayClient, name: string) => Promise<unknown>;

const LOADS: Readonly<Record<string, MakeCall>> = {
  get: (client) => client.call(JobService.method.getJob, { namespace: TENANT, name: SHOWN }),
  submit: (client, name) => client.call(JobService.method.createJob, suspendedJob(TENANT, name)),
  allocate: async (client, name) => {
    const names = { resourceNamespace: POOL, allocationToken: name, namespace: TENANT };
    await client.call(ResourceManager.method.allocateResource, names);
    await client.call(ResourceManager.method.releaseResource, names);
  },
};

let made = 0;

/** Takes turns, so that whatever else the machine does meets both alike. Returns the medians of all turns. */
async function measure(
  of: { readonly known: Measured; readonly floor: Measured },
  { call, load, seconds, callers, turns = 10 }: AuthBench & { readonly load: string; readonly call: MakeCall },
): Promise<{ readonly knownMs: number; readonly floorMs: number; readonly ratio: number }> {
  const turn = async (which: "known" | "floor") => {
    const { service, client } = of[which];
    const cpuMs = () => processCpuMs(service.child.pid ?? 0) ?? Number.NaN;
    const beforeMs = cpuMs();
    let calls = 0;
    const counted = async () => {
      made += 1;
      await call(client, `${which}-${made}`);
      calls += 1;
    };
    await callRate(load, counted, { callers, seconds });
    // Of a turn that is shorter than a tick of the clock, nothing is known but that it took less.
    return Math.max(cpuMs() - beforeMs, CPU_TICK_MS) / calls;
  };
  // The first turn of each warms up.
  await turn("floor");
  await turn("known");
  const pairs: { readonly knownMs: number; readonly floorMs: number }[] = [];
  for (let at = 0; at < turns; at++) pairs.push({ floorMs: await turn("floor"), knownMs: await turn("known") });
  return {
    knownMs: median(pairs.map(({ knownMs }) => knownMs)),
    floorMs: median(pairs.map(({ floorMs }) => floorMs)),
    ratio: median(pairs.map(({ knownMs, floorMs }) => knownMs / floorMs)),
  };
}

const CPU_TICK_MS = 10;

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
