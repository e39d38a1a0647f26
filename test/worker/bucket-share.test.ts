import assert from "node:assert/strict";
import { test } from "node:test";
import type { BucketLease, BucketView } from "../../src/core/job/bucket.ts";
import type { Term } from "../../src/runtime/member.ts";
import { BucketShare } from "../../src/worker/bucket-share.ts";

const termOf = (name: string): Term => ({ name, signal: new AbortController().signal });

/** A share whose store and membership the test controls. `log` lists its calls of the store and its callbacks. */
function shareOf() {
  const log: string[] = [];
  const state = {
    term: termOf("a") as Term | null,
    mine: [] as readonly BucketLease[],
    free: [] as readonly number[],
    taken: [] as readonly BucketLease[],
    duringView: () => {},
    duringTake: () => {},
  };
  const share = new BucketShare({
    store: {
      bucketsOf: async (worker): Promise<BucketView> => {
        state.duringView();
        return { workers: [worker], mine: state.mine, free: state.free };
      },
      takeBuckets: async (_worker, buckets) => {
        log.push(`take ${buckets.join(" ")}`);
        state.duringTake();
        return state.taken;
      },
      giveBuckets: async () => assert.fail("no other worker exists"),
    },
    member: { term: () => state.term },
    isBusy: () => false,
    onTaken: (buckets) => log.push(`taken ${buckets.join(" ")}`),
    onLost: (buckets) => log.push(`lost ${[...buckets].join(" ")}`),
  });
  return { share, state, log };
}

test("a lease is given only while the worker is sure of its term", async () => {
  const { share, state } = shareOf();
  state.mine = [{ bucket: 7, epoch: 3 }];
  await share.refresh();
  assert.deepEqual(share.leaseOf(7), { bucket: 7, epoch: 3 });
  assert.equal(share.leaseOf(8), null, "it holds no other bucket");
  assert.notEqual(share.signal(), null);
  state.term = null;
  assert.deepEqual([share.leaseOf(7), share.buckets(), share.signal()], [null, [], null]);
  state.term = termOf("a");
  assert.deepEqual(
    [share.leaseOf(7), share.buckets(), share.signal()],
    [null, [], null],
    "a later term is another one",
  );
  assert.equal(share.isStale(), true);
});

test("a bucket that returns under another epoch has that epoch's lease, and its jobs are checked again", async () => {
  const { share, state, log } = shareOf();
  state.mine = [{ bucket: 7, epoch: 3 }];
  await share.refresh();
  state.mine = [{ bucket: 7, epoch: 5 }];
  await share.refresh();
  assert.deepEqual(share.leaseOf(7), { bucket: 7, epoch: 5 });
  await share.refresh();
  assert.deepEqual(log, ["taken 7", "taken 7"]);
});

test("a new term begins without the leases of the last one, even before the store has answered", async () => {
  const { share, state, log } = shareOf();
  state.mine = [{ bucket: 7, epoch: 3 }];
  await share.refresh();
  state.term = termOf("b");
  const seen: (BucketLease | null)[] = [];
  state.duringView = () => seen.push(share.leaseOf(7));
  await share.refresh();
  assert.deepEqual(seen, [null]);
  assert.deepEqual(log, ["taken 7", "lost 7", "taken 7"]);
});

test("an answer that comes after the term has ended gives no leases", async () => {
  const { share, state, log } = shareOf();
  state.mine = [{ bucket: 7, epoch: 3 }];
  state.free = [8];
  state.duringView = () => {
    state.term = null;
  };
  await share.refresh();
  assert.deepEqual(log, [], "nothing was kept and nothing was taken");
});

test("buckets that were taken when the term ended are not counted as held", async () => {
  const { share, state, log } = shareOf();
  state.free = [8];
  state.taken = [{ bucket: 8, epoch: 1 }];
  state.duringTake = () => {
    state.term = null;
  };
  await share.refresh();
  assert.deepEqual(log, ["take 8"]);
  assert.equal(share.leaseOf(8), null);
});
