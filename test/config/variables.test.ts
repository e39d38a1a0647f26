import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { type Config, readConfig } from "../../src/config/config.ts";
import { VARIABLES, type Variable } from "../../src/config/variables.ts";

const variables: readonly (readonly [string, Variable])[] = Object.entries(VARIABLES);
const listed = variables.map(([name]) => name).sort();

/** A file that passes for PEM and for settings of pods: its only line is a comment in YAML. */
const FILE = new URL("./anything.pem", import.meta.url).pathname;
const EVERYTHING: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    variables.flatMap(([name, { default: value }]) => (value === undefined ? [] : [[name, value]])),
  ),
  GANGWAY_CREDENTIALS_KEY: Buffer.alloc(32).toString("base64"),
  GANGWAY_POD_CONFIG: FILE,
  DATABASE_URL: "postgres://db/gangway",
  DATABASE_DIRECT_URL: "postgres://db/gangway",
  REDIS_URL: "rediss://r",
  REDIS_CA_FILE: FILE,
  REDIS_CERT_FILE: FILE,
  REDIS_KEY_FILE: FILE,
};

/** The names of the variables that reading this environment asks for. */
function readFrom(values: Readonly<Record<string, string>>): Set<string> {
  const read = new Set<string>();
  const env = new Proxy(values, {
    get: (target, name) => {
      read.add(String(name));
      return target[String(name)];
    },
  });
  readConfig("/tmp", env);
  return read;
}

test("the list of variables has each one that the configuration reads, and no other", () => {
  const read = new Set([...readFrom({}), ...readFrom(EVERYTHING)]);
  assert.deepEqual([...read].sort(), listed);
});

test("the list of variables has each one that the configuration's text names", () => {
  const text = readFileSync(new URL("../../src/config/config.ts", import.meta.url), "utf8");
  const named = [...text.matchAll(/"((?:GANGWAY|DATABASE|REDIS|OTEL|NO|NAMESPACES)(?:_[A-Z]+)*)"/g)].map(
    ([, name]) => name,
  );
  assert.ok(named.length > 20, "names were found");
  assert.deepEqual(
    named.filter((name) => !listed.includes(name ?? "")),
    [],
  );
});

test("a variable that is set to its default changes nothing", () => {
  const { podConfigFile: _, ...without } = readConfig("/tmp", {});
  for (const [name, { default: value }] of variables) {
    if (value === undefined) continue;
    const { podConfigFile: __, ...config }: Config = readConfig("/tmp", { [name]: value });
    assert.deepEqual(config, without, name);
  }
});

test("each variable's meaning is one sentence, and its default is allowed", () => {
  for (const [name, { default: value, meaning, range, values }] of variables) {
    assert.match(meaning, /^[A-Z`].*\.$/, name);
    if (range !== undefined) assert.ok(Number(value) >= range[0] && Number(value) <= range[1], name);
    if (values !== undefined) assert.ok(values.includes(value ?? ""), name);
  }
});

test("the level of pods and the reserved namespaces are read, and another level is refused with those allowed", () => {
  const config = readConfig("/tmp", {
    GANGWAY_POD_SECURITY: "restricted",
    GANGWAY_RESERVED_NAMESPACES: "gangway, ml ",
  });
  assert.deepEqual([config.podSecurity, config.reservedNamespaces], ["restricted", ["gangway", "ml"]]);
  const plain = readConfig("/tmp", {});
  assert.deepEqual([plain.podSecurity, plain.reservedNamespaces], [null, ["gangway"]]);
  assert.throws(
    () => readConfig("/tmp", { GANGWAY_POD_SECURITY: "strict" }),
    /allowed are privileged, baseline, restricted/,
  );
});
