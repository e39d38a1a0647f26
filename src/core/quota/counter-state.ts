/** Serves teams that share pools: the rules by which counters grant, renew, queue and free tokens within the quotas. */

import {
  checkGrants,
  checkLease,
  checkRests,
  checkStand,
  checkTurnOvers,
  FENCES_PER_EPOCH,
  holderKey,
  sameHolder,
} from "./allocations.ts";
import type {
  AllocationRef,
  BatchedGrant,
  BatchedOutcome,
  CountersMoment,
  FoundToken,
  GiveBack,
  GivenBack,
  Grant,
  GrantOutcome,
  GrantRequest,
  HeldToken,
  Holder,
  LedgerRow,
  Limits,
  RenewOutcome,
  Rest,
  ScopeSum,
  StandOutcome,
  StandRequest,
  TickOutcome,
  TurnOver,
  WaiterView,
} from "./counters.ts";
import { DomainState } from "./domain-state.ts";
import { STAND_LEASE_MS } from "./lease-clock.ts";
import { hasLapsed, leftMs, tokenView } from "./tokens.ts";
import { asksOtherwise, poolsOf, type Waiter } from "./waiting-line.ts";

/**
 * The counters of one quota domain, in memory. This class is the executable specification of `Counters`; the Lua
 * scripts for Redis must answer alike. The cost of an operation grows with its own allocations and with the waiters of
 * their pools, not with the number of held tokens. `open`, `setLimits`, `tick` and the lists cost more.
 */
export class CounterState {
  /** Null until `open` has loaded the ledger. Until then every verb answers `closed`. */
  #epoch: number | null = null;
  #grants = 0n;
  #domain: DomainState | null = null;
  readonly #offer: (waiter: string) => void;

  constructor(offer: (waiter: string) => void = () => undefined) {
    this.#offer = offer;
  }

