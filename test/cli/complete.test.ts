import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { startFixture } from "../api/fixture.ts";
import { pytorchManifest, run, type World } from "./harness.ts";

const CONTEXTS = "current: dev\ncontexts: {dev: {addresses: []}, prod: {addresses: []}}\n";

/** A service with jobs, queues and a pool, and the words that complete a line there. */
async function served(t: TestContext) {
  const { api } = await startFixture(t);
  const files = { "a.yaml": pytorchManifest("a"), "b.yaml": pytorchManifest("b"), "config.yaml": CONTEXTS };
  const world: World = { address: api.address, files };
  for (const line of [
    "submit a.yaml b.yaml",
    "queue create research --quota gpu/h100=nvidia.com/gpu:8",
    "namespace create team-nlp --project nlp",
    "quota register lic:solver --quota 4",
    "quota register lic:editor --quota 4",
  ]) {
    const ran = await run(line.split(" "), world);
    assert.equal(ran.exitCode, 0, ran.stderr);
  }
  const words = async (...line: readonly string[]) => {
    const ran = await run(["__complete", ...line], world);
    assert.deepEqual([ran.exitCode, ran.stderr], [0, ""]);
    return ran.stdout.split("\n").slice(0, -1);
  };
  return { words };
}

/** The words of a line, of which the last is completed, and what it can be. */
const lines: readonly (readonly [readonly string[], readonly string[]])[] = [
  [["sub"], ["submit"]],
  [["to"], ["top"]],
  [["edi"], ["edit"]],
  [["queue", "up"], ["update"]],
  [["get", "--pha"], ["--phase"]],
  [
    ["completion", ""],
    ["bash", "fish", "zsh"],
  ],
  [["list", "--order-by", "p"], ["priority desc"]],
  [
    ["get", ""],
    ["a", "b"],
  ],
  [
    ["-n", "default", "cancel", ""],
    ["a", "b"],
  ],
  [["get", "a", "b"], ["b"]],
  [
    ["edit", ""],
    ["a", "b"],
  ],
  [["edit", "a", ""], []],
  [["-n", "nlp", "get", ""], []],
  [
    ["list", "--phase", "s"],
    ["starting", "succeeded", "suspended"],
  ],
  [["list", "--phase", "waiting,ru"], ["waiting,running"]],
  [["list", "--phase", "running,r"], ["running,restarting"]],
  [["list", "--phase=ru"], ["--phase=running"]],
  [["list", "--phase=waiting,ru"], ["--phase=waiting,running"]],
  [["list", "--kind", "PyTorchJob,TF"], ["PyTorchJob,TFJob"]],
  [
    ["list", "-o", "j"],
    ["json", "jsonpath="],
  ],
  [["get", "--output=c"], ["--output=custom-columns="]],
  [["list", "--queue", "r"], ["research"]],
  [["queue", "get", "d"], ["default"]],
  [
    ["queue", "create", "nlp", "--parent", ""],
    ["default", "research"],
  ],
  [["namespace", "update", "team-nlp", "--default-queue", "res"], ["research"]],
  [["namespace", "get", "team"], ["team-nlp"]],
  [["-n", "team"], ["team-nlp"]],
  [["list", "--namespace", "team"], ["team-nlp"]],
  [["quota", "get", "lic:s"], ["lic:solver"]],
  [
    ["quota", "allocations", "--pool", "lic:"],
    ["lic:editor", "lic:solver"],
  ],
  [
    ["alloc", "lic"],
    ["lic:editor", "lic:solver"],
  ],
  [["alloc", "lic:solver", ""], []],
  [
    ["context", "use", ""],
    ["dev", "prod"],
  ],
  [["--context", "p"], ["prod"]],
  [["cluster", "add", "east", "--kube-context", ""], []],
  [["cluster", "add", "east", "--gang-scheduler", "v"], ["volcano"]],
  [["submit", "-f", ""], []],
];
test("shells complete commands, options, values and names", async (t) => {
  const { words } = await served(t);
  for (const [line, expected] of lines) assert.deepEqual(await words(...line), expected, line.join(" "));
});

test("without a service there are no names, and no errors", async () => {
  for (const line of [
    ["get", ""],
    ["list", "--queue", ""],
    ["-n", ""],
  ]) {
    const ran = await run(["__complete", ...line], { address: "127.0.0.1:1" });
    assert.deepEqual(ran, { exitCode: 0, stdout: "", stderr: "" });
  }
  assert.equal((await run(["__complete", "list", "--phase", "ru"], { address: "127.0.0.1:1" })).stdout, "running\n");
});

test("each shell has a script that asks the same command", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { stdout } = await run(["completion", shell]);
    assert.match(stdout, /gangway __complete /, shell);
  }
  assert.equal((await run(["completion", "csh"])).exitCode, 2);
});

/** A line up to the cursor, the words of bash, what the command answers, and what bash gets. */
const bash: readonly {
  readonly line: string;
  readonly words: readonly string[];
  readonly asked: string;
  readonly answer: string;
  readonly replies: string;
}[] = [
  {
    line: "gangway get -n nlp a",
    words: ["get", "-n", "nlp", "a"],
    asked: "get,-n,nlp,a,",
    answer: "ab ac",
    replies: "ab ac",
  },
  { line: "gangway get ", words: ["get", ""], asked: "get,,", answer: "a", replies: "a" },
  {
    line: "gangway alloc lic:s",
    words: ["alloc", "lic", ":", "s"],
    asked: "alloc,lic:s,",
    answer: "lic:solver",
    replies: "solver",
  },
  {
    line: "gangway alloc lic:",
    words: ["alloc", "lic", ":"],
    asked: "alloc,lic:,",
    answer: "lic:a lic:b",
    replies: "a b",
  },
  {
    line: "gangway list --phase=ru",
    words: ["list", "--phase", "=", "ru"],
    asked: "list,--phase=ru,",
    answer: "--phase=running",
    replies: "running",
  },
];
for (const { line, words, asked, answer, replies } of bash) {
  test(`the script for bash completes "${line}"`, { skip: !existsSync("/bin/bash") && "needs bash" }, async () => {
    const { stdout } = await run(["completion", "bash"]);
    const asks = `gangway() { shift; printf '%s,' "$@" >&2; printf '%s\\n' ${answer}; }`;
    const quoted = words.map((word) => `'${word}'`).join(" ");
    const cursor = `COMP_CWORD=${words.length}; COMP_LINE='${line}'; COMP_POINT=${line.length}`;
    const state = `COMP_WORDS=(gangway ${quoted}); ${cursor}`;
    // The script hides what the command writes to stderr, which tells here what was asked.
    const shown = stdout.replace("2>/dev/null))", "2>&3))");
    const script = [asks, shown, "exec 3>&1", state, "_gangway", "echo", `echo "\${COMPREPLY[*]}"`].join("\n");
    assert.equal(execFileSync("/bin/bash", ["-c", script], { encoding: "utf8" }), `${asked}\n${replies}\n`);
  });
}
