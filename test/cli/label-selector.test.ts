/** Selectors of labels, and the jobs that a caller has submitted. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { labelSelectorOf, passes, selectorParts } from "../../src/cli/jobs/label-selector.ts";
import { startFixture } from "../api/fixture.ts";
import { pytorchManifest, type Ran, run, type World } from "./harness.ts";

const LABELS: Readonly<Record<string, string>> = {
  a: "team: nlp, tier: gold",
  b: "team: nlp, tier: silver",
  c: "team: cv, empty: ''",
  d: "",
};
const FILES = Object.fromEntries(
  Object.entries(LABELS).map(([name, labels]) => [
    `${name}.yaml`,
    pytorchManifest(name).replace(`{name: ${name}}`, `{name: ${name}, labels: {${labels}}}`),
  ]),
);

async function served(t: TestContext) {
  const { api, store } = await startFixture(t);
  const gangway = (words: readonly string[], more: World = {}): Promise<Ran> =>
    run(words, { address: api.address, files: FILES, ...more });
  for (const file of Object.keys(FILES)) assert.equal((await gangway(["submit", file])).exitCode, 0);
  return { gangway, store };
}

/** Selectors, and the jobs that pass. */
const selectors: Readonly<Record<string, string>> = {
  "team=nlp": "ab",
  "team==nlp": "ab",
  "team!=nlp": "cd",
  "team in (nlp)": "ab",
  "team in (nlp, cv)": "abc",
  "team in (nlp,cv),tier": "ab",
  "team notin (nlp)": "cd",
  "team notin (nlp,cv)": "d",
  team: "abc",
  "!team": "d",
  "! team": "d",
  "team,!tier": "c",
  "team=nlp,tier!=gold": "b",
  "empty=": "c",
  "empty!=": "abd",
  "team in (nlp,cv),team!=cv": "ab",
  "team = nlp": "ab",
};
test("a selector selects as in kubectl, in list, in watch and in commands that change jobs", async (t) => {
  const { gangway } = await served(t);
  for (const [selector, names] of Object.entries(selectors)) {
    const expected = [...names].map((name) => `pytorchjob/${name}\n`).join("");
    const listed = await gangway(["list", "-l", selector, "-o", "name"]);
    assert.deepEqual([listed.stdout, listed.stderr, listed.exitCode], [expected, "", 0], selector);
    const asked = await gangway(["cancel", "-l", selector]);
    assert.match(
      asked.stderr,
      new RegExp(`this would cancel ${names.length} jobs?: ${[...names].join(", ")};`),
      selector,
    );
  }
  const stop = new AbortController();
  let text = "";
  const onOutput = (more: string) => {
    text += more;
    if (text.split("\n").length > 2) stop.abort();
  };
  const watched = await gangway(["watch", "-l", "team!=nlp", "-o", "name"], { signal: stop.signal, onOutput });
  assert.equal(watched.stdout, "pytorchjob/c\npytorchjob/d\n");
});

test("a selector that is no selector is refused before any call", async () => {
  for (const selector of ["a=b=c", "a in b", "a in ()", "a within (b)", "=b", "a=b c", "a,(b)"]) {
    const ran = await run(["list", "-l", selector], { address: "127.0.0.1:1" });
    assert.equal(ran.exitCode, 2, selector);
    assert.match(ran.stderr, /^error: --selector/, selector);
  }
});

test("parts of a selector are split at commas outside of parentheses", () => {
  assert.deepEqual(selectorParts("a in (b,c), d ,!e", ["x"]), ["x", "a in (b,c)", "d", "!e"]);
  const { labels, others } = labelSelectorOf(["a=b", "c in (d)", "e"]);
  assert.deepEqual([labels, others.length], [{ a: "b", c: "d" }, 1]);
  assert.ok(passes({ e: "" }, others) && !passes({ constructor: "" }, others));
  assert.ok(!passes({}, labelSelectorOf(["constructor"]).others), "labels have no members of their own");
});

test("list --mine shows the jobs that the caller has submitted", async (t) => {
  const { gangway, store } = await served(t);
  const { job } = store.jobs.get("default/a") ?? assert.fail("no job a");
  store.put({ ...job, createdBy: "login:other" });
  assert.equal((await gangway(["list", "--mine", "-o", "name"])).stdout, "pytorchjob/b\npytorchjob/c\npytorchjob/d\n");
  assert.match((await gangway(["cancel", "--mine"])).stderr, /this would cancel 3 jobs: b, c, d;/);
  assert.equal(
    (await gangway(["list", "--mine", "--limit", "2", "-o", "name"])).stdout,
    "pytorchjob/b\npytorchjob/c\n",
  );
});
