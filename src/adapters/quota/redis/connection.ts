import { describeAddress, type Host, hostText, parseAddress, type RedisAddress } from "./address.ts";
import { RedisCluster } from "./cluster.ts";
import { RedisNode, RedisRefusedError } from "./node.ts";
import { endpointOptions, type Secrets, sentinelOptions, type Timing } from "./options.ts";
import type { Script } from "./scripts.ts";
import { Subscriptions } from "./subscriptions.ts";

export { RedisRefusedError };

export type ConnectionOptions = Timing &
  Secrets & {
    /** As `parseAddress` reads it: a server that stands alone, one that sentinels watch over, or a Redis Cluster. */
    readonly url: string;
    /** Hears why there is no connection; the next attempt comes by itself. */
    readonly onError: (error: Error) => void;
    /** Hears of each connection what could not be checked. */
    readonly onWarning: (message: string) => void;
  };

/** One of several that is away costs nothing as long as the others tell. */
const SENTINEL_PAUSES = { reconnectMsMin: 1_000, reconnectMsMax: 30_000 };

type Scripted = Pick<RedisNode, "run" | "close">;

/**
 * The way to Redis, however it is set up. A call goes to the server that owns its keys now, and is told the run of that very server; nothing
 * is queued, sent twice or redirected. A call whose answer is lost throws `UnavailableError`, and only its caller knows what to do.
 */
export class RedisConnection {
  readonly #servers: Scripted;
  readonly #subscriptions: Subscriptions;

  /** Hear of a new primary. */
  readonly #sentinels: readonly Subscriptions[];

  private constructor(servers: Scripted, subscriptions: Subscriptions, sentinels: readonly Subscriptions[]) {
    this.#servers = servers;
    this.#subscriptions = subscriptions;
    this.#sentinels = sentinels;
  }

  /** Throws `RedisRefusedError` for a Redis that must not be used, `UnavailableError` for one that cannot be reached. */
  static async open(options: ConnectionOptions): Promise<RedisConnection> {
    const address = addressOf(options.url);
    const servers = address.kind === "cluster" ? await openCluster(address, options) : await openOne(address, options);
    const hosts = () => (servers instanceof RedisCluster ? servers.hosts() : address.hosts);
    const sentinels = servers instanceof RedisNode ? listenToSentinels(address, options, servers) : [];
    let turn = 0;
    const nextEndpoint = () => {
      const known = hosts();
      turn += 1;
      return endpointOptions(address, options, known[turn % known.length]);
    };
    const subscriptions = new Subscriptions({ ...options, name: describeAddress(address), nextEndpoint });
    return new RedisConnection(servers, subscriptions, sentinels);
  }

  /** Runs a script, whose keys share one slot; its arguments are told which run of the server they are sent to. */
  run(script: Script, keys: readonly string[], argumentsFor: (runId: string) => readonly string[]): Promise<unknown> {
    return this.#servers.run(script, keys, argumentsFor);
  }

  /** Hears what is published from soon on; what is published while the connection is lost is not heard. Returns how to stop. */
  subscribe(channel: string, listener: (message: string) => void): () => void {
    return this.#subscriptions.subscribe(channel, listener);
  }

  /** What waits for an answer loses it. */
  async close(): Promise<void> {
    for (const subscriptions of [this.#subscriptions, ...this.#sentinels]) subscriptions.close();
    await this.#servers.close();
  }
}

function addressOf(url: string): RedisAddress {
  try {
    return parseAddress(url);
  } catch (error) {
    throw new RedisRefusedError(`the URL of Redis: ${error instanceof Error ? error.message : error}`);
  }
}

async function openOne(address: RedisAddress, options: ConnectionOptions): Promise<RedisNode> {
  const endpoint = endpointOptions(address, options);
  const node = new RedisNode({ ...options, name: describeAddress(address), endpoint, clustered: false });
  try {
    await node.connect();
    return node;
  } catch (error) {
    await node.close();
    throw error;
  }
}

/** Connects to the new primary as soon as any of the sentinels tells of one; the old one may still answer. */
function listenToSentinels(
  address: RedisAddress,
  options: ConnectionOptions,
  node: RedisNode,
): readonly Subscriptions[] {
  if (address.kind !== "sentinel") return [];
  return address.hosts.map((host) => {
    const name = `the sentinel at ${hostText(host)}`;
    const nextEndpoint = () => sentinelOptions(address, options, host);
    const subscriptions = new Subscriptions({ ...options, ...SENTINEL_PAUSES, name, nextEndpoint });
    // Its text: name, old host, old port, new host, new port.
    subscriptions.subscribe("+switch-master", (text) => {
      if (text.split(" ")[0] === address.name) node.reconnect();
    });
    return subscriptions;
  });
}

function openCluster(address: RedisAddress, options: ConnectionOptions): Promise<RedisCluster> {
  const nodeAt = (host: Host) => {
    const endpoint = endpointOptions(address, options, host);
    return new RedisNode({ ...options, name: `Redis at ${hostText(host)}`, endpoint, clustered: true });
  };
  const name = describeAddress(address);
  return RedisCluster.open({ name, seeds: address.hosts, lookMsMin: options.reconnectMsMin, nodeAt });
}
