/** How fast callers get tokens and give them back, beside what such a call cannot do without. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { connect, type GangwayClient } from "../../src/cli/rpc/client.ts";
import {
  AllocateResourceRequestSchema,
  AllocateResourceResponseSchema,
  AllocationStatus,
  Durability,
  ReleaseResourceRequestSchema,
  ResourceManager,
} from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { WAIT_MS_MAX, within } from "../support/bounded.ts";
import { RedisServer } from "../support/redis-server.ts";
import { ServeChild } from "../support/serve-process.ts";
import { type Rate, reportLine } from "./measure.ts";
import { scratchServerDb } from "./scratch-db.ts";
import { type TimedRate, timedRate, timesText } from "./timed-rate.ts";
import { benchTokenCore } from "./token-core.ts";
import { FLOORS, type Floor } from "./token-floors.ts";

export type TokensBench = {
  /** The server of the database. Redis is the bench's own. */
  readonly postgres: string;
  readonly seconds: number;
  /** Omitted: 1, 64 and 512. */
  readonly callers?: readonly number[];
  /** The numbers of tokens that are held while the counters are measured. Omitted: 100, 1,000 and 100,000. */
  readonly held?: readonly number[];
  /** How often a token goes from a holder to the next in line. Omitted: 1,000. */
  readonly turns?: number;
};

const POOLS = {
  ledger: { name: "bench:ledger", durability: Durability.LEDGER, floor: "script and transaction" },
  redis: { name: "bench:redis", durability: Durability.REDIS, floor: "script" },
} as const satisfies Readonly<Record<string, { name: string; durability: Durability; floor: Floor }>>;
/** A pool of one token, which holders wait for. */
const LINE = "bench:line";
const QUOTA = 1_000_000n;

/** Measures calls for tokens over gRPC, the counters alone, and waiting lines. Returns the ratios by name. */
export async function benchTokens(
  { postgres, seconds, callers = [1, 64, 512], held = [100, 1_000, 100_000], turns = 1_000 }: TokensBench,
  print: (line: string) => void,
): Promise<Readonly<Record<string, number>>> {
  await using parts = new AsyncDisposableStack();
  const ratios: Record<string, number> = {};
  const report = (measured: Rate, floor: Rate) => {
    ratios[`${measured.name} / ${floor.name}`] = measured.perSecond / floor.perSecond;
    print(reportLine(measured, floor));
  };
  const { url } = await scratchServerDb(parts, postgres);
  const redis = await RedisServer.start();
  parts.defer(() => redis.stop());
  const service = await startService(parts, { url, redis: redis.url });
  const floor = await startFloor(parts, { url, redis: redis.url });
  for (const count of callers) {
    const load = { callers: count, seconds };
    const floors: Partial<Record<Floor, TimedRate>> = {};
    for (const name of Object.keys(FLOORS) as Floor[]) {
      floors[name] = await timedRate(name, (call) => twice(() => floor(name, `${call}`)), load);
    }
    for (const [durability, pool] of Object.entries(POOLS)) {
      const pair = (call: number) => takeAndGive(service.send, pool.name, `${count}-${call}`);
      const measured = await timedRate(`${durability}, ${count} callers`, pair, load);
      for (const name of ["echo", pool.floor] as const) report(measured, floors[name] as TimedRate);
      print(`  ${timesText(measured.timesMs)}; floor ${timesText((floors[pool.floor] as TimedRate).timesMs)}`);
    }
  }
  await benchTokenCore({ redis: redis.url, seconds, held }, report);
  const handed = await handOver(service.client, service.send, turns);
  const single = await timedRate("", (call) => floor("script and transaction", `${call}`), { callers: 1, seconds });
  print(
    `a release until the next holder's grant: ${timesText(handed)}; floor of one call ${timesText(single.timesMs)}`,
  );
  return ratios;
}

type Servers = { readonly url: string; readonly redis: string };
type Send = (path: string, message: Uint8Array) => Promise<Uint8Array>;

