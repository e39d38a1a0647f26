/** Serves operators who run Redis as a cluster: finds the primary that owns a domain's keys, also after a failover. */
import { UnavailableError } from "../../../runtime/unavailable-error.ts";
import { type Host, hostText } from "./address.ts";
import { type RedisNode, RedisRefusedError } from "./node.ts";
import type { Script } from "./scripts.ts";
import { parseSlots, type SlotRange, slotOf } from "./slots.ts";

export type RedisClusterOptions = {
  /** The name of the cluster in messages. */
  readonly name: string;
  /** The configured nodes. They stay connected even if they own no slots. */
  readonly seeds: readonly Host[];
  /** The minimum pause between two reads of the slots' owners. */
  readonly lookMsMin: number;
  /** Makes a node for a host without connecting it. */
  readonly nodeAt: (host: Host) => RedisNode;
};

type Member = { readonly host: Host; readonly node: RedisNode };

/**
 * Connections to all primaries of a Redis Cluster. A call goes only to the primary that owns its keys. If the owner has
 * changed, the call throws `UnavailableError`; a later call finds the new owner and gets the run id of that server.
 */
export class RedisCluster {
  readonly #options: RedisClusterOptions;
  readonly #members = new Map<string, Member>();
  #ranges: readonly SlotRange[] = [];
  #looking: Promise<void> | null = null;
  #pause: NodeJS.Timeout | null = null;
  #lastError: string | null = null;
  #isClosed = false;

  private constructor(options: RedisClusterOptions) {
    this.#options = options;
  }

  /**
   * Throws `RedisRefusedError` if a primary is not usable as it is configured, `UnavailableError` if no seed can be
   * reached.
   */
  static async open(options: RedisClusterOptions): Promise<RedisCluster> {
    const cluster = new RedisCluster(options);
    try {
      await cluster.#join(options.seeds);
      await cluster.#look();
      if (cluster.#ranges.length === 0) throw cluster.#unavailable(cluster.#lastError ?? "no slot has an owner");
      return cluster;
    } catch (error) {
      await cluster.close();
      throw error;
    }
  }

  async run(script: Script, keys: readonly string[], argumentsFor: (runId: string) => readonly string[]) {
    const slot = slotOf(keys[0] ?? "");
    const owner = this.#ranges.find(({ from, to }) => from <= slot && slot <= to)?.primary;
    const member = owner && this.#members.get(hostText(owner));
    if (member === undefined) {
      this.#lookSoon();
      throw this.#unavailable(`the owner of slot ${slot} is unknown`);
    }
    try {
      return await member.node.run(script, keys, argumentsFor);
    } catch (error) {
      if (error instanceof UnavailableError) {
        this.#askLast(member);
        this.#lookSoon();
      }
      throw error;
    }
  }

  /** Returns all known nodes. Any of them can be asked for messages of the cluster. */
  hosts(): readonly Host[] {
    return [...this.#members.values()].map(({ host }) => host);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#pause !== null) clearTimeout(this.#pause);
    await Promise.all([...this.#members.values()].map(({ node }) => node.close()));
  }

  /** Reads the owners once at a time, with a pause after each read, because many calls fail together. */
  #lookSoon(): void {
    if (this.#looking !== null || this.#isClosed) return;
    this.#looking = this.#look()
      .catch((error: unknown) => {
        this.#lastError = error instanceof Error ? error.message : String(error);
      })
      .finally(() => {
        if (this.#isClosed) return;
        this.#pause = setTimeout(() => {
          this.#looking = null;
        }, this.#options.lookMsMin).unref();
      });
  }

  /** Asks the nodes one after the other for the owners of slots, and takes the first answer. */
  async #look(): Promise<void> {
    for (const { host, node } of [...this.#members.values()]) {
      try {
        const ranges = parseSlots(await node.slots(), host);
        if (ranges.length > 0) return await this.#adopt(ranges);
      } catch (error) {
        if (error instanceof RedisRefusedError) throw error;
        this.#lastError = error instanceof Error ? error.message : String(error);
      }
    }
  }

  async #adopt(ranges: readonly SlotRange[]): Promise<void> {
    await this.#join(ranges.map(({ primary }) => primary));
    this.#ranges = ranges;
    const needed = new Set([...this.#options.seeds, ...ranges.map(({ primary }) => primary)].map(hostText));
    for (const [key, { node }] of [...this.#members]) {
      if (needed.has(key)) continue;
      this.#members.delete(key);
      await node.close();
    }
  }

  /** Connects to new nodes. A node that cannot be reached keeps trying to connect. */
  async #join(hosts: readonly Host[]): Promise<void> {
    const joining: Promise<void>[] = [];
    for (const host of hosts) {
      const key = hostText(host);
      if (this.#members.has(key) || this.#isClosed) continue;
      const node = this.#options.nodeAt(host);
      this.#members.set(key, { host, node });
      joining.push(node.connect());
    }
    for (const outcome of await Promise.allSettled(joining)) {
      if (outcome.status === "fulfilled") continue;
      if (outcome.reason instanceof RedisRefusedError) throw outcome.reason;
      this.#lastError = outcome.reason instanceof Error ? outcome.reason.message : String(outcome.reason);
    }
  }

  /** Moves a node that just failed to the end: it may know less than the others. */
  #askLast(member: Member): void {
    const key = hostText(member.host);
    if (this.#members.get(key) !== member) return;
    this.#members.delete(key);
    this.#members.set(key, member);
  }

  #unavailable(why: string): UnavailableError {
    return new UnavailableError(`${this.#options.name} cannot be used now: ${why}`);
  }
}
