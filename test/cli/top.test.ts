import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type UseRow, useLines } from "../../src/cli/output/use-bars.ts";
import { startFixture } from "../api/fixture.ts";
import { run, type World } from "./harness.ts";

const row = (more: Partial<UseRow> = {}): UseRow => ({ name: "a", of: "", used: 0, limit: 8, note: "", ...more });
const PLAIN = { columns: 80, color: false };
const shown = (rows: readonly UseRow[], rowsMax = 100) =>
  useLines([{ title: "POOLS", rows, none: "no pools" }], PLAIN, rowsMax);

const bars: Record<string, { row: UseRow; line: string }> = {
  nothing: { row: row(), line: "  a             ░░░░░░░░░░░░░░░░░░░░  0/8  0%" },
  half: { row: row({ used: 4 }), line: "  a             ██████████░░░░░░░░░░  4/8  50%" },
  "a little": { row: row({ used: 1, limit: 1000 }), line: "  a             █░░░░░░░░░░░░░░░░░░░  1/1000  0%" },
  "more than the limit": { row: row({ used: 10 }), line: "  a             ████████████████████  10/8  125%" },
  "without a limit": {
    row: row({ used: 3, limit: null, note: "by queues" }),
    line: "  a               3    by queues",
  },
  "a limit of nothing": { row: row({ limit: 0 }), line: "  a               0/0" },
};
for (const [name, { row: one, line }] of Object.entries(bars)) {
  test(`a bar shows ${name}`, () => assert.deepEqual(shown([one]), ["POOLS", line]));
}

test("a section without rows says so, and one with too many says how many are left out", () => {
  assert.deepEqual(shown([]), ["POOLS", "  no pools"]);
  const many = Array.from({ length: 30 }, (_, at) => row({ name: `p${at}` }));
  const lines = shown(many, 12);
  assert.equal(lines.length, 12);
  assert.equal(lines.at(-1), "  and 20 more");
});

test("sections share the rows of a terminal, and lines its columns", () => {
  const rows = (count: number, name: string) =>
    Array.from({ length: count }, (_, at) =>
      row({ name: `${name}-${at}-${"x".repeat(40)}`, of: "f".repeat(40), note: "n".repeat(90) }),
    );
  const sections = [rows(2, "c"), rows(40, "p"), rows(40, "q")].map((all, at) => ({
    title: `S${at}`,
    rows: all,
    none: "",
  }));
  const lines = useLines(sections, PLAIN, 22);
  assert.ok(lines.length <= 22, `${lines.length}`);
  assert.ok(
    lines.every((line) => line.length <= 80),
    lines.join("\n"),
  );
  assert.deepEqual(
    lines.filter((line) => /^S|more$/.test(line)),
    ["S0", "S1", "  and 32 more", "S2", "  and 33 more"],
  );
});

test("a bar is green, yellow or red by its part", () => {
  const painted = (used: number) =>
    useLines([{ title: "", rows: [row({ used, limit: 100 })], none: "" }], { columns: 80, color: true }, 9)[1];
  for (const [used, code] of [
    [10, 32],
    [80, 33],
    [99, 31],
  ] as const) {
    assert.ok(painted(used)?.includes(`\u001b[${code}m`), JSON.stringify(painted(used)));
  }
});

async function served(t: TestContext) {
  const { api, store } = await startFixture(t);
  const times = { observedMs: 1, version: 1, createTimeMs: 1, uid: null, gangScheduler: "none" } as const;
  const node = {
    name: "n1",
    labels: {},
    taints: [],
    unschedulable: false,
    allocatable: { "nvidia.com/gpu": 8000, cpu: 64_000 },
    free: { "nvidia.com/gpu": 2000, cpu: 1500 },
  };
  const capacity = { nodes: [node], seen: [], unbound: [] };
  const flavors = [{ name: "gpu/h100", resource: "nvidia.com/gpu", nodeLabels: {} }];
  store.clusters.set("east", {
    name: "east",
    labels: {},
    flavors,
    cordoned: true,
    simulated: false,
    reachable: true,
    capacity,
    ...times,
  });
  store.clusters.set("west", {
    name: "west",
    labels: {},
    flavors: [],
    cordoned: false,
    simulated: false,
    reachable: false,
    capacity,
    ...times,
  });
  const world: World = { address: api.address };
  return { world, store, api };
}

