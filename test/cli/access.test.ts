/** `gangway can-i`, `role` and `binding`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { INSTALLATION } from "../../src/core/access/scope.ts";
import { startFixture } from "../api/fixture.ts";
import { knownCallers } from "../support/known-callers.ts";
import { memoryAccess } from "../support/memory-access.ts";
import { run } from "./harness.ts";

test("an admin makes roles and bindings, and a caller asks what it may do", async (t) => {
  const known = await knownCallers(t);
  const { authorization, admin, bind } = memoryAccess({ enforces: true });
  const { authenticate, robots } = known;
  const { api } = await startFixture(t, { authenticate, robots, authorization, access: admin });
  const root = await known.caller("oidc", "root");
  const ann = await known.caller("oidc", "ann");
  await bind({ to: { kind: "subject", name: root.subject }, role: "admin", scope: INSTALLATION });
  const as = (token: string) => (line: string) =>
    run([...line.split(" "), "--token-file", "my.token"], { address: api.address, files: { "my.token": token } });
  const [gangway, annRuns] = [as(root.token), as(ann.token)];
  const made = await gangway("role create reader --permission jobs.get --permission jobs.logs");
  assert.deepEqual([made.exitCode, made.stdout], [0, "role/reader created\n"], made.stderr);
  assert.match(
    (await gangway("role list")).stdout,
    /^NAME +SOURCE +PERMISSIONS\nadmin +built-in +.*\nreader +call +jobs\.get, jobs\.logs/ms,
  );
  assert.match((await gangway("role get reader")).stdout, /\nreader +call +jobs\.get, jobs\.logs\n$/);
  const no = await annRuns("can-i get jobs --namespace nlp");
  assert.deepEqual([no.exitCode, no.stdout], [1, "no\n"]);
  const bound = await gangway(`binding create b --role reader --subject ${ann.subject} --namespace nlp`);
  assert.equal(bound.stdout, "binding/b created at namespace/nlp\n");
  assert.match((await gangway("binding list")).stdout, /\nb +reader +subject\/login:ann +namespace\/nlp +call\n/);
  const yes = await annRuns("can-i get jobs --namespace nlp");
  assert.deepEqual([yes.exitCode, yes.stdout], [0, "yes\n"]);
  assert.equal((await annRuns("-n nlp can-i get jobs")).exitCode, 0);
  assert.equal((await annRuns("can-i get jobs -n other")).exitCode, 1);
  assert.equal((await annRuns("can-i get jobs")).exitCode, 1);
  assert.match((await annRuns("can-i fly jobs")).stderr, /jobs\.fly is not a permission/);
  const denied = await annRuns("binding delete b");
  assert.deepEqual([denied.exitCode, denied.stdout], [3, ""]);
  assert.equal((await gangway("role delete reader")).exitCode, 3);
  assert.equal((await gangway("binding delete b")).stdout, "binding/b deleted\n");
  assert.equal((await gangway("role delete reader")).stdout, "role/reader deleted\n");
  assert.equal((await annRuns("can-i get jobs --namespace nlp")).exitCode, 1);
  for (const line of [
    "binding create b --role reader",
    "binding create b --role reader --subject a --group b",
    "binding create b --role reader --subject a --queue x --namespace y",
    "binding create b --role reader --subject a --queue x --installation",
    "role create r",
  ]) {
    assert.equal((await gangway(line)).exitCode, 2, line);
  }
});
