/** The file with roles and bindings: what it gives, what is refused, and that it is checked like a request. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readConfig } from "../../src/config/config.ts";

const directory = mkdtempSync(join(tmpdir(), "gangway-access-"));
after(() => rmSync(directory, { recursive: true, force: true }));

function fromFile(text: string) {
  const path = join(directory, "access.yaml");
  writeFileSync(path, text);
  return readConfig(directory, { GANGWAY_ACCESS_FILE: path }).accessFile;
}

test("a file gives roles and bindings at scopes of every kind", () => {
  assert.equal(readConfig(directory, {}).accessFile, null);
  const source = fromFile(`
only: true
roles:
  - {name: reader, permissions: [jobs.get, jobs.logs]}
bindings:
  - {name: root, subject: "dns:me.example", role: admin}
  - {name: readers, group: "login:ml", role: reader, scope: {project: ml}}
  - {name: pools, subject: "robot:ci", role: submitter, scope: {poolPrefix: "ex:warehouse"}}
`);
  assert.deepEqual(source?.value, {
    only: true,
    roles: [{ name: "reader", permissions: ["jobs.get", "jobs.logs"] }],
    bindings: [
      {
        name: "root",
        to: { kind: "subject", name: "dns:me.example" },
        role: "admin",
        scope: { kind: "installation", name: "" },
      },
      {
        name: "readers",
        to: { kind: "group", name: "login:ml" },
        role: "reader",
        scope: { kind: "project", name: "ml" },
      },
      {
        name: "pools",
        to: { kind: "subject", name: "robot:ci" },
        role: "submitter",
        scope: { kind: "pool", name: "ex:warehouse" },
      },
    ],
  });
  assert.deepEqual(source?.parse("bindings: []"), { only: false, roles: [], bindings: [] });
  assert.throws(() => source?.parse("bindings: {}"), /bindings must be a list/);
});

const refused: Readonly<Record<string, { text: string; error: RegExp }>> = {
  "an unknown member": { text: "binding: []", error: /binding is unknown; known are only, roles, bindings/ },
  "a permission that does not exist": {
    text: "roles: [{name: a, permissions: [jobs.fly]}]",
    error: /roles\[0\]\.permissions\[0\] jobs\.fly is not a permission; permissions are jobs\.create/,
  },
  "a built-in role": {
    text: "roles: [{name: viewer, permissions: [jobs.get]}]",
    error: /must not be that of a built-in/,
  },
  "a role that does not exist, where the file is the only source": {
    text: "only: true\nbindings: [{name: a, subject: x, role: none}]",
    error: /bindings\[0\]\.role role none does not exist/,
  },
  "a subject and a group": {
    text: "bindings: [{name: a, subject: x, group: y, role: viewer}]",
    error: /bindings\[0\] must have either subject or group/,
  },
  nobody: { text: "bindings: [{name: a, role: viewer}]", error: /must have either subject or group/ },
  "two scopes": {
    text: "bindings: [{name: a, subject: x, role: viewer, scope: {queue: a, cluster: b}}]",
    error: /bindings\[0\]\.scope must have at most one member/,
  },
  "a wrong scope": {
    text: "bindings: [{name: a, subject: x, role: viewer, scope: {namespace: A_B}}]",
    error: /bindings\[0\]\.scope\.namespace must be a DNS label/,
  },
  "a wrong pool": {
    text: 'bindings: [{name: a, subject: x, role: viewer, scope: {poolPrefix: "a:"}}]',
    error: /bindings\[0\]\.scope\.poolPrefix must name a pool/,
  },
  "a name that is given twice": {
    text: "bindings: [{name: a, subject: x, role: viewer}, {name: a, subject: y, role: viewer}]",
    error: /bindings\[1\]\.name is that of another one/,
  },
};
for (const [name, { text, error }] of Object.entries(refused)) {
  test(`a file is refused for ${name}`, () => {
    assert.throws(() => fromFile(text), error);
  });
}
