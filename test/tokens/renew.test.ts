import assert from "node:assert/strict";
import { test } from "node:test";
import { inProcessCounters } from "../../src/adapters/counters/in-process/in-process-counters.ts";
import type { Allocation } from "../../src/core/quota/counters.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { renew } from "../../src/tokens/renew.ts";
import { soleDomain } from "../support/sole-quota.ts";
import { ceilings } from "./limits.ts";
import { MemoryLedger } from "./memory-ledger.ts";

const LEASE_MS = 60_000;
const ALLOCATION: Allocation = {
  pool: "ex:slots",
  token: "t1",
  amount: 1,
  project: "vision",
  namespace: "team",
  queue: "q",
  caps: { project: null, namespace: null },
  leaseMs: LEASE_MS,
};
const FLYTE = { kind: "caller", name: "flyte" } as const;
const RENEWAL = { holder: FLYTE, allocations: [{ pool: ALLOCATION.pool, token: ALLOCATION.token, leaseMs: LEASE_MS }] };

async function openDomain() {
  const tokens = new MemoryLedger(() => ceilings([{ queue: "q", pool: ALLOCATION.pool, limit: 4 }]));
  const counters = inProcessCounters();
  const confirmed: bigint[] = [];
  const counted = {
    ...counters,
    confirm: (...of: Parameters<typeof counters.confirm>) => {
      confirmed.push(...of[1].map(({ fence }) => fence));
      return counters.confirm(...of);
    },
  };
  const domain = soleDomain({ clock: systemClock(), ledger: tokens, counters: counted });
  const epoch = await domain.epochs.openEpoch(5_000);
  const grant = async () => {
    const outcome = await counters.grant({
      epoch,
      holder: FLYTE,
      allocations: [ALLOCATION],
      priority: 0,
      waiter: null,
    });
    assert.ok(outcome.kind === "granted");
    return outcome.fence;
  };
  const commit = (fence: bigint) => tokens.commitOne(epoch, { allocations: [ALLOCATION], holder: FLYTE, fence }).kind;
  return { domain, tokens, counters, epoch, confirmed, grant, commit };
}

test("an unconfirmed grant is renewed only if the ledger has it under the same fence", async () => {
  const { domain, confirmed, grant, commit } = await openDomain();
  const fence = await grant();
  assert.equal(commit(fence - 1n), "committed");
  await assert.rejects(renew(domain, RENEWAL), UnavailableError);
  await domain.close();
  assert.deepEqual(confirmed, []);
});

test("an unconfirmed grant that the ledger has is renewed and confirmed", async () => {
  const { domain, confirmed, grant, commit } = await openDomain();
  const fence = await grant();
  assert.equal(commit(fence), "committed");
  assert.deepEqual(await renew(domain, RENEWAL), [{ kind: "renewed", fence, confirmed: false, expiresInMs: LEASE_MS }]);
  await domain.close();
  assert.deepEqual(confirmed, [fence]);
});

test("a renewal is lost if its token is released and granted again meanwhile; the domain stays open", async () => {
  const { domain, tokens, counters, epoch, grant, commit } = await openDomain();
  const fence = await grant();
  assert.equal(commit(fence), "committed");
  await counters.free(epoch, [{ ...ALLOCATION, fence }]);
  const { findLive } = tokens;
  let looks = 0;
  tokens.findLive = async (of) => {
    const rows = await findLive(of);
    looks += 1;
    return looks === 1 ? rows : rows.map((row) => ({ ...row, fence: fence + 1n }));
  };
  assert.deepEqual(await renew(domain, RENEWAL), [{ kind: "lost" }]);
  assert.equal(domain.epochs.current, epoch);
  await domain.close();
});
