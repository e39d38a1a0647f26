import assert from "node:assert/strict";
import { test } from "node:test";
import { GroupCommit } from "../../src/runtime/group-commit.ts";
import { servedCall, serving } from "../../src/runtime/served-call.ts";
import { UnavailableError } from "../../src/runtime/unavailable-error.ts";
import { waitUntil } from "../support/bounded.ts";

/** Asks in a call of this caller. */
function askFor<T>(subject: string, groupCommit: GroupCommit<T, T>, request: T): Promise<T> {
  const call = { subject, method: "oidc", peer: "127.0.0.1:1", rpc: "a/b", requestId: "r" };
  return serving(call, () => groupCommit.ask(request));
}

/** Answers groups of numbers with their doubles, once the test lets the group end. */
function doubles(
  options: { readonly groupMax?: number; readonly waitingMax?: number; readonly atATime?: number } = {},
) {
  const groups: (readonly number[])[] = [];
  const gates: PromiseWithResolvers<void>[] = [];
  const groupCommit = new GroupCommit<number, number>({
    what: "numbers",
    groupMax: 100,
    waitingMax: 100,
    ...options,
    run: async (group) => {
      groups.push(group);
      const gate = Promise.withResolvers<void>();
      gates.push(gate);
      await gate.promise;
      return group.map((number) => 2 * number);
    },
  });
  /** Waits until a group runs, and ends it. */
  const endGroup = async (at: number) => {
    await waitUntil("the group runs", () => gates[at] !== undefined, { pollMs: 1 });
    gates[at]?.resolve();
  };
  return { groups, groupCommit, endGroup };
}

test("requests that arrive while a group runs share the next group, and each gets its own answer", async () => {
  const { groups, groupCommit, endGroup } = doubles();
  const first = groupCommit.ask(1);
  await waitUntil("a group runs", () => groups.length > 0, { pollMs: 1 });
  const others = [2, 3, 4].map((number) => groupCommit.ask(number));
  await endGroup(0);
  assert.equal(await first, 2);
  await endGroup(1);
  assert.deepEqual(await Promise.all(others), [4, 6, 8]);
  assert.deepEqual(groups, [[1], [2, 3, 4]]);
});

test("as many groups run at a time as may, and the others share the next that begins", async () => {
  const { groups, groupCommit, endGroup } = doubles({ atATime: 2 });
  const answers = [groupCommit.ask(1)];
  await waitUntil("a group runs", () => groups.length === 1, { pollMs: 1 });
  answers.push(groupCommit.ask(2));
  await waitUntil("two groups run", () => groups.length === 2, { pollMs: 1 });
  answers.push(groupCommit.ask(3), groupCommit.ask(4));
  await endGroup(1);
  assert.equal(await answers[1], 4);
  await waitUntil("the next group runs", () => groups.length === 3, { pollMs: 1 });
  assert.deepEqual(groups, [[1], [2], [3, 4]]);
  for (const at of [0, 2]) await endGroup(at);
  assert.deepEqual(await Promise.all(answers), [2, 4, 6, 8]);
});

test("callers share a group alike, whoever has more requests, and the group runs for none of them", async () => {
  const { groups, groupCommit, endGroup } = doubles({ groupMax: 4 });
  const answers = [0, 1, 2, 3, 4, 5].map((number) => askFor("busy", groupCommit, number));
  await endGroup(0);
  answers.push(...[10, 11].map((number) => askFor("calm", groupCommit, number)));
  for (const at of [1]) await endGroup(at);
  assert.deepEqual(await Promise.all(answers), [0, 2, 4, 6, 8, 10, 20, 22]);
  assert.deepEqual(groups, [
    [0, 1, 2, 3],
    [4, 10, 5, 11],
  ]);
  const calls = new GroupCommit<number, unknown>({
    what: "calls",
    groupMax: 1,
    waitingMax: 1,
    run: async () => [servedCall()],
  });
  const call = { subject: "one", method: "oidc", peer: "127.0.0.1:1", rpc: "a/b", requestId: "r" };
  assert.equal(await serving(call, () => calls.ask(1)), null);
});

