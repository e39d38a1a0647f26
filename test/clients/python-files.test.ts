/** The client in Python: its generated files are those of the present API, and its own tests and types hold. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { pythonFiles } from "../../proto/client-python.ts";
import { hasMypy } from "../docs/needs.ts";
import { root } from "../docs/pages.ts";
import { CLIENT_FOLDER, PYTHON, runPython } from "./python.ts";

const PACKAGE = join(CLIENT_FOLDER, "gangway");
const COLUMNS = 120;

function filesOf(folder: string): readonly string[] {
  return readdirSync(join(CLIENT_FOLDER, folder))
    .filter((name) => /\.pyi?$/.test(name))
    .map((name) => join(folder, name));
}

test("descriptors, stubs and rules of manifests are those of the present API", () => {
  for (const [name, content] of pythonFiles()) {
    const present = readFileSync(join(PACKAGE, name));
    assert.ok(present.equals(Buffer.from(content)), `${name}: run "npm run generate"`);
  }
});

test("every method of the API has a typed method in both clients", () => {
  const stubs = readFileSync(join(PACKAGE, "_services.pyi"), "utf8");
  const protos = readdirSync(join(root, "clients/proto/gangway/v1"));
  const text = protos.map((name) => readFileSync(join(root, "clients/proto/gangway/v1", name), "utf8")).join("\n");
  const methods = [...text.matchAll(/^ {2}rpc (\w+)\(/gm)].map(([, name]) => name ?? "");
  assert.ok(methods.length > 50);
  for (const method of methods) assert.equal(stubs.split(`def ${method}(`).length - 1, 2, method);
  // The client knows streams by their names.
  const streams = [...text.matchAll(/^ {2}rpc (\w+)\(\w+\) returns \(stream /gm)].map(([, name]) => name);
  const known = /_STREAMS = \((.*)\)/.exec(readFileSync(join(PACKAGE, "_services.py"), "utf8"))?.[1] ?? "";
  assert.deepEqual([...known.matchAll(/"(\w+)"/g)].map(([, name]) => name).sort(), streams.sort());
});

test("both clients have the same methods, and the version of the service", () => {
  const methodsOf = (file: string) => {
    const [, text = ""] = readFileSync(join(PACKAGE, file), "utf8").split(/^class (?:Async)?Client:$/m);
    const [body = ""] = text.split(/^class /m);
    return [...body.matchAll(/^ {4}(?:async )?def ([a-z]\w+)\(/gm)].map(([, name]) => name);
  };
  assert.ok(methodsOf("client.py").length > 15);
  assert.deepEqual(methodsOf("aio.py"), methodsOf("client.py"));
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  assert.match(readFileSync(join(PACKAGE, "_lines.py"), "utf8"), new RegExp(`^VERSION = "${version}"$`, "m"));
  assert.match(
    readFileSync(join(CLIENT_FOLDER, "pyproject.toml"), "utf8"),
    new RegExp(`^version = "${version}"$`, "m"),
  );
});

test("lines of Python end at 120 columns", () => {
  const wide = ["gangway", "tests", "examples"].flatMap(filesOf).flatMap((file) => {
    const lines = readFileSync(join(CLIENT_FOLDER, file), "utf8").split("\n");
    return lines.flatMap((line, at) => (line.length > COLUMNS ? [`${file}:${at + 1}`] : []));
  });
  assert.deepEqual(wide, []);
});

suite("Python's own tests", { skip: PYTHON === null && "needs Python 3 with grpcio and PyYAML" }, () => {
  test("its decisions hold: retries, watches, logs, tokens, manifests, contexts", () => {
    runPython(["-m", "unittest", "discover", "-q", "-s", "clients/python/tests"]);
  });

  test("package, tests and examples have strict types", { skip: !hasMypy() && "needs mypy (python3-mypy)" }, () => {
    const files = ["tests", "examples"].flatMap(filesOf);
    const args = ["-m", "mypy", "--no-incremental", "--cache-dir=/dev/null", "--strict", "gangway", ...files];
    runPython(args, { cwd: CLIENT_FOLDER, environment: { MYPYPATH: "tests" } });
  });
});
