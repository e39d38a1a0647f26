/** Options of commands: none has the name of a global option, which would take its value. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "./harness.ts";

/** Every command with its subcommands, as the words that call it. */
async function allCommands(before: readonly string[] = []): Promise<readonly (readonly string[])[]> {
  const { stdout } = await run([...before, "--help"]);
  const listed = /\n(?:Commands|[A-Z][\w ]+):\n((?: {2}[a-z][\w-]*(?: .*)?\n(?: {4,}.*\n)*)+)/g;
  const sections = [...stdout.matchAll(listed)].filter(([, lines = ""]) => !lines.startsWith("  gangway"));
  const names = sections
    .filter(([section]) => !/^\n(Arguments|Examples|Exit status)/.test(section))
    .flatMap(([, lines = ""]) => [...lines.matchAll(/^ {2}([a-z][\w-]*)/gm)].map(([, name = ""]) => name))
    .filter((name) => name !== "help");
  const below = await Promise.all(names.map((name) => allCommands([...before, name])));
  return names.flatMap((name, at) => [[...before, name], ...(below[at] ?? [])]);
}

/** The flags of a section of a help, such as `-n` and `--namespace`. */
function flagsOf(help: string, section: string): readonly string[] {
  const text = new RegExp(`\\n${section}:\\n((?: {2}.*\\n)+)`).exec(help)?.[1] ?? "";
  return [...text.matchAll(/^ {2}(?:(-\w), )?(--[\w-]+)/gm)].flatMap(([, short, long = ""]) => [short ?? "", long]);
}

test("no option of a command has the name of a global option", async () => {
  const commands = await allCommands();
  const paths = commands.map((words) => words.join(" "));
  assert.ok(paths.includes("cluster add") && paths.includes("quota register") && paths.includes("submit"), `${paths}`);
  for (const words of commands) {
    const { stdout } = await run([...words, "--help"]);
    const globals = flagsOf(stdout, "Global Options");
    assert.ok(globals.includes("--context"), stdout);
    const both = flagsOf(stdout, "Options").filter((flag) => flag !== "" && globals.includes(flag));
    assert.deepEqual(
      both.filter((flag) => flag !== "-h" && flag !== "--help"),
      [],
      words.join(" "),
    );
  }
});

const CONFIG =
  "current: local\ncontexts:\n  local: {addresses: ['127.0.0.1:1']}\n  prod: {addresses: ['127.0.0.1:1']}\n";

/** Command lines that could mean the context of the kubeconfig. */
const unclear = [
  "cluster add east --kubeconfig k.yaml --context k8s",
  "cluster add east --context=k8s --kubeconfig k.yaml",
  "cluster add east --secret a/b --context prod",
  "cluster update east --kubeconfig k.yaml --context k8s",
  "cluster update east --context prod",
];
test("--context of a command that takes a kubeconfig names --kube-context, and calls nothing", async () => {
  for (const line of unclear) {
    const { exitCode, stdout, stderr } = await run(line.split(" "), { files: { "config.yaml": CONFIG } });
    assert.deepEqual([exitCode, stdout], [2, ""], line);
    assert.match(stderr, /^error: --context is Gangway's own context, .* give --kube-context (k8s|prod); /, line);
  }
});

/** Command lines whose --context is Gangway's: they call its address, where nothing listens. */
const clear = [
  "--context prod cluster add east --kubeconfig k.yaml",
  "cluster --context prod add east --kubeconfig k.yaml",
  "cluster add east --kubeconfig k.yaml --kube-context k8s --context prod",
  "cluster update east --label a=b --context prod",
];
test("--context before the command, or beside --kube-context, is Gangway's", async () => {
  for (const line of clear) {
    const files = { "config.yaml": CONFIG, "k.yaml": "apiVersion: v1" };
    const { exitCode, stderr } = await run(line.split(" "), { files });
    assert.equal(exitCode, 4, `${line}\n${stderr}`);
  }
});

test("--kube-context needs a kubeconfig", async () => {
  for (const verb of ["add", "update"]) {
    const { exitCode, stderr } = await run(["cluster", verb, "east", "--kube-context", "k8s"]);
    assert.deepEqual([exitCode, stderr], [2, "error: give one of --kubeconfig, --secret and --server-file\n"]);
  }
});
