import assert from "node:assert/strict";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { openPostgres } from "../../src/adapters/store/db/postgres.ts";
import { connect, type GangwayClient } from "../../src/cli/rpc/client.ts";
import { ResourceManager } from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { waitUntil } from "../support/bounded.ts";
import { OtherVersion } from "../support/other-version.ts";
import { createDatabase, postgresOptions } from "../support/postgres.ts";
import { seededRandom } from "../support/random.ts";
import { ServeChild } from "../support/serve-process.ts";
import { Caller, isPassing, type Tally } from "./conserve-caller.ts";
import { ledgerSums, liveRows, Sampler } from "./conserve-ledger.ts";
import { type RedisUnderTest, startRedis, type Topology } from "./conserve-servers.ts";

const API = ResourceManager.method;
const POOLS = ["conserve/a", "conserve/b"];
/** Streams of one connection share its flow control. Several connections keep servers busy. */
const CONNECTIONS_PER_SERVER = 4;
const LIMIT_CHANGES = 6;

export type Combination = {
  readonly servers: number;
  readonly quota: number;
  readonly topology: Topology;
  readonly callers: number;
  readonly callsEach: number;
  readonly seed: number;
  /** Every second server runs another version of the program. */
  readonly isUpgraded?: boolean;
};

export type Scene = {
  readonly db: Db;
  readonly redis: RedisUnderTest;
  readonly children: readonly ServeChild[];
  readonly client: () => GangwayClient;
  readonly setQuota: (pool: string, quota: number) => Promise<void>;
  /** Resolves once this many more tokens were granted and released, which shows that the domain is open. */
  readonly more: (tokens: number) => Promise<void>;
};

/** The callers' counts, the `looks` at the ledger, and those that found a pool `above` a lowered limit. */
export type Outcome = Tally & { readonly looks: number; readonly above: number };

/** A fault that the test causes once callers have made about half of their calls. */
export type Strike = (scene: Scene) => Promise<unknown>;

/**
 * Runs API processes under many callers, on a database and a Redis of their own. Changes limits all the time, and
 * causes a fault in the middle. No look at the ledger finds an exceeded limit. At the end counters, ledger and callers
 * agree on every token.
 */
export async function conserve(
  server: string,
  of: Combination,
  strike: Strike,
): Promise<Tally & { looks: number; above: number }> {
  await using parts = new AsyncDisposableStack();
  const tally: Tally = { calls: 0, granted: 0, refused: 0, released: 0, unavailable: 0 };
  const scene = await arrange(server, { ...of, tally }, parts);
  const random = seededRandom(of.seed);
  for (const pool of POOLS) await scene.setQuota(pool, of.quota);
  const callers = Array.from(
    { length: of.callers },
    (_, at) => new Caller({ holder: `caller-${at}`, pools: POOLS, client: scene.client, random, tally }),
  );
  const sampler = parts.use(new Sampler(scene.db));
  const calls = of.callers * of.callsEach;
  let struck = false;
  const striking = reach(tally, calls / 2)
    .then(() => strike(scene))
    .finally(() => {
      struck = true;
    });
  const acting = Promise.all(callers.map((caller) => caller.act(of.callsEach, () => struck)));
  await Promise.all([acting, striking, changeLimits(scene, { quota: of.quota, tally, calls })]);
  await Promise.all(callers.map((caller) => caller.settle()));
  await agree(scene, callers);
  await sampler.stop();
  return { ...tally, looks: sampler.looks, above: sampler.above };
}

