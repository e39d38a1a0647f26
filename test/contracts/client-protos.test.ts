/** The protos for clients in other languages: those of the service, without the rules that only it checks. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fromBinary, toJson } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { withoutRules } from "../../proto/client-protos.ts";
import type { Json } from "../../src/runtime/json.ts";
import { hasProtoc } from "../docs/needs.ts";
import { root } from "../docs/pages.ts";

const FOLDER = join(root, "clients/proto");
const RULES_ONLY = "gangway/v1/bounds.proto";
const files = readdirSync(join(FOLDER, "gangway/v1")).map((name) => `gangway/v1/${name}`);

/** The files of a set of descriptors, by name. */
function filesOf(descriptors: Uint8Array): ReadonlyMap<string, FileDescriptorProto> {
  return new Map(fromBinary(FileDescriptorSetSchema, descriptors).file.map((file) => [file.name, file]));
}

/** The declarations of a file: all but options, places in the text, and imports of rules. */
function declarationsOf(file: FileDescriptorProto): Json {
  const dropped = ["options", "sourceCodeInfo", "dependency"];
  const bare = (json: unknown): unknown => {
    if (Array.isArray(json)) return json.map(bare);
    if (typeof json !== "object" || json === null) return json;
    return Object.fromEntries(
      Object.entries(json).flatMap(([key, value]) => (dropped.includes(key) ? [] : [[key, bare(value)]])),
    );
  };
  return bare(toJson(FileDescriptorProtoSchema, file)) as Json;
}

test("the protos for clients declare what the service serves, and nothing of its rules", () => {
  const buf = join(root, "node_modules/.bin/buf");
  const built = filesOf(execFileSync(buf, ["build", "-o", "-"], { cwd: FOLDER, maxBuffer: 64 * 1024 * 1024 }));
  const served = filesOf(readFileSync(join(root, "src/gen/gangway.binpb")));
  const ours = [...served.keys()].filter((name) => name.startsWith("gangway/") && name !== RULES_ONLY);
  assert.deepEqual([...built.keys()].filter((name) => name.startsWith("gangway/")).sort(), ours.sort());
  for (const name of ours) {
    const [client, service] = [built.get(name), served.get(name)];
    assert.ok(client !== undefined && service !== undefined);
    assert.deepEqual(declarationsOf(client), declarationsOf(service), name);
    const imported = service.dependency.filter((one) => one !== RULES_ONLY && !one.startsWith("buf/"));
    assert.deepEqual(client.dependency, imported, name);
    assert.equal(client.options?.goPackage, "gangway.dev/gangway/v1;gangwayv1", name);
    assert.deepEqual(client.options?.$unknown ?? [], [], name);
  }
});

test("they are those of the present protos, and each comment of a declaration is there", () => {
  for (const name of files) {
    const source = readFileSync(join(root, "proto", name), "utf8");
    const client = readFileSync(join(FOLDER, name), "utf8");
    assert.equal(client, withoutRules(source), `${name}: run "npm run generate"`);
    const comments = (text: string) => text.match(/^ *\/\/.*$/gm) ?? [];
    assert.deepEqual(comments(client), comments(source), name);
  }
});

const cases: Readonly<Record<string, readonly [string, string]>> = {
  "one rule": ["string a = 1 [(buf.validate.field).string.max_bytes = 9];", "string a = 1;"],
  "a rule between options": [
    'int32 a = 1 [deprecated = true, (buf.validate.field).cel = {id: "a, b", message: "]"}, json_name = "x"];',
    'int32 a = 1 [deprecated = true, json_name = "x"];',
  ],
  "a rule over several lines": ["string a = 1 [(buf.validate.field).string = {\n  min_len: 1\n}];", "string a = 1;"],
  "brackets in a comment": [
    "// [(buf.validate.field).x = 1]\nstring a = 1;",
    "// [(buf.validate.field).x = 1]\nstring a = 1;",
  ],
  "a rule of a message": [
    'message A {\n  option (buf.validate.message).cel = {id: ";}"};\n  int32 a = 1;\n}',
    "message A {\n  int32 a = 1;\n}",
  ],
  "another option": ["message A {\n  option deprecated = true;\n}", "message A {\n  option deprecated = true;\n}"],
};
for (const [name, [proto, expected]] of Object.entries(cases)) {
  test(`rules are left out: ${name}`, () => assert.equal(withoutRules(proto), expected));
}

test("protoc takes them", { skip: !hasProtoc() && "needs protoc" }, (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gangway-protoc-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const out = join(folder, "client.binpb");
  execFileSync("protoc", ["-I", FOLDER, "--include_imports", `--descriptor_set_out=${out}`, ...files]);
  const built = filesOf(readFileSync(out));
  assert.deepEqual([...built.keys()].filter((name) => name.startsWith("gangway/")).sort(), [...files].sort());
});
