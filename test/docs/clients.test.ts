/** Runs the clients of docs/api.md as their readers would. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { type Installation, startEmbeddedService } from "./installations.ts";
import { pythonWithGrpc } from "./needs.ts";
import { blocksOf, page, root } from "./pages.ts";

const python = pythonWithGrpc();
const LINES_MAX = 24;

function client(language: string): string {
  // Programs of the package for Python have tests of their own.
  const blocks = blocksOf(page("docs/api.md")).filter(({ text }) => !text.startsWith("from gangway import"));
  const [only, ...more] = blocks.filter((block) => block.language === language);
  assert.ok(only !== undefined && more.length === 0, `docs/api.md has one client in ${language}`);
  return only.text;
}

suite("clients of the API", () => {
  let service: Installation;

  before(async () => {
    service = await startEmbeddedService();
  });

  after(() => service.close());

  test("the one in TypeScript creates a job", () => {
    // In the project, so that its packages are found.
    const file = join(root, "test/docs", `.client-${process.pid}.ts`);
    writeFileSync(file, client("ts"));
    try {
      const env = { ...process.env, ...service.environment };
      assert.equal(execFileSync(process.execPath, [file], { cwd: root, env, encoding: "utf8" }), "OUTCOME_CREATED\n");
    } finally {
      rmSync(file);
    }
  });

  test("the one in Python creates a job", { skip: python === null && "needs Python 3 with grpcio" }, () => {
    const env = { ...process.env, ...service.environment };
    const ran = spawnSync(python ?? "", ["-c", client("python")], { cwd: root, env, encoding: "utf8" });
    assert.equal(ran.stdout, "OUTCOME_CREATED\n", ran.stderr);
  });
});

test("the client in Python is short", () => {
  assert.ok(client("python").split("\n").length <= LINES_MAX);
});
