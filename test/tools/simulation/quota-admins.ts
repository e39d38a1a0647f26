import assert from "node:assert/strict";
import { UNCHANGED } from "../../../src/core/quota/pools.ts";
import { pick } from "../../support/random.ts";
import { randomPolicy, randomQuotas } from "./random-policies.ts";
import type { World } from "./world.ts";

const POOLS = ["gpu/h100", "gpu/a100"];
const BY = { version: 0, actor: "simulation" };

/** Admins who freeze queues and pools, grant quota for some time, and change limits and policies. */
export class QuotaAdmins {
  readonly #world: World;
  readonly #random: () => number;
  readonly #isFair: boolean;
  #isFrozen = false;

  constructor(world: World, random: () => number, isFair: boolean) {
    this.#world = world;
    this.#random = random;
    this.#isFair = isFair;
  }

  /** One change, or the end of all freezes. Returns words for the trace. */
  async change(): Promise<string> {
    if (this.#isFrozen && this.#random() < 0.5) {
      await this.#unfreeze();
      return "nothing is frozen any more";
    }
    return pick(this.#random, [
      () => this.#freezeQueue(),
      () => this.#freezePool(),
      () => this.#grant(),
      () => this.#grant(),
      () => this.#revoke(),
      () => this.#limitPool(),
      () => this.#changeQueue(),
    ])();
  }

  /** Ends freezes, grants and limits of pools. Quotas and policies stay. */
  async endAll(): Promise<void> {
    const { store } = this.#world;
    await this.#unfreeze();
    for (const name of POOLS) {
      assert.equal((await store.pools.register({ ...UNCHANGED, name, quota: null }, BY)).kind, "done");
    }
    for (const { queue, flavor } of await store.admin.listGrants(null)) {
      await store.admin.revokeGrant({ queue, flavor, actor: "simulation" });
    }
  }

  async #freezeQueue(): Promise<string> {
    const { name } = await this.#anyQueue();
    await this.#setQueueFreeze(name, "maintenance");
    this.#isFrozen = true;
    return `queue ${name} is frozen`;
  }

  async #setQueueFreeze(name: string, reason: string | null): Promise<void> {
    const { kind } = await this.#world.store.admin.freezeQueue({ name, reason, actor: "simulation" });
    assert.equal(kind, "done");
  }

  async #freezePool(): Promise<string> {
    const name = pick(this.#random, POOLS);
    await this.#setPoolFreeze(name, "maintenance");
    this.#isFrozen = true;
    return `pool ${name} is frozen`;
  }

  async #setPoolFreeze(name: string, reason: string | null): Promise<void> {
    const { kind } = await this.#world.store.pools.freeze({ name, reason, actor: "simulation" });
    assert.equal(kind, "done");
  }

  async #unfreeze(): Promise<void> {
    for (const { name } of await this.#world.store.admin.listQueues()) await this.#setQueueFreeze(name, null);
    for (const name of POOLS) await this.#setPoolFreeze(name, null);
    this.#isFrozen = false;
  }

  async #grant(): Promise<string> {
    const { name: queue } = await this.#anyQueue();
    const flavor = pick(this.#random, POOLS);
    const amount = 1 + Math.floor(this.#random() * 4);
    const untilMs = this.#world.clock.atMs + pick(this.#random, [100, 2_000, 10_000]);
    const grant = { queue, flavor, amount, untilMs, actor: "simulation", reason: "" };
    assert.equal((await this.#world.store.admin.grantQuota(grant)).kind, "done");
    return `queue ${queue} gets ${amount} ${flavor} more for ${untilMs - this.#world.clock.atMs} ms`;
  }

  async #revoke(): Promise<string> {
    const { admin } = this.#world.store;
    const grants = await admin.listGrants(null);
    if (grants.length === 0) return "no quota is granted";
    const { queue, flavor } = pick(this.#random, grants);
    assert.equal((await admin.revokeGrant({ queue, flavor, actor: "simulation" })).kind, "done");
    return `queue ${queue} has its grant of ${flavor} no longer`;
  }

  async #limitPool(): Promise<string> {
    const name = pick(this.#random, POOLS);
    const quota = pick(this.#random, [null, null, 2, 4, 8]);
    assert.equal((await this.#world.store.pools.register({ ...UNCHANGED, name, quota }, BY)).kind, "done");
    return `pool ${name} has the limit ${quota}`;
  }

  async #changeQueue(): Promise<string> {
    const random = this.#random;
    const queue = await this.#anyQueue();
    const isRoot = queue.parent === null;
    const changed =
      random() < 0.5
        ? { policy: randomPolicy(random, { isRoot, isFair: this.#isFair }) }
        : { quotas: randomQuotas(random, queue.parent) };
    const { kind } = await this.#world.store.admin.updateQueue({ ...queue, ...changed, version: 0 });
    assert.equal(kind, "done");
    return `queue ${queue.name} has other ${Object.keys(changed)}`;
  }

  async #anyQueue() {
    return pick(this.#random, await this.#world.store.admin.listQueues());
  }
}
