/** Runs the Python of docs/checkpoints.md as training code would. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { hasPython } from "./needs.ts";
import { blocksOf, page } from "./pages.ts";

const [module = "", use = ""] = blocksOf(page("docs/checkpoints.md"))
  .filter(({ language }) => language === "python")
  .map(({ text }) => text);

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "gangway-checkpoints-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Runs Python after the module of the page, and returns what it prints. */
function python(code: string, env: Readonly<Record<string, string>> = {}): string {
  const ran = spawnSync("python3", ["-c", `${module}\n${code}`], {
    encoding: "utf8",
    env: { ...process.env, ...env },
  });
  assert.equal(ran.status, 0, ran.stderr);
  return ran.stdout;
}

suite("checkpoints under a fence", { skip: !hasPython() && "needs python3" }, () => {
  test("a later admission continues, and an earlier one can write nothing more", (t) => {
    const said = python(`
folder = ${JSON.stringify(folder(t))}
old = Checkpoints(folder, 5)
print(old.latest())
old.save(9, b"nine")
old.save(10, b"ten")
again = Checkpoints(folder, 5)
print(again.latest())
new = Checkpoints(folder, 68719476737)
print(new.latest())
before = sorted(os.listdir(folder))
for late in (lambda: old.save(11, b"late"), lambda: Checkpoints(folder, 6)):
    try:
        late()
        print("written")
    except Fenced as refusal:
        print(refusal)
print(before == sorted(os.listdir(folder)))
new.save(2, b"two")
print(new.latest())
`);
    assert.deepEqual(said.trimEnd().split("\n"), [
      "None",
      "(10, b'ten')",
      "(10, b'ten')",
      "fence 68719476737 writes here, and this pod has 5",
      "fence 68719476737 writes here, and this pod has 6",
      "True",
      "(2, b'two')",
    ]);
  });

  test("the fence is that of the pod", (t) => {
    const path = folder(t);
    const code = `${use.replace("/checkpoints/llama", path)}\nprint(step, state, checkpoints.fence)`;
    assert.equal(python(code, { GANGWAY_FENCE: "7" }), "0 None 7\n");
  });

  test("of two programs that write at once, the one with the lower fence ends", async (t) => {
    const path = folder(t);
    const loop = (fence: number, end: string) =>
      spawn("python3", [
        "-c",
        `${module}
import sys
mine = Checkpoints(${JSON.stringify(path)}, ${fence})
print("claimed", flush=True)
step = 0
try:
    while ${end}:
        step += 1
        mine.save(step, b"x" * 1000)
except Fenced:
    sys.exit(3)
`,
      ]);
    const old = loop(5, "True");
    const oldEnded = once(old, "exit");
    await once(old.stdout, "data");
    const later = loop(6, "step < 20");
    assert.deepEqual(await once(later, "exit"), [0, null]);
    assert.deepEqual(await oldEnded, [3, null]);
    const names = readdirSync(path).filter((name) => name.endsWith(".ckpt"));
    assert.equal(names.filter((name) => Number(name.slice(0, 20)) === 6).length, 20);
    assert.ok(readdirSync(path).every((name) => !name.endsWith(".part")));
  });
});
