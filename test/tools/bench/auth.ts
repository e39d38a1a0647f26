/** What it costs that a service knows its callers and judges their calls, beside the same calls without that. */
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { GangwayClient } from "../../../src/cli/rpc/client.ts";
import { AccessService } from "../../../src/gen/gangway/v1/access_service_pb.ts";
import { JobService } from "../../../src/gen/gangway/v1/job_service_pb.ts";
import { ResourceManager } from "../../../src/gen/gangway/v1/resource_manager_pb.ts";
import { Certificates } from "../../support/certificates.ts";
import type { MainProcess } from "../../support/main-process.ts";
import { threadsCpuMs } from "./cpu-time.ts";
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

export type AuthBench = {
  readonly postgres: string;
  readonly callers: number;
  /** Of each turn. */
  readonly calls: number;
  /** Pairs of turns. */
  readonly turns: number;
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
      const pairs = await measure({ known, floor }, { ...bench, call });
      const quotients = pairs.map(({ knownMs, floorMs }) => knownMs / floorMs);
      const ratio = median(quotients);
      ratios[`${name}, ${load}`] = ratio;
      const [knownMs, floorMs] = [pairs.map((pair) => pair.knownMs), pairs.map((pair) => pair.floorMs)].map(median);
      const text = `CPU of a call ${knownMs?.toFixed(3)} ms, without ${floorMs?.toFixed(3)} ms`;
      print(`${name.padEnd(12)} ${load.padEnd(9)} ${text}; ratio ${ratio.toFixed(3)} (${interval(quotients)})`);
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

type Pair = { readonly knownMs: number; readonly floorMs: number };
type Measure = { readonly call: MakeCall; readonly callers: number; readonly calls: number; readonly turns: number };

/**
 * Takes turns of the same number of calls, and begins each pair of turns with the other one, so that whatever else the
 * machine does meets both alike. Returns the CPU time of a call in each.
 */
async function measure(
  of: { readonly known: Measured; readonly floor: Measured },
  { call, callers, calls, turns }: Measure,
): Promise<readonly Pair[]> {
  const turn = async (which: "known" | "floor") => {
    const { service, client } = of[which];
    const cpuMs = () => threadsCpuMs(service.child.pid ?? 0);
    const beforeMs = cpuMs();
    let left = calls;
    const caller = async () => {
      while (left > 0) {
        left -= 1;
        made += 1;
        await call(client, `${which}-${made}`);
      }
    };
    await Promise.all(Array.from({ length: callers }, caller));
    return (cpuMs() - beforeMs) / calls;
  };
  for (let warm = 0; warm < Math.min(WARM_TURNS, turns); warm++) {
    await turn("floor");
    await turn("known");
  }
  const pairs: Pair[] = [];
  for (let at = 0; at < turns; at++) {
    const first = at % 2 === 0 ? "floor" : "known";
    const firstMs = await turn(first);
    const secondMs = await turn(first === "floor" ? "known" : "floor");
    pairs.push(first === "floor" ? { floorMs: firstMs, knownMs: secondMs } : { floorMs: secondMs, knownMs: firstMs });
  }
  return pairs;
}

/** The compiler has seen the code of a call by then. */
const WARM_TURNS = 8;

function sorted(values: readonly number[]): readonly number[] {
  return [...values].sort((a, b) => a - b);
}

function median(values: readonly number[]): number {
  return sorted(values)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** The ranks between which the median of endless turns lies in 19 of 20 runs. */
function interval(values: readonly number[]): string {
  const inOrder = sorted(values);
  const half = Math.ceil(0.98 * Math.sqrt(values.length));
  const middle = Math.floor(values.length / 2);
  const [low, high] = [inOrder[Math.max(middle - half, 0)], inOrder[Math.min(middle + half, values.length - 1)]];
  return `${low?.toFixed(3)} to ${high?.toFixed(3)}`;
}