  open(epoch: number, { rows, limits }: { readonly rows: readonly LedgerRow[]; readonly limits: Limits }): void {
    if (this.#epoch !== null && epoch < this.#epoch) return;
    if (this.#epoch !== epoch) this.#grants = 0n;
    this.#epoch = epoch;
    for (const { fence } of rows) {
      // Rows of the same epoch keep their fences. New fences continue after the highest of them.
      const counter = fence - BigInt(epoch) * FENCES_PER_EPOCH;
      if (counter > this.#grants && counter < FENCES_PER_EPOCH) this.#grants = counter;
    }
    this.#domain = new DomainState({ rows, limits, nextFence: () => this.#nextFence(epoch), offer: this.#offer });
  }

  /** Throws if an allocation or the priority is malformed: a bug of the caller. */
  grant(request: GrantRequest): GrantOutcome {
    checkGrants([request]);
    const domain = this.#at(request.epoch);
    if (domain === null) return { kind: "closed" };
    const known = domain.known(request);
    if (known?.kind === "granted") domain.leave(request.waiter);
    if (known !== null) return known;
    if (!domain.hasRoomFor(request.allocations.length)) return { kind: "full", tokensMax: domain.limits.tokensMax };
    const refused = domain.firstViolation(request);
    if (refused !== null) return { kind: "exhausted", ...refused };
    const granted = domain.grant(request);
    if (granted === null) return { kind: "closed" };
    domain.leave(request.waiter);
    return granted;
  }

  /** Throws if a request is malformed: a bug of the caller. It has then granted none of them. */
  grantAll(epoch: number, requests: readonly BatchedGrant[]): readonly BatchedOutcome[] {
    checkGrants(requests);
    if (this.#at(epoch) === null) return requests.map(() => ({ kind: "closed" }));
    const ended = new Set<string | null>();
    let stopped = false;
    return requests.map(({ chain, stops, ...request }) => {
      if (stopped || ended.has(chain)) return { kind: "notTried" };
      const outcome = this.grant({ ...request, epoch });
      if (outcome.kind !== "granted" && chain !== null) ended.add(chain);
      stopped = stops && outcome.kind === "exhausted" && outcome.violation.scope.kind === "pool";
      return outcome;
    });
  }

  free(epoch: number, allocations: readonly AllocationRef[]): "closed" | readonly ("freed" | "notHeld")[] {
    const domain = this.#at(epoch);
    if (domain === null) return "closed";
    const outcomes = allocations.map((allocation) => {
      const held = domain.tokens.find(allocation);
      if (held === undefined) return "notHeld";
      domain.free(held);
      return "freed";
    });
    domain.serve(poolsOf(allocations.filter((_, at) => outcomes[at] === "freed")));
    return outcomes;
  }

  giveBack(tokens: readonly GiveBack[]): "closed" | readonly GivenBack[] {
    const domain = this.#domain;
    if (domain === null) return "closed";
    const outcomes = tokens.map((asked): GivenBack => {
      const held = domain.tokens.get(asked);
      if (held === undefined || (asked.fence ?? held.row.fence) !== held.row.fence) return { kind: "notHeld" };
      const { holder, project, namespace } = held.row;
      if (asked.holder !== null && !sameHolder(asked.holder, holder)) return { kind: "otherHolder", holder };
      if ((asked.project ?? project) !== project || (asked.namespace ?? namespace) !== namespace) {
        return { kind: "otherScope", project, namespace };
      }
      domain.free(held);
      return { kind: "freed", held: tokenView(held) };
    });
    domain.serve(poolsOf(tokens.filter((_, at) => outcomes[at]?.kind === "freed")));
    return outcomes;
  }

  /** Throws if an amount that is left is malformed: a bug of the caller. */
  shrink(epoch: number, allocations: readonly Rest[]): "closed" | readonly ("shrunk" | "asItIs" | "notHeld")[] {
    checkRests(allocations);
    const domain = this.#at(epoch);
    if (domain === null) return "closed";
    const outcomes = allocations.map((allocation) => {
      const held = domain.tokens.find(allocation);
      if (held === undefined) return "notHeld";
      if (held.row.amount <= allocation.amount) return "asItIs";
      domain.shrink(held, allocation.amount);
      return "shrunk";
    });
    domain.serve(poolsOf(allocations.filter((_, at) => outcomes[at] === "shrunk")));
    return outcomes;
  }

  /** Throws if a turn-over is malformed: a bug of the caller. */
  turnOver(epoch: number, turns: readonly TurnOver[]): "closed" | readonly ("turnedOver" | "asItIs" | "notHeld")[] {
    checkTurnOvers(turns);
    const domain = this.#at(epoch);
    if (domain === null) return "closed";
    const outcomes = turns.map((turn) => {
      const held = domain.tokens.find(turn.from);
      if (held === undefined) return "notHeld";
      if (held.row.amount <= turn.from.kept || domain.tokens.get(turn.to) !== undefined) return "asItIs";
      domain.turnOver(held, turn);
      return "turnedOver";
    });
    domain.serve(poolsOf(turns.flatMap(({ to }, at) => (outcomes[at] === "turnedOver" ? [to] : []))));
    return outcomes;
  }

  confirm(epoch: number, allocations: readonly AllocationRef[]): "confirmed" | "closed" {
    const domain = this.#at(epoch);
    if (domain === null) return "closed";
    for (const allocation of allocations) {
      const held = domain.tokens.find(allocation);
      if (held !== undefined) domain.tokens.confirm(held);
    }
    return "confirmed";
  }

  renew(
    epoch: number,
    of: {
      readonly holder: Holder;
      readonly allocations: readonly {
        readonly pool: string;
        readonly token: string;
        readonly leaseMs: number | null;
      }[];
    },
  ): "closed" | readonly RenewOutcome[] {
    for (const { token, leaseMs } of of.allocations) checkLease(token, leaseMs);
    const domain = this.#at(epoch);
    if (domain === null) return "closed";
    const { nowMs } = domain.clock;
    return of.allocations.map((allocation): RenewOutcome => {
      const held = domain.tokens.get(allocation);
      if (held === undefined) return { kind: "notHeld" };
      if (holderKey(held.row.holder) !== holderKey(of.holder)) return { kind: "otherHolder" };
      const { fence } = held.row;
      if (hasLapsed(held, nowMs)) return { kind: "lapsed", fence };
      const renewed = domain.tokens.renew(held, { leaseMs: allocation.leaseMs, nowMs });
      return { kind: "renewed", fence, confirmed: held.confirmed, expiresInMs: leftMs(renewed, nowMs) };
    });
  }

  /** Throws if an allocation, the priority or the age is malformed: a bug of the caller. */
  stand(request: StandRequest): StandOutcome {
    checkStand(request);
    const domain = this.#at(request.epoch);
    if (domain === null) return { kind: "closed" };
    const before = domain.waitingLines.get(request.waiter);
    const refused = refusalOf(domain, request);
    if (refused !== null) {
      domain.leave(request.waiter);
      return refused;
    }
    const { waitersMax } = domain.limits;
    if (before === undefined && domain.waitingLines.size >= waitersMax) return { kind: "lineFull", waitersMax };
    const { epoch: _, ...asked } = request;
    const entry = { ...asked, expiresMs: domain.clock.nowMs + STAND_LEASE_MS };
    domain.waitingLines.put(entry);
    return standing(domain, entry, before);
  }

  leave(epoch: number, waiter: string): "left" | "notThere" | "closed" {
    const domain = this.#at(epoch);
    if (domain === null) return "closed";
    return domain.leave(waiter) ? "left" : "notThere";
  }

  tick(
    epoch: number,
    of: { readonly elapsedMs: number; readonly unconfirmedMs: number; readonly limit: number },
  ): TickOutcome {
    const domain = this.#at(epoch);
    if (domain === null) return { kind: "closed" };
    const advanced = domain.clock.tick(of.elapsedMs);
    const clockMs = domain.clock.nowMs;
    for (const { waiter } of domain.waitingLines.lapsed(clockMs)) domain.waitingLines.remove(waiter);
    domain.serve(domain.waitingLines.pools());
    return {
      kind: "ticked",
      clockMs,
      advanced,
      limitsVersion: domain.limits.version,
      lapsed: domain.tokens.lapsed(clockMs, of.limit).map(({ row: { pool, token, fence, holder } }) => {
        return { pool, token, fence, holder };
      }),
      unconfirmed: domain.tokens.unconfirmedSince(clockMs - of.unconfirmedMs, of.limit).map(tokenView),
    };
  }

  report(epoch: number): "reported" | "closed" {
    const domain = this.#at(epoch);
    if (domain === null) return "closed";
    domain.clock.report();
    return "reported";
  }

  setLimits(epoch: number, limits: Limits): "set" | "older" | "closed" {
    const domain = this.#at(epoch);
    if (domain === null) return "closed";
    if (limits.version < domain.limits.version) return "older";
    domain.setLimits(limits);
    return "set";
  }

  used(): readonly ScopeSum[] {
    return this.#domain?.sums.list() ?? [];
  }

  moment(
    epoch: number,
    tokens: readonly { readonly pool: string; readonly token: string }[],
  ): "closed" | CountersMoment {
    const domain = this.#at(epoch);
    if (domain === null) return "closed";
    const asked = tokens.flatMap((token) => domain.tokens.get(token) ?? []);
    const held = new Set([...domain.tokens.unconfirmed(), ...asked]);
    return { used: domain.sums.list(), limitsVersion: domain.limits.version, tokens: [...held].map(tokenView) };
  }

  held(after: string | null, count: number): { readonly tokens: readonly HeldToken[]; readonly next: string | null } {
    const page = this.#domain?.tokens.page(Number(after ?? 0), count) ?? [];
    const last = page.at(-1);
    return { tokens: page.map(tokenView), next: last !== undefined && page.length >= count ? `${last.order}` : null };
  }

  find(
    tokens: readonly { readonly pool: string; readonly token: string }[],
  ): "closed" | readonly (FoundToken | null)[] {
    const domain = this.#domain;
    if (domain === null) return "closed";
    return tokens.map((token) => {
      const held = domain.tokens.get(token);
      return held === undefined ? null : { ...tokenView(held), expiresInMs: leftMs(held, domain.clock.nowMs) };
    });
  }

  waiting(): readonly WaiterView[] {
    return this.#domain?.waitingLines.list() ?? [];
  }

  #at(epoch: number): DomainState | null {
    return epoch === this.#epoch ? this.#domain : null;
  }

  /** Returns null if the epoch has no fence left. Verbs then answer `closed`, and the caller raises the epoch. */
  #nextFence(epoch: number): bigint | null {
    if (this.#grants + 1n >= FENCES_PER_EPOCH) return null;
    this.#grants += 1n;
    return BigInt(epoch) * FENCES_PER_EPOCH + this.#grants;
  }
}

/** Returns the answer to a request that does not have to wait, or cannot. Null: the request joins the waiting line. */
function refusalOf(domain: DomainState, request: StandRequest): StandOutcome | null {
  const known = domain.known(request);
  if (known !== null) return known;
  const violation = domain.never(request.allocations);
  if (violation !== null) return { kind: "never", violation };
  const { tokensMax } = domain.limits;
  return request.grants && !domain.hasRoomFor(1) ? { kind: "full", tokensMax } : null;
}

/** Answers a waiter that has just joined its waiting lines. Grants its request if it fits and `grants` is set. */
function standing(domain: DomainState, entry: Waiter, before: Waiter | undefined): StandOutcome {
  const violation = domain.violation(entry);
  const granted = entry.grants && violation === null ? domain.grant(entry) : null;
  if (entry.grants && violation === null) return grantedAt(domain, { entry, before, granted });
  if (before !== undefined && asksOtherwise(before, entry)) domain.serve(poolsOf(before.allocations));
  return { kind: "waiting", position: domain.waitingLines.positionOf(entry), violation };
}

function grantedAt(
  domain: DomainState,
  of: { readonly entry: Waiter; readonly before: Waiter | undefined; readonly granted: Grant | null },
): StandOutcome {
  if (of.granted === null) return { kind: "closed" };
  domain.waitingLines.remove(of.entry.waiter);
  domain.serve(poolsOf([...(of.before?.allocations ?? []), ...of.entry.allocations]));
  return of.granted;
}
