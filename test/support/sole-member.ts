import { PLANNER_LEASE } from "../../src/adapters/store/fleet/leases.ts";
import type { createStore } from "../../src/adapters/store/store.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import { createMember, type Member, type MemberLease } from "../../src/runtime/member.ts";

/** The only process of a service. It holds every lease until `run` ends. */
export async function soleMember(of: {
  readonly clock: Clock;
  readonly store: ReturnType<typeof createStore>;
  readonly onError: (error: unknown) => void;
}): Promise<{
  readonly member: Member;
  readonly plannerLease: MemberLease;
  readonly run: (signal: AbortSignal) => Promise<void>;
}> {
  const { clock, store, onError } = of;
  const options = { name: "sole", takesBuckets: true, leaseMs: 10_000, onError };
  const member = createMember({ clock, store: store.members }, options);
  const plannerLease = member.lease(PLANNER_LEASE, () => {});
  await member.look();
  return { member, plannerLease, run: (signal) => member.run(signal) };
}