test("top shows clusters, pools and queues once where stdout is no terminal, or with --once", async (t) => {
  const { world } = await served(t);
  assert.equal((await run(["quota", "register", "lic:solver", "--quota", "4"], world)).exitCode, 0);
  assert.equal((await run(["alloc", "lic:solver", "run-1", "--amount", "3"], world)).exitCode, 0);
  for (const [argv, isTty] of [
    [["top"], false],
    [["top", "--once"], true],
  ] as const) {
    const { exitCode, stdout, stderr } = await run(argv, { ...world, isTty });
    assert.deepEqual([exitCode, stderr], [0, ""]);
    assert.match(
      stdout,
      /^CLUSTERS\n {2}east +gpu +█{15}░{5} +6\/8 +75% +cordoned\n {2}west +cpu +█+ +62.5\/64 +98% +unreachable\n/,
    );
    assert.match(stdout, /\nPOOLS\n {2}lic:solver +█{15}░{5} +3\/4 +75%\n/);
    assert.match(stdout, /\nQUEUES\n {2}default .*0 waiting, 0 admitted/);
    assert.ok(!stdout.includes("\u001b"));
  }
});

/** Runs top until it has drawn so many times. */
async function live(world: World, argv: readonly string[], draws: number, onDraw: (count: number) => void = () => {}) {
  const stop = new AbortController();
  let count = 0;
  const ran = run(argv, {
    ...world,
    signal: stop.signal,
    onOutput: (text) => {
      if (!text.includes("CLUSTERS")) return;
      count += 1;
      onDraw(count);
      if (count === draws) stop.abort();
    },
  });
  return ran;
}

test("top on a terminal draws the bars again in place, until it is interrupted", async (t) => {
  const { world, store } = await served(t);
  const change = () => {
    const east = store.clusters.get("east");
    assert.ok(east);
    store.clusters.set("east", { ...east, cordoned: false });
  };
  const { exitCode, stdout } = await live({ ...world, isTty: true }, ["top", "--interval", "100ms"], 2, (count) => {
    if (count === 1) change();
  });
  assert.equal(exitCode, 130);
  const [, first = "", again = ""] = stdout.split("CLUSTERS");
  assert.match(first, /cordoned/);
  assert.ok(first.endsWith("\u001b[2K"), "the next lines cover these");
  assert.doesNotMatch(again, /cordoned/);
});

test("top --watch repeats everything in a file or a pipe", async (t) => {
  const { world } = await served(t);
  const { exitCode, stdout } = await live(world, ["top", "-w", "--interval", "100ms"], 2);
  assert.equal(exitCode, 130);
  assert.equal(stdout.split("CLUSTERS\n").length - 1, 2);
});

test("top keeps the last bars while the service is away, and fails if it never answers", async (t) => {
  const { world, api } = await served(t);
  let drawn = "";
  const stop = new AbortController();
  const ran = await run(["top", "--interval", "100ms"], {
    ...world,
    isTty: true,
    signal: stop.signal,
    onOutput: (text) => {
      drawn = text;
      if (text.includes("as last seen; trying again: ")) stop.abort();
      else void api.close();
    },
  });
  assert.equal(ran.exitCode, 130);
  assert.match(drawn, /CLUSTERS[\s\S]*as last seen; trying again: cannot connect/);
  assert.equal((await run(["top"], world)).exitCode, 4);
});

test("options of top that make no sense are usage errors", async () => {
  assert.equal((await run(["top", "--once", "-w"])).exitCode, 2);
  assert.equal((await run(["top", "--interval", "1ms"])).exitCode, 2);
});
