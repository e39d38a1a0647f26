import { randomUUID } from "node:crypto";
import type { Clock } from "../../runtime/clock.ts";
import { allocate } from "./allocate.ts";
import {
  type AllocateAnswer,
  allocateAnswer,
  type LeaseRefusal,
  outcomeOf,
  type ReleaseAnswer,
  type RenewAnswer,
  releaseAnswer,
  renewAnswer,
  type WaitAnswer,
  waitAnswer,
} from "./answers.ts";
import { type AllocateRequest, buildLines, callerHolder } from "./build-lines.ts";
import type { Desk } from "./desk.ts";
import type { Domains } from "./domains.ts";
import { createPoolAdmin } from "./pool-admin.ts";
import { PoolFacts } from "./pool-facts.ts";
import type { QuotaEvents, QuotaStore } from "./ports.ts";
import { release } from "./release.ts";
import { type RenewLine, renew } from "./renew.ts";
import { wait } from "./wait.ts";

export type TokenName = { readonly pool: string; readonly token: string };

export type ResourceManagerPorts = {
  readonly clock: Clock;
  readonly domains: Domains;
  readonly store: QuotaStore;
  readonly events: QuotaEvents;
  /** Called after each change of a pool: its limits may let a gang in. */
  readonly onPoolChanged: () => void;
};

/** What external callers and admins do with tokens. Throws `UnavailableError` where a store is away or a domain is being rebuilt. */
export function createResourceManager(ports: ResourceManagerPorts) {
  const facts = new PoolFacts(ports.clock, ports.store);
  const calls = new Calls(ports, facts);
  return {
    allocate: (request: AllocateRequest) => calls.allocate(request),
    release: (lines: readonly ReleaseLine[]) => calls.release(lines),
    renew: (of: RenewRequest) => calls.renew(of),
    wait: (request: AllocateRequest, signal: AbortSignal) => calls.wait(request, signal),
    ...createPoolAdmin({ ...ports, facts }),
  };
}

type ReleaseLine = TokenName & {
  readonly holder: string;
  readonly project: string | null;
  readonly namespace: string | null;
};

type RenewRequest = {
  readonly holder: string;
  readonly lines: readonly TokenName[];
  /** Null: each pool's own. */
  readonly leaseMs: number | null;
};

class Calls {
  readonly #ports: ResourceManagerPorts;
  readonly #facts: PoolFacts;

  constructor(ports: ResourceManagerPorts, facts: PoolFacts) {
    this.#ports = ports;
    this.#facts = facts;
  }

  /** All lines or none. */
  async allocate(request: AllocateRequest): Promise<AllocateAnswer> {
    const { clock, domains, events } = this.#ports;
    const startedMs = clock.monotonicMs();
    const built = await buildLines(this.#facts, request.lines);
    if (built.kind !== "built") return built;
    const desk = await domains.desk(built.where);
    const wanted = { lines: built.lines, holder: callerHolder(request.holder), priority: request.priority };
    const answer = allocateAnswer(await allocate(desk, wanted), built.lines, clock.nowMs());
    const tookMs = clock.monotonicMs() - startedMs;
    for (const pool of new Set(built.lines.map((line) => line.pool)))
      events.granted({ pool, ...outcomeOf(answer), tookMs });
    return answer;
  }

  /** One line; ends after anything but `waiting`. Leaving the loop leaves the line. */
  async *wait(request: AllocateRequest, signal: AbortSignal): AsyncGenerator<WaitAnswer> {
    const { clock, domains, events } = this.#ports;
    const startedMs = clock.monotonicMs();
    const built = await buildLines(this.#facts, request.lines);
    if (built.kind !== "built") {
      yield built;
      return;
    }
    const [line] = built.lines;
    if (line === undefined || built.lines.length > 1) throw new Error("one line is waited for");
    const desk = await domains.desk(built.where);
    const holder = callerHolder(request.holder);
    const waiter = `call/${randomUUID()}`;
    let outcome = "left";
    try {
      for await (const step of wait(desk, { line, holder, priority: request.priority, waiter }, signal)) {
        if (step.kind !== "waiting") outcome = step.kind;
        yield waitAnswer(step, built.lines, clock.nowMs());
      }
    } finally {
      events.waited({ pool: line.pool, outcome, tookMs: clock.monotonicMs() - startedMs });
    }
  }

  /** Each by itself, answered in order. */
  release(lines: readonly ReleaseLine[]): Promise<readonly ReleaseAnswer[]> {
    return this.#byDesk<ReleaseLine, ReleaseAnswer>(lines, { kind: "unknownPool" }, async (desk, mine) => {
      const outcomes = await release(
        desk,
        mine.map((line) => ({ ...line, holder: callerHolder(line.holder) })),
      );
      return outcomes.map(releaseAnswer);
    });
  }

  /** Each by itself, answered in order; none where a pool of one of them allows no such lease. */
  async renew({ holder, lines, leaseMs }: RenewRequest): Promise<readonly RenewAnswer[] | LeaseRefusal> {
    const pools = await Promise.all(lines.map((line) => this.#facts.pool(line.pool)));
    for (const [line, pool] of pools.entries()) {
      const maxLeaseMs = pool?.maxLeaseMs ?? null;
      if (leaseMs !== null && maxLeaseMs !== null && leaseMs > maxLeaseMs) {
        return { kind: "leaseTooLong", line, maxLeaseMs };
      }
    }
    const asked = lines.map((line, at) => ({ ...line, leaseMs: leaseMs ?? pools[at]?.defaultLeaseMs ?? null }));
    return this.#byDesk<RenewLine, RenewAnswer>(asked, { kind: "unknownPool" }, async (desk, mine) => {
      const renewed = await renew(desk, { holder: callerHolder(holder), lines: mine });
      return renewed.map((outcome) => renewAnswer(outcome, this.#ports.clock.nowMs()));
    });
  }

  /** Hands each line to the domain of its pool, all of a domain together. */
  async #byDesk<Line extends TokenName, Answer>(
    lines: readonly Line[],
    unknown: Answer,
    run: (desk: Desk, lines: readonly Line[]) => Promise<readonly Answer[]>,
  ): Promise<readonly Answer[]> {
    const groups = new Map<Desk, number[]>();
    for (const [at, line] of lines.entries()) {
      const pool = await this.#facts.pool(line.pool);
      if (pool === null) continue;
      const desk = await this.#ports.domains.desk(pool);
      const group = groups.get(desk);
      if (group === undefined) groups.set(desk, [at]);
      else group.push(at);
    }
    const answers: Answer[] = lines.map(() => unknown);
    await Promise.all(
      [...groups].map(async ([desk, places]) => {
        const mine = await run(
          desk,
          places.flatMap((at) => lines[at] ?? []),
        );
        for (const [index, at] of places.entries()) answers[at] = mine[index] ?? unknown;
      }),
    );
    return answers;
  }
}
