/**
 * Judges a gang as if it were alone: nothing is used of any quota, and every cluster takes gangs. The nodes have the
 * capacity that they have.
 */

import { maxOf } from "../../../runtime/lists.ts";
import { type FlavorChoices, flavorChoices } from "../fit/flavor-choices.ts";
import { type ClassAsk, choiceOf } from "../fit/flavors.ts";
import { blockOf, type EligibleCluster, type Fleet } from "../fit/fleet.ts";
import { newRequest, reasonOf, tryCapacity, tryIn } from "../fit/requests.ts";
import type { ClusterRefusal, QuotaRefusal, Refusal } from "../model/plan-types.ts";
import type { SizedAsk } from "../queues/ask-shape.ts";
import type { GangRecord } from "../queues/records.ts";
import type { ClusterBlock } from "../queues/refusals.ts";
import type { QuotaBlock } from "../usage/quota-state.ts";
import { ClusterMessages } from "./cluster-messages.ts";
import { refuse, refuseFor } from "./refuse.ts";

/** The answers of one cluster. */
type ClusterAlone = {
  readonly name: string;
  readonly simulated: boolean;
  /** Why it takes no gangs now, whatever the gang requests. Null: it does. */
  readonly exclusion: ClusterRefusal | null;
  /**
   * Every reason for which it has no capacity for the gang. Empty: it has capacity, or no choice of flavors was tried.
   */
  readonly refusals: readonly ClusterRefusal[];
  readonly fits: boolean;
};

export type AloneAnswers = {
  /** Null: some cluster has capacity for the gang, or it needs none. */
  readonly refusal: Refusal | null;
  readonly clusters: readonly ClusterAlone[];
};

/** Some members of the gang, and the flavors that limits allow them. */
type Sized = { readonly sized: SizedAsk; readonly options: FlavorChoices };

export function judgeAlone(fleet: Fleet, gang: GangRecord): AloneAnswers {
  return new Alone(fleet, gang).answers();
}

class Alone {
  readonly #fleet: Fleet;
  readonly #gang: GangRecord;
  readonly #gangClass: ClassAsk;
  readonly #sizes: readonly Sized[];
  readonly #messages: ClusterMessages;

  constructor(fleet: Fleet, gang: GangRecord) {
    const { facts, shape, account } = gang;
    const limits = fleet.quota.withoutUse();
    const queue = limits.queues.get(facts.queue);
    this.#fleet = fleet;
    this.#gang = gang;
    this.#messages = new ClusterMessages(fleet);
    const { project, namespace } = account.owner;
    this.#gangClass = { shape, priority: facts.priority, account: limits.account(facts.queue, project, namespace) };
    const sizes = queue === undefined ? [] : [shape.all, ...(shape.fewest === null ? [] : [shape.fewest])];
    this.#sizes = sizes.map((sized) => {
      const { resources, excludes, cannotHave, inOneCluster } = fleet;
      const of = { sized, resources, quota: limits, excludes, cannotHave, inOneCluster };
      return { sized, options: flavorChoices(this.#gangClass, queue as NonNullable<typeof queue>, of) };
    });
  }

  answers(): AloneAnswers {
    const { facts, shape } = this.#gang;
    const last = this.#sizes.at(-1);
    const clusters = this.#fleet.clustersFor(shape.ask).map((one) => this.#answerOf(one, last));
    if (last === undefined) {
      const message = `there is no queue ${facts.queue}`;
      return { refusal: refuse(facts, { reason: "UnknownQueue", message }), clusters };
    }
    if (shape.ask.service || clusters.some(({ fits }) => fits)) return { refusal: null, clusters };
    const refusal = refuseFor(facts, {
      quotas: last.options.blocks.map((block) => quotaRefusal(facts.queue, block)),
      clusters: inOrderOfChoices(clusters),
      stoppedByQuota: last.options.choices.length === 0,
    });
    return { refusal, clusters };
  }

  #answerOf({ cluster, facts, block }: EligibleCluster, last: Sized | undefined): ClusterAlone {
    const { facts: gangFacts, shape } = this.#gang;
    const { name, simulated = false } = facts;
    const { all } = shape;
    const report = (sized: SizedAsk, of: ClusterBlock) => this.#messages.refusalOf({ gang: gangFacts, sized }, of);
    const exclusion = block === null ? null : report(all, { cluster: name, reason: block, choice: {} });
    const lasting = blockOf(shape.ask, { ...facts, cordoned: false, reachable: true }, cluster.observed);
    const of = { name, simulated, exclusion };
    if (lasting !== null && last !== undefined) {
      return { ...of, refusals: [report(all, { cluster: name, reason: lasting, choice: {} })], fits: false };
    }
    const tried = this.#sizes.map((one) => this.#blocksIn({ cluster, facts }, one));
    if (tried.some((blocks) => blocks.includes(null))) return { ...of, refusals: [], fits: true };
    const blocks = (tried.at(-1) ?? []).flatMap((one) => one ?? []);
    return { ...of, refusals: last === undefined ? [] : blocks.map((one) => report(last.sized, one)), fits: false };
  }

  /** Why a cluster has no capacity, for each choice of flavors. Null: it has. */
  #blocksIn(
    { cluster, facts }: Pick<EligibleCluster, "cluster" | "facts">,
    { sized, options }: Sized,
  ): readonly (ClusterBlock | null)[] {
    return options.choices.map((flavors) => {
      const choice = choiceOf(this.#gangClass, flavors, this.#fleet.resources);
      const tried = tryIn(newRequest({ id: -1, excluded: "", base: null }, sized, choice), cluster, facts);
      const fits = tried.lacks === null && tryCapacity(tried).fits;
      return fits ? null : { cluster: cluster.name, reason: reasonOf(tried), choice };
    });
  }
}

/** First the clusters that take no such gang, then the others, by choice of flavors. */
function inOrderOfChoices(clusters: readonly ClusterAlone[]): readonly ClusterRefusal[] {
  const exclusion = clusters.flatMap(({ refusals }) =>
    refusals.filter(({ flavor, need }) => flavor === null && need === 0),
  );
  const lists = clusters.map(({ refusals }) => refusals.filter((one) => !exclusion.includes(one)));
  const most = maxOf(
    lists.map(({ length }) => length),
    0,
  );
  return [...exclusion, ...Array.from({ length: most }, (_, at) => lists.flatMap((list) => list[at] ?? [])).flat()];
}

/** Nobody holds anything of the quota. */
function quotaRefusal(
  queue: string,
  { pool: flavor, scope, reason, need, used, limit, reserved }: QuotaBlock,
): QuotaRefusal {
  return { queue, flavor, scope, reason, need, used, limit, reserved, heldBy: [] };
}
