import { UnavailableError } from "../../../runtime/unavailable-error.ts";
import { type Host, hostText } from "./address.ts";
import { type RedisNode, RedisRefusedError } from "./node.ts";
import type { Script } from "./scripts.ts";
import { parseSlots, type SlotRange, slotOf } from "./slots.ts";

export type ClusterOptions = {
  /** How the cluster is called in messages. */
  readonly name: string;
  /** Nodes to begin with, and to go back to. */
  readonly seeds: readonly Host[];
  /** The least pause between two looks at who owns which slots. */
  readonly lookMsMin: number;
  /** A node there, not connected yet. */
  readonly nodeAt: (host: Host) => RedisNode;
};

type Member = { readonly host: Host; readonly node: RedisNode };

/**
 * A connection to each primary of a Redis Cluster. A call goes to the primary that owns its keys and to nobody else: where that has changed,
 * the call throws `UnavailableError`, and a later one finds the new owner, whose run it is told.
 */
export class RedisCluster {
  readonly #options: ClusterOptions;
  readonly #members = new Map<string, Member>();
  #ranges: readonly SlotRange[] = [];
  #looking: Promise<void> | null = null;
  #pause: NodeJS.Timeout | null = null;
  #lastError: string | null = null;
  #isClosed = false;

  private constructor(options: ClusterOptions) {
    this.#options = options;
  }

  /** Throws `RedisRefusedError` if one of its primaries must not be used, `UnavailableError` if none of the seeds can be reached. */
  static async open(options: ClusterOptions): Promise<RedisCluster> {
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
      throw this.#unavailable(`the owner of slot ${slot} is not known`);
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

  /** The nodes that are known, for whoever needs any of them. */
  hosts(): readonly Host[] {
    return [...this.#members.values()].map(({ host }) => host);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#pause !== null) clearTimeout(this.#pause);
    await Promise.all([...this.#members.values()].map(({ node }) => node.close()));
  }

  /** One look at a time, and a pause after each: many calls fail together. */
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

  /** Asks one node after the other who owns what; the first that knows is believed. */
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

  /** Connects to those that are new; one that cannot be reached is tried again by itself. */
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

  /** A node that just failed may not have heard yet what the others know. */
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
