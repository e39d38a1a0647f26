/** How fast callers get tokens and give them back, beside what such a call cannot do without. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { connect, type GangwayClient } from "../../../src/cli/rpc/client.ts";
import {
  AllocateResourceRequestSchema,
  AllocateResourceResponseSchema,
  AllocationStatus,
  BatchAllocateResourcesRequestSchema,
  BatchAllocateResourcesResponseSchema,
  BatchReleaseResourcesRequestSchema,
  Durability,
  ReleaseResourceRequestSchema,
  ResourceManager,
} from "../../../src/gen/gangway/v1/resource_manager_pb.ts";
import { WAIT_MS_MAX, within } from "../../support/bounded.ts";
import { RedisServer } from "../../support/redis-server.ts";
import { ServeChild } from "../../support/serve-process.ts";
import { type Rate, reportLine } from "./measure.ts";
import { scratchServerDb } from "./scratch-db.ts";
import { timedRate, timesText } from "./timed-rate.ts";
import { benchTokenCore } from "./token-core.ts";
import { FLOORS, FLOORS_DO, type Floor, LINES } from "./token-floors.ts";

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

type Pool = {
  readonly name: string;
  readonly durability: Durability;
  /** What one call cannot do without. */
  readonly floor: Floor;
  /** What one call for many tokens cannot do without. */
  readonly floorOfMany: Floor;
};
const POOLS: Readonly<Record<string, Pool>> = {
  ledger: {
    name: "bench:ledger",
    durability: Durability.LEDGER,
    floor: "script and transaction",
    floorOfMany: "scripts and rows",
  },
  redis: { name: "bench:redis", durability: Durability.REDIS, floor: "script", floorOfMany: "scripts" },
};
/** How many callers at a time take and give back many tokens a call. */
const CALLERS_OF_MANY = [1, 8];
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
  const { url, db } = await scratchServerDb(parts, postgres);
  const redis = await RedisServer.start();
  parts.defer(() => redis.stop());
  const service = await startService(parts, { url, redis: redis.url });
  const floor = await startFloor(parts, { url, redis: redis.url });
  for (const [name, does] of Object.entries(FLOORS_DO)) print(`floor "${name}": a call ${does}`);
  print("a pair of calls takes tokens and gives them back; its floor is called twice");
  const measure = async (name: string, pair: (call: number) => Promise<void>, of: Measured) => {
    const { send = (call) => Buffer.from(`${call}`), floors, callers: count } = of;
    const load = { callers: count, seconds };
    const [bare, least] = await inTurn(floors, (one) =>
      timedRate(one, (call) => twice(() => floor(one, send(call))), load),
    );
    const measured = await timedRate(name, pair, load);
    for (const one of [bare, least]) if (one !== undefined) report(measured, one);
    print(`  ${timesText(measured.timesMs)}; floor ${timesText((least ?? measured).timesMs)}`);
  };
  for (const { name } of Object.values(POOLS)) {
    const warmUp = (call: number) => takeAndGive(service.send, name, `warm-up-${call}`);
    await timedRate("warm-up", warmUp, { callers: 8, seconds });
  }
  // As the server of an installation that runs for a while has done by itself.
  await db.query("analyze");
  for (const count of callers) {
    for (const [durability, pool] of Object.entries(POOLS)) {
      const pair = (call: number) => takeAndGive(service.send, pool.name, `${count}-${call}`);
      await measure(`${durability}, ${count} callers`, pair, { floors: ["echo", pool.floor], callers: count });
    }
  }
  for (const count of CALLERS_OF_MANY) {
    for (const [durability, { name: pool, floorOfMany }] of Object.entries(POOLS)) {
      const pair = (call: number) => takeAndGiveMany(service.send, pool, `${count}-${call}`);
      const send = (call: number) => takeMany(pool, `${count}-${call}`);
      const of = { floors: ["echo", floorOfMany], callers: count, send } as const;
      await measure(`${durability}, ${LINES} a call, ${count} callers`, pair, of);
    }
  }
  await benchTokenCore({ redis: redis.url, seconds, held }, report);
  const handed = await handOver(service.client, service.send, turns);
  const one = (call: number) => floor("script and transaction", Buffer.from(`${call}`));
  const single = await timedRate("", one, { callers: 1, seconds });
  print(
    `a release until the next holder's grant: ${timesText(handed)}; floor of one call ${timesText(single.timesMs)}`,
  );
  return ratios;
}

type Measured = {
  readonly floors: readonly [Floor, Floor];
  readonly callers: number;
  /** The bytes that a call of the floor sends. Omitted: the number of the call. */
  readonly send?: (call: number) => Uint8Array;
};

async function inTurn<T, Result>(items: readonly T[], run: (item: T) => Promise<Result>): Promise<readonly Result[]> {
  const results: Result[] = [];
  for (const item of items) results.push(await run(item));
  return results;
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
  return (floor: Floor, message: Uint8Array) => send(FLOORS[floor], message);
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

function takeMany(pool: string, token: string): Uint8Array {
  const lines = Array.from({ length: LINES }, (_, at) => ({
    resourceNamespace: pool,
    allocationToken: `${token}-${at}`,
  }));
  return toBinary(BatchAllocateResourcesRequestSchema, create(BatchAllocateResourcesRequestSchema, { lines }));
}

/** Takes many tokens in one call, and gives them back in one call. */
async function takeAndGiveMany(send: Send, pool: string, token: string): Promise<void> {
  const answer = await send(`/${ResourceManager.typeName}/BatchAllocateResources`, takeMany(pool, token));
  const { status } = fromBinary(BatchAllocateResourcesResponseSchema, answer);
  if (status !== AllocationStatus.GRANTED) throw new Error(`the service answered status ${status}`);
  const lines = Array.from({ length: LINES }, (_, at) => ({
    resourceNamespace: pool,
    allocationToken: `${token}-${at}`,
  }));
  const request = create(BatchReleaseResourcesRequestSchema, { lines });
  await send(
    `/${ResourceManager.typeName}/BatchReleaseResources`,
    toBinary(BatchReleaseResourcesRequestSchema, request),
  );
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