async function arrange(
  server: string,
  of: Combination & { readonly tally: Tally },
  parts: AsyncDisposableStack,
): Promise<Scene> {
  const { url, drop } = await createDatabase(server);
  parts.defer(drop);
  const db = await openPostgres(postgresOptions(url));
  parts.defer(() => db.close());
  const redis = await startRedis(of.topology);
  parts.defer(() => redis.stop());
  const env = {
    DATABASE_URL: url,
    ...redis.env,
    NAMESPACES: "open",
    GANGWAY_LEASE_SECONDS: "3",
    GANGWAY_LOG_LEVEL: "warn",
  };
  const other = of.isUpgraded ? new OtherVersion() : null;
  parts.defer(() => other?.remove());
  const mainOf = (at: number) => (at % 2 === 1 ? other?.main : undefined);
  const children = Array.from({ length: of.servers }, (_, at) => new ServeChild("api", env, mainOf(at)));
  parts.defer(async () => {
    await Promise.all(children.map((child) => child.end("SIGKILL")));
  });
  await Promise.all(children.map((child) => child.serving()));
  const never = new AbortController();
  const clients = children.flatMap(({ address }) =>
    Array.from({ length: CONNECTIONS_PER_SERVER }, () => connect(address ?? "", never.signal)),
  );
  parts.defer(() => {
    for (const each of clients) each.close();
  });
  let turn = 0;
  const client = () => {
    turn += 1;
    return clients[turn % clients.length] as GangwayClient;
  };
  const setQuota = async (resourceNamespace: string, quota: number) => {
    const request = { resourceNamespace, quota: BigInt(quota) };
    await waitUntil(`a server sets the quota of ${resourceNamespace}`, () =>
      client()
        .call(API.registerResourceQuota, request)
        .then(() => true, rethrowUnlessPassing),
    );
  };
  const more = async (tokens: number) => {
    const enough = { granted: of.tally.granted + tokens, released: of.tally.released + tokens };
    const isReached = () => of.tally.granted >= enough.granted && of.tally.released >= enough.released;
    await waitUntil(`${tokens} more tokens are granted and released`, isReached);
  };
  return { db, redis, children, client, setQuota, more };
}

/** Returns false if the call may be repeated; throws any other error. */
function rethrowUnlessPassing(error: unknown): false {
  if (!isPassing(error)) throw error;
  return false;
}

/** Lowers and raises the limit of the first pool while calls are made. At the end the limit is as at the start. */
async function changeLimits(
  { setQuota }: Scene,
  of: { readonly quota: number; readonly tally: Tally; readonly calls: number },
): Promise<void> {
  const pool = POOLS[0] as string;
  for (let change = 1; change <= LIMIT_CHANGES; change += 1) {
    await reach(of.tally, (of.calls * change) / (LIMIT_CHANGES + 1));
    await setQuota(pool, change % 2 === 1 ? Math.floor(of.quota / 2) : of.quota);
  }
}

/** Resolves once this many calls were made. */
async function reach(tally: Tally, calls: number): Promise<void> {
  await waitUntil(`${calls} calls are made`, () => tally.calls >= calls);
}

/** Checks that the ledger's live rows, its sums, the counters and the callers' tokens agree. */
async function agree(scene: Scene, callers: readonly Caller[]): Promise<void> {
  const granted = callers
    .flatMap(({ holder, held }) =>
      held.map(({ pool, token, amount, fence }) => ({ pool, token, holder, amount, fence: `${fence}` })),
    )
    .sort(byToken);
  assert.deepEqual(
    [...(await liveRows(scene.db))].sort(byToken),
    granted,
    "the ledger has exactly the tokens that callers hold",
  );
  for (const { pool, kept, counted } of await ledgerSums(scene.db)) assert.equal(kept, counted, pool);
  let found: readonly unknown[] = [];
  await waitUntil("counters and ledger agree", async () => {
    found = await scene
      .client()
      .call(API.reconcileQuota, { dryRun: true })
      .then(
        ({ differences }) => differences,
        (error) => [rethrowUnlessPassing(error), String(error)],
      );
    return found.length === 0;
  }).catch((error: Error) => {
    error.message += ` ${JSON.stringify(found, (_, value) => (typeof value === "bigint" ? `${value}` : value))}`;
    throw error;
  });
}

function byToken(
  a: { readonly pool: string; readonly token: string },
  b: { readonly pool: string; readonly token: string },
): number {
  const [one, other] = [`${a.pool} ${a.token}`, `${b.pool} ${b.token}`];
  return one < other ? -1 : Number(one > other);
}
