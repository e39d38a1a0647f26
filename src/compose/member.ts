/** Connects this process, as a member, with the store that all members share. */

import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { CLOCK_LEASE } from "../adapters/store/fleet/decision-clock.ts";
import type { createStore } from "../adapters/store/store.ts";
import type { DecisionClock } from "../runtime/decision-clock.ts";
import { createMember, type Member } from "../runtime/member.ts";
import type { Telemetry } from "../telemetry/events.ts";

/** A process stops after this time even if the database does not answer. */
const LEAVE_MS_MAX = 1_500;

/** A name that no other process ever has. Process ids are reused, and containers often share them. */
export function nameOfProcess(): string {
  return `${hostname()}/${process.pid}/${randomBytes(4).toString("hex")}`;
}

/** Makes this process a member until the parts are closed. Resolves once it is one. */
export async function joinAsMember(of: {
  readonly processName: string;
  readonly clock: DecisionClock;
  readonly store: ServiceStore;
  readonly telemetry: Telemetry;
  readonly parts: AsyncDisposableStack;
  readonly takesBuckets: boolean;
  readonly leaseMs: number;
}): Promise<Member> {
  const { processName: name, clock, store, telemetry, takesBuckets, leaseMs } = of;
  const onError = (error: unknown) => telemetry.loopFailed({ loop: "member", error });
  const member = createMember(
    { clock, store: store.members, kept: { clock, lease: CLOCK_LEASE } },
    { name, takesBuckets, leaseMs, onError },
  );
  await member.look();
  const stop = new AbortController();
  const running = member.run(stop.signal);
  of.parts.defer(async () => {
    stop.abort();
    const left = member.leave().catch(onError);
    await Promise.race([Promise.all([running, left]), clock.sleep(LEAVE_MS_MAX)]);
  });
  return member;
}

export type ServiceStore = ReturnType<typeof createStore>;