async function startService(parts: AsyncDisposableStack, { url, redis }: Servers) {
  const child = new ServeChild("api", { DATABASE_URL: url, REDIS_URL: redis, GANGWAY_CREDENTIALS_KEY: "" });
  parts.defer(async () => {
    await child.end("SIGTERM");
  });
  await child.serving();
  const closing = new AbortController();
  const client = connect(child.address ?? "", closing.signal);
  parts.defer(() => {
    closing.abort();
    client.close();
  });
  const { method } = ResourceManager;
  for (const { name, durability } of Object.values(POOLS)) {
    const domain = name.replace(":", "-");
    await client.call(method.registerResourceQuota, { resourceNamespace: name, quota: QUOTA, durability, domain });
  }
  await client.call(method.registerResourceQuota, { resourceNamespace: LINE, quota: 1n });
  return { client, send: sender(parts, child.address ?? "") };
}

async function startFloor(parts: AsyncDisposableStack, { url, redis }: Servers) {
  const child = fork(join(import.meta.dirname, "tokens-floor.ts"), [url, redis]);
  parts.defer(async () => {
    child.disconnect();
    await once(child, "exit");
  });
  const [address] = (await within("the floor's server", WAIT_MS_MAX, once(child, "message"))) as [string];
  const send = sender(parts, address);
  return (floor: Floor, token: string) => send(FLOORS[floor], Buffer.from(token));
}

/** Calls as bytes over one connection, the same way for what is measured and for its floor. */
function sender(parts: AsyncDisposableStack, address: string): Send {
  const client = new Client(address, credentials.createInsecure());
  parts.defer(() => client.close());
  const pass = (bytes: Buffer) => bytes;
  return (path, message) =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(path, pass, pass, Buffer.from(message), (error, value) => {
        if (error === null && value !== undefined) resolve(value);
        else reject(error ?? new Error(`${path} answered nothing`));
      });
    });
}

async function twice(run: () => Promise<unknown>): Promise<void> {
  await run();
  await run();
}

const ALLOCATE = `/${ResourceManager.typeName}/AllocateResource`;
const RELEASE = `/${ResourceManager.typeName}/ReleaseResource`;

async function takeAndGive(send: Send, pool: string, token: string): Promise<void> {
  const names = { resourceNamespace: pool, allocationToken: token };
  const answer = await send(
    ALLOCATE,
    toBinary(AllocateResourceRequestSchema, create(AllocateResourceRequestSchema, names)),
  );
  const { status } = fromBinary(AllocateResourceResponseSchema, answer);
  if (status !== AllocationStatus.GRANTED) throw new Error(`the service answered status ${status}`);
  await give(send, pool, token);
}

async function give(send: Send, pool: string, token: string): Promise<void> {
  const names = { resourceNamespace: pool, allocationToken: token };
  await send(RELEASE, toBinary(ReleaseResourceRequestSchema, create(ReleaseResourceRequestSchema, names)));
}

/** One token that goes from each holder to the next in line. Returns the times from a release to the next grant. */
async function handOver(client: GangwayClient, send: Send, turns: number): Promise<Float64Array> {
  const timesMs: number[] = [];
  const { signal } = new AbortController();
  let grantedMs = 0;
  const stand = (turn: number): { readonly granted: Promise<void>; readonly stands: Promise<unknown> } => {
    const request = { resourceNamespace: LINE, allocationToken: `turn-${turn}` };
    const updates = client.stream(ResourceManager.method.waitForResource, request, signal)[Symbol.asyncIterator]();
    const first = updates.next();
    const granted = first.then(async ({ value }) => {
      let update = value?.update;
      while (update?.case !== "granted") {
        const { value: next, done } = await updates.next();
        if (done === true) throw new Error(`turn ${turn} was not granted`);
        update = next.update;
      }
      grantedMs = performance.now();
    });
    return { granted, stands: first };
  };
  await stand(0).granted;
  for (let turn = 1; turn <= turns; turn++) {
    const next = stand(turn);
    await next.stands;
    const releasedMs = performance.now();
    await Promise.all([give(send, LINE, `turn-${turn - 1}`), next.granted]);
    timesMs.push(grantedMs - releasedMs);
  }
  await give(send, LINE, `turn-${turns}`);
  return Float64Array.from(timesMs).sort();
}
