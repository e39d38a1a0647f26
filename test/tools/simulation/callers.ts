import assert from "node:assert/strict";
import type { AllocateAnswer } from "../../../src/core/quota/calls.ts";
import { UnavailableError } from "../../../src/runtime/unavailable-error.ts";
import { pick } from "../../support/random.ts";
import type { World } from "./world.ts";

const PROJECT = "default";
const CALLERS = ["loader", "notebook"];
const TOKENS = ["a", "b", "c"];

/** Callers that take tokens of the same pools as jobs, whenever some are free, and give them back. */
export class Callers {
  readonly #world: World;
  readonly #random: () => number;
  readonly #queues: readonly string[];
  readonly met = { granted: 0 };

  constructor(world: World, random: () => number, queues: readonly string[]) {
    this.#world = world;
    this.#random = random;
    this.#queues = queues;
  }

  /** Some caller asks for a token, or gives one back. Returns words for the trace. */
  async act(): Promise<string> {
    const random = this.#random;
    const [holder, name] = [pick(random, CALLERS), pick(random, TOKENS)];
    const token = { pool: pick(random, ["gpu/h100", "gpu/h100", "gpu/a100"]), token: `${holder}-${name}` };
    if (random() < 0.4) return `${holder} gives back ${token.token} of ${token.pool}: ${await this.#release([token])}`;
    const amount = 1 + Math.floor(random() * 3);
    const queue = random() < 0.2 ? null : pick(random, this.#queues);
    const lease = random() < 0.5 ? ({ kind: "default" } as const) : ({ kind: "asked", ms: 3_000 } as const);
    const scope = { project: PROJECT, namespace: "default", caps: { project: null, namespace: null } };
    const allocations = [{ ...token, ...scope, amount, queue, lease }];
    const answer = await unlessAway(() =>
      this.#world.resources.allocate({ allocations, holder, priority: Math.floor(random() * 4) }),
    );
    if (answer !== null) requireExpected(answer);
    if (answer?.kind === "granted") this.met.granted += 1;
    return `${holder} asks for ${amount} ${token.pool} in queue ${queue}: ${answer?.kind}`;
  }

  /** Every caller gives back every token, until the service has taken them. */
  async giveAllBack(): Promise<void> {
    const tokens = ["gpu/h100", "gpu/a100"].flatMap((pool) =>
      CALLERS.flatMap((holder) => TOKENS.map((name) => ({ pool, token: `${holder}-${name}` }))),
    );
    for (let tries = 0; tries < 20; tries += 1) {
      if ((await this.#release(tokens)) === "answered") return;
      await this.#world.reap(1_000);
    }
    assert.fail("the service takes back no tokens");
  }

  async #release(tokens: readonly { readonly pool: string; readonly token: string }[]): Promise<string> {
    const releases = tokens.map(({ pool, token }) => {
      const holder = token.split("-")[0] ?? "";
      return { pool, token, holder, project: PROJECT, namespace: "default" };
    });
    const answers = await unlessAway(() => this.#world.resources.release(releases));
    for (const { kind } of answers ?? []) assert.ok(["released", "notHeld"].includes(kind), kind);
    return answers === null ? "away" : "answered";
  }
}

function requireExpected({ kind }: AllocateAnswer): void {
  assert.ok(["granted", "exhausted", "heldOtherwise"].includes(kind), kind);
}

/** Null: the domain is being rebuilt, or another call about the same token is under way. */
async function unlessAway<T>(call: () => Promise<T>): Promise<T | null> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof UnavailableError) return null;
    throw error;
  }
}
