/**
 * Judges a gang as if it were alone: nothing is used of any quota, and every cluster takes gangs. The nodes have the
 * room that they have.
 */
import { maxOf } from "../../../runtime/lists.ts";
import type { ClusterRefusal, QuotaRefusal, Refusal } from "../plan-types.ts";
import { refuse, refuseFor } from "../refuse.ts";
import type { SizedAsk } from "./ask-shape.ts";
import { choiceOf, type FlavorChoices, flavorChoices, type LaneAsk } from "./choices.ts";
import { ClusterWords } from "./cluster-words.ts";
import { blockOf, type FleetParts } from "./fleet-parts.ts";
import type { Entry } from "./gang-lines.ts";
import type { QuotaBlock } from "./quota-state.ts";
import type { ClusterBlock } from "./refused.ts";
import { fitsEmpty, newRequest, tryIn, tryRoom } from "./requests.ts";
import type { EligibleCluster } from "./state-parts.ts";

/** The answers of one cluster. */
type ClusterAlone = {
  readonly name: string;
  readonly simulated: boolean;
  /** Why it takes no gangs now, whatever the gang requests. Null: it does. */
  readonly barred: ClusterRefusal | null;
  /** Every reason for which it has no room for the gang. Empty: it has room, or no choice of flavors was tried. */
  readonly refusals: readonly ClusterRefusal[];
  readonly fits: boolean;
};

export type AloneAnswers = {
  /** Null: some cluster has room for the gang, or it needs none. */
  readonly refusal: Refusal | null;
  readonly clusters: readonly ClusterAlone[];
};

/** Some members of the gang, and the flavors that limits allow them. */
type Sized = { readonly sized: SizedAsk; readonly options: FlavorChoices };

export function judgeAlone(parts: FleetParts, entry: Entry): AloneAnswers {
  return new Alone(parts, entry).answers();
}

class Alone {
  readonly #parts: FleetParts;
  readonly #entry: Entry;
  readonly #lane: LaneAsk;
  readonly #sizes: readonly Sized[];
  readonly #words: ClusterWords;

  constructor(parts: FleetParts, entry: Entry) {
    const { gang, shape, account } = entry;
    const limits = parts.quota.withoutUse();
    const queue = limits.queues.get(gang.queue);
    this.#parts = parts;
    this.#entry = entry;
    this.#words = new ClusterWords(parts);
    const { project, namespace } = account;
    this.#lane = { shape, priority: gang.priority, account: limits.account(gang.queue, project, namespace) };
    const sizes = queue === undefined ? [] : [shape.all, ...(shape.fewest === null ? [] : [shape.fewest])];
    this.#sizes = sizes.map((sized) => {
      const { resources } = parts;
      return {
        sized,
        options: flavorChoices(this.#lane, queue as NonNullable<typeof queue>, { sized, resources, quota: limits }),
      };
    });
  }

  answers(): AloneAnswers {
    const { gang, shape } = this.#entry;
    const last = this.#sizes.at(-1);
    const clusters = this.#parts.clustersFor(shape.ask).map((one) => this.#answerOf(one, last));
    if (last === undefined) {
      const message = `there is no queue ${gang.queue}`;
      return { refusal: refuse(gang, { reason: "UnknownQueue", message }), clusters };
    }
    if (shape.ask.service || clusters.some(({ fits }) => fits)) return { refusal: null, clusters };
    const refusal = refuseFor(gang, {
      quotas: last.options.blocks.map((block) => quotaRefusal(gang.queue, block)),
      clusters: inOrderOfChoices(clusters),
      stoppedByQuota: last.options.choices.length === 0,
    });
    return { refusal, clusters };
  }

  #answerOf({ cluster, facts, block }: EligibleCluster, last: Sized | undefined): ClusterAlone {
    const { gang, shape } = this.#entry;
    const { name, simulated = false } = facts;
    const { all } = shape;
    const say = (sized: SizedAsk, of: ClusterBlock) => this.#words.refusalOf({ gang, sized }, of);
    const barred = block === null ? null : say(all, { cluster: name, reason: block, choice: {} });
    const lasting = blockOf(shape.ask, { ...facts, cordoned: false, reachable: true }, cluster.observed);
    const of = { name, simulated, barred };
    if (lasting !== null && last !== undefined) {
      return { ...of, refusals: [say(all, { cluster: name, reason: lasting, choice: {} })], fits: false };
    }
    const tried = this.#sizes.map((one) => this.#blocksIn({ cluster, facts }, one));
    if (tried.some((blocks) => blocks.includes(null))) return { ...of, refusals: [], fits: true };
    const blocks = (tried.at(-1) ?? []).flatMap((one) => one ?? []);
    return { ...of, refusals: last === undefined ? [] : blocks.map((one) => say(last.sized, one)), fits: false };
  }

  /** Why a cluster has no room, for each choice of flavors. Null: it has. */
  #blocksIn(
    { cluster, facts }: Pick<EligibleCluster, "cluster" | "facts">,
    { sized, options }: Sized,
  ): readonly (ClusterBlock | null)[] {
    return options.choices.map((flavors) => {
      const choice = choiceOf(this.#lane, flavors, this.#parts.resources);
      const room = tryIn(newRequest({ id: -1, lifted: "", base: null }, sized, choice), cluster, facts);
      if (room.lacks !== null) return { cluster: cluster.name, reason: "NoSuchFlavor", choice };
      return tryRoom(room).fits
        ? null
        : { cluster: cluster.name, reason: fitsEmpty(room) ? "NoCapacity" : "TooLarge", choice };
    });
  }
}

/** First the clusters that take no such gang, then the others, by choice of flavors. */
function inOrderOfChoices(clusters: readonly ClusterAlone[]): readonly ClusterRefusal[] {
  const barred = clusters.flatMap(({ refusals }) =>
    refusals.filter(({ flavor, need }) => flavor === null && need === 0),
  );
  const lists = clusters.map(({ refusals }) => refusals.filter((one) => !barred.includes(one)));
  const most = maxOf(
    lists.map(({ length }) => length),
    0,
  );
  return [...barred, ...Array.from({ length: most }, (_, at) => lists.flatMap((list) => list[at] ?? [])).flat()];
}

/** Nobody holds anything of the quota. */
function quotaRefusal(
  queue: string,
  { pool: flavor, scope, reason, need, used, limit, reserved }: QuotaBlock,
): QuotaRefusal {
  return { queue, flavor, scope, reason, need, used, limit, reserved, heldBy: [] };
}