test("where no more may wait, the newest request of the caller with the most makes room", async () => {
  const { groupCommit, endGroup } = doubles({ waitingMax: 3 });
  const busy = [1, 2, 3].map((number) => askFor("busy", groupCommit, number));
  const calm = askFor("calm", groupCommit, 10);
  await assert.rejects(busy[2] as Promise<number>, UnavailableError);
  await assert.rejects(askFor("busy", groupCommit, 4), UnavailableError);
  await assert.rejects(askFor("calm", groupCommit, 11), UnavailableError);
  await endGroup(0);
  assert.deepEqual(await Promise.all([busy[0], busy[1], calm]), [2, 4, 20]);
});

test("a group has at most `groupMax` requests, in the order of their arrival", async () => {
  const { groups, groupCommit, endGroup } = doubles({ groupMax: 2 });
  const answers = [1, 2, 3, 4, 5].map((number) => groupCommit.ask(number));
  for (const at of [0, 1, 2]) await endGroup(at);
  assert.deepEqual(await Promise.all(answers), [2, 4, 6, 8, 10]);
  assert.deepEqual(groups, [[1, 2], [3, 4], [5]]);
});

test("a request beyond `waitingMax` fails at once as unavailable, and the waiting requests are answered", async () => {
  const { groups, groupCommit, endGroup } = doubles({ waitingMax: 2 });
  const waiting = [1, 2].map((number) => groupCommit.ask(number));
  await assert.rejects(groupCommit.ask(3), (error) => {
    assert.ok(error instanceof UnavailableError);
    assert.match(error.message, /2 numbers already wait/);
    return true;
  });
  await endGroup(0);
  assert.deepEqual(await Promise.all(waiting), [2, 4]);
  const later = groupCommit.ask(4);
  await endGroup(1);
  assert.equal(await later, 8);
  assert.deepEqual(groups, [[1, 2], [4]]);
});

test("a request that does not fit its group waits for a later one, with those of its caller behind it", async () => {
  const groups: (readonly string[])[] = [];
  const groupCommit = new GroupCommit<string, string>({
    what: "words",
    groupMax: 100,
    waitingMax: 100,
    fits: (first, word) => first[0] === word[0],
    run: async (group) => {
      groups.push(group);
      return group;
    },
  });
  const asks = ["a1", "a2", "b1", "a3"].map((word) => groupCommit.ask(word));
  asks.push(askFor("another", groupCommit, "a4"));
  await Promise.all(asks);
  assert.deepEqual(groups, [["a1", "a4", "a2"], ["b1"], ["a3"]]);
});

test("an error fails every request of its group and none of the next", async () => {
  let runs = 0;
  const groupCommit = new GroupCommit<number, number>({
    what: "numbers",
    groupMax: 2,
    waitingMax: 100,
    run: async (group) => {
      runs += 1;
      if (runs === 1) throw new Error("the database is away");
      return group;
    },
  });
  const outcomes = await Promise.allSettled([1, 2, 3].map((number) => groupCommit.ask(number)));
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["rejected", "rejected", "fulfilled"],
  );
});

test("a request without an answer in its group fails", async () => {
  const groupCommit = new GroupCommit<number, number>({
    what: "numbers",
    groupMax: 2,
    waitingMax: 100,
    run: async (group) => group.slice(1),
  });
  const outcomes = await Promise.allSettled([1, 2].map((number) => groupCommit.ask(number)));
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ["fulfilled", "rejected"],
  );
});

test("a group apart: a request that cannot be answered fails alone, unless the service is away", async () => {
  const groups: number[][] = [];
  let away = false;
  const groupCommit = new GroupCommit<number, number>({
    what: "numbers",
    groupMax: 10,
    waitingMax: 100,
    apart: true,
    run: async (group) => {
      groups.push([...group]);
      if (away) throw new UnavailableError("the database is away");
      if (group.includes(2)) throw new Error("2 is bad");
      return group;
    },
  });
  const statuses = async () =>
    (await Promise.allSettled([1, 2, 3].map((number) => groupCommit.ask(number)))).map(({ status }) => status);
  assert.deepEqual(await statuses(), ["fulfilled", "rejected", "fulfilled"]);
  assert.deepEqual(groups, [[1, 2, 3], [1], [2], [3]]);
  groups.length = 0;
  away = true;
  assert.deepEqual(await statuses(), ["rejected", "rejected", "rejected"]);
  assert.equal(groups.length, 1);
});
