import { describeAddress, type Host, hostText, parseAddress, type RedisAddress } from "./address.ts";
import { RedisCluster } from "./cluster.ts";
import { RedisNode, RedisRefusedError } from "./node.ts";
import { endpointOptions, type Secrets, sentinelOptions, type Timing } from "./options.ts";
import type { Script } from "./scripts.ts";
import { Subscriptions } from "./subscriptions.ts";

export { RedisRefusedError };

export type ConnectionOptions = Timing &
  Secrets & {
    /** The URL, as `parseAddress` reads it: of a standalone server, of sentinels or of a Redis Cluster. */
    readonly url: string;
    /** Gets the reason when there is no connection. The next attempt follows automatically. */
    readonly onError: (error: Error) => void;
    /** Gets a warning about each property of a server that could not be checked. */
    readonly onWarning: (message: string) => void;
  };

/** The pauses for sentinels are long: while one is unreachable, the others still report a new primary. */
const SENTINEL_PAUSES = { reconnectMsMin: 1_000, reconnectMsMax: 30_000 };

type Scripted = Pick<RedisNode, "run" | "close">;

/**
 * A connection to Redis: one server, sentinels or a cluster. A call goes to the server that owns its keys and gets the
 * run id of that server. No call is queued, sent twice or redirected. A call whose answer is lost throws
 * `UnavailableError`; its caller decides what to do.
 */
export class RedisConnection {
  readonly #servers: Scripted;
  readonly #subscriptions: Subscriptions;

  /** Report a new primary. */
  readonly #sentinels: readonly Subscriptions[];

  private constructor(servers: Scripted, subscriptions: Subscriptions, sentinels: readonly Subscriptions[]) {
    this.#servers = servers;
    this.#subscriptions = subscriptions;
    this.#sentinels = sentinels;
  }

  /**
   * Throws `RedisRefusedError` for a Redis that is not usable as it is configured, `UnavailableError` for one that
   * cannot be reached.
   */
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

  /** Runs a script whose keys share one slot. `argumentsFor` gets the run id of the server that runs it. */
  run(script: Script, keys: readonly string[], argumentsFor: (runId: string) => readonly string[]): Promise<unknown> {
    return this.#servers.run(script, keys, argumentsFor);
  }

  /**
   * Calls the listener for messages on the channel, starting soon. It misses messages while the connection is lost.
   * Returns a function that stops the listener.
   */
  subscribe(channel: string, listener: (message: string) => void): () => void {
    return this.#subscriptions.subscribe(channel, listener);
  }

  /** Closes all connections. Calls in progress lose their answers. */
  async close(): Promise<void> {
    for (const subscriptions of [this.#subscriptions, ...this.#sentinels]) subscriptions.close();
    await this.#servers.close();
  }
}

function addressOf(url: string): RedisAddress {
  try {
    return parseAddress(url);
  } catch (error) {
    throw new RedisRefusedError(`the URL of Redis is malformed: ${error instanceof Error ? error.message : error}`);
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

/** Connects to the new primary when a sentinel reports one, since the old primary may still answer. */
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
    // The message: name, old host, old port, new host, new port.
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
