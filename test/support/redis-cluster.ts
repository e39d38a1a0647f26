import type { ConnectionOptions } from "node:tls";
import { waitUntil } from "./bounded.ts";
import { freePort, isFree, RedisServer } from "./redis-server.ts";

const SLOTS = 16_384;
/** The bus of a node listens on the port for clients plus this. */
const BUS_OFFSET = 10_000;
const PORT_MAX = 65_535 - BUS_OFFSET;
/** A replica asks to be elected if its primary has been silent for this long. A busy machine delays live nodes too. */
const NODE_TIMEOUT_MS = 2_000;
const POLL_MS = 20;

/** A Redis Cluster for one test: three primaries, each with a replica. */
export class RedisClusterServers {
  readonly nodes: readonly RedisServer[];

  private constructor(nodes: readonly RedisServer[]) {
    this.nodes = nodes;
  }

  static async start(args: readonly string[] = [], tls?: ConnectionOptions): Promise<RedisClusterServers> {
    const nodes: RedisServer[] = [];
    for (let at = 0; at < 6; at += 1) nodes.push(await startNode(args, tls));
    const cluster = new RedisClusterServers(nodes);
    try {
      await cluster.#meet();
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  get url(): string {
    return `redis+cluster://${this.nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;
  }

  /** The primary of a key's slot, according to the first node that answers. */
  async ownerOf(key: string): Promise<RedisServer> {
    const { admin } = this.running[0] as RedisServer;
    const slot = await admin.cluster("KEYSLOT", key);
    const ranges = (await admin.cluster("SLOTS")) as unknown as [number, number, [string, number]][];
    const range = ranges.find(([from, to]) => from <= slot && slot <= to);
    const owner = this.nodes.find(({ port }) => port === range?.[2][1]);
    if (owner === undefined) throw new Error(`slot ${slot} has no owner`);
    return owner;
  }

  /** Resolves with the primary of a key's slot once that is another node than `before`; nodes learn it one by one. */
  async otherOwnerOf(key: string, before: RedisServer): Promise<RedisServer> {
    let owner = before;
    const hasChanged = async () => {
      owner = await this.ownerOf(key);
      return owner !== before;
    };
    await waitUntil(`another node than that on port ${before.port} owns the slot`, hasChanged, { pollMs: POLL_MS });
    return owner;
  }

  get running(): readonly RedisServer[] {
    return this.nodes.filter((node) => node.answers);
  }

  /** Moves the slot of a key and all its keys to another primary, as `redis-cli --cluster reshard` does. */
  async moveSlot(key: string, to: RedisServer): Promise<void> {
    const from = await this.ownerOf(key);
    const slot = await to.admin.cluster("KEYSLOT", key);
    const [fromId, toId] = [await from.admin.cluster("MYID"), await to.admin.cluster("MYID")];
    await to.admin.cluster("SETSLOT", slot, "IMPORTING", fromId);
    await from.admin.cluster("SETSLOT", slot, "MIGRATING", toId);
    const moveSomeKeys = async () => {
      const keys = await from.admin.cluster("GETKEYSINSLOT", slot, 100);
      if (keys.length === 0) return true;
      await from.admin.call("MIGRATE", "127.0.0.1", `${to.port}`, "", "0", "5000", "KEYS", ...keys);
      return false;
    };
    await waitUntil(`no key is left in slot ${slot} on port ${from.port}`, moveSomeKeys, { pollMs: 0 });
    await to.admin.cluster("SETSLOT", slot, "NODE", toId);
    await from.admin.cluster("SETSLOT", slot, "NODE", toId);
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }

  async #meet(): Promise<void> {
    const [first, ...others] = this.nodes as [RedisServer, ...RedisServer[]];
    for (const [at, { admin }] of this.nodes.entries()) await admin.cluster("SET-CONFIG-EPOCH", at + 1);
    for (const { port } of others) await first.admin.cluster("MEET", "127.0.0.1", port);
    await this.#until("cluster_known_nodes:6");
    const primaries = this.nodes.slice(0, 3);
    for (const [at, { admin }] of primaries.entries()) {
      const from = Math.ceil((SLOTS / 3) * at);
      const to = Math.ceil((SLOTS / 3) * (at + 1));
      await admin.cluster("ADDSLOTS", ...Array.from({ length: to - from }, (_, slot) => from + slot));
      const replica = this.nodes[at + 3] as RedisServer;
      await replica.admin.cluster("REPLICATE", await admin.cluster("MYID"));
    }
    await this.#until("cluster_state:ok", "cluster_slots_ok:16384");
    for (const replica of this.nodes.slice(3)) await replica.linked();
  }

  async #until(...facts: readonly string[]): Promise<void> {
    for (const { admin, port } of this.nodes) {
      const hasFacts = async () => {
        const info = String(await admin.cluster("INFO"));
        return facts.every((fact) => info.includes(fact));
      };
      await waitUntil(`the node on port ${port} reports ${facts.join(", ")}`, hasFacts, { pollMs: POLL_MS });
    }
  }
}

async function startNode(args: readonly string[], tls: ConnectionOptions | undefined): Promise<RedisServer> {
  let port = 0;
  const findPort = async () => {
    port = await freePort();
    return port <= PORT_MAX && (await isFree(port + BUS_OFFSET));
  };
  await waitUntil("a port and that of its bus are both free", findPort, { pollMs: 0 });
  const own = ["--cluster-enabled", "yes", "--cluster-node-timeout", `${NODE_TIMEOUT_MS}`];
  return RedisServer.start([...own, "--repl-diskless-sync-delay", "0", ...args], { port, ...(tls && { tls }) });
}
