/** The namespace of the context or of the environment counts in every command that takes --namespace. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { INSTALLATION } from "../../src/core/access/scope.ts";
import { startFixture } from "../api/fixture.ts";
import { MemoryResources } from "../api/memory-resources.ts";
import { knownCallers } from "../support/known-callers.ts";
import { memoryAccess } from "../support/memory-access.ts";
import { pytorchManifest, run, type World } from "./harness.ts";

/** Three ways to say a namespace. */
const WAYS: Readonly<
  Record<string, { readonly flags: readonly string[]; readonly world: (address: string) => World }>
> = {
  "the option": { flags: ["-n", "nlp"], world: (address) => ({ address }) },
  "the environment": { flags: [], world: (address) => ({ address, namespace: "nlp" }) },
  "the context": {
    flags: [],
    world: (address) => ({ files: { "config.yaml": contextFile(address, "nlp") } }),
  },
};

function contextFile(address: string, namespace: string): string {
  return `current: here\ncontexts:\n  here: {addresses: ['${address}'], namespace: ${namespace}}\n`;
}

/** A service whose caller may do everything. */
async function served(t: Parameters<typeof startFixture>[0]) {
  const known = await knownCallers(t);
  const { authorization, admin, bind } = memoryAccess({ enforces: true });
  const resources = new MemoryResources();
  const { authenticate, robots } = known;
  const { api } = await startFixture(t, { authenticate, robots, authorization, access: admin, resources });
  const root = await known.caller("oidc", "root");
  await bind({ to: { kind: "subject", name: root.subject }, role: "admin", scope: INSTALLATION });
  const settings = { projectDefault: null, namespaceDefault: null, queue: null, domain: null, maxLeaseMs: null };
  const pool = { name: "lic:x", quota: 4, defaultLeaseMs: 3_600_000, durability: null, ...settings };
  await resources.registerPool(pool, 0, "admin");
  const as = (world: World) => (words: readonly string[]) =>
    run([...words, "--token-file", "my.token"], {
      writePrivateFile: async () => {},
      ...world,
      files: { "my.token": root.token, "a.yaml": pytorchManifest("a"), ...world.files },
    });
  return { address: api.address, as };
}

for (const [name, { flags, world }] of Object.entries(WAYS)) {
  test(`a namespace that ${name} says is that of jobs, tokens, bindings, robots and questions`, async (t) => {
    const { address, as } = await served(t);
    const runs = as(world(address));
    const ok = async (line: string) => {
      const ran = await runs([...line.split(" "), ...flags]);
      assert.equal(ran.exitCode, 0, `${line}: ${ran.stderr}`);
      return ran;
    };
    assert.equal(
      (await ok("binding create b --role admin --subject x")).stdout,
      "binding/b created at namespace/nlp\n",
    );
    await ok("robot create ci --to ci.token");
    assert.equal((await ok("can-i create jobs")).stdout, "yes\n");
    await ok("submit a.yaml");
    await ok("alloc lic:x q1");
    assert.match((await ok("quota allocations -o yaml")).stdout, /namespace: nlp/);
    await ok("release lic:x q1");
    const everywhere = as({ address });
    const asks = async (line: string) => (await everywhere(line.split(" "))).stdout;
    assert.match(await asks("binding list"), /\nb +admin +subject\/x +namespace\/nlp /);
    assert.match(await asks("robot list"), /\nci +active +namespace\/nlp /);
    assert.equal(await asks("get -A -o jsonpath={.jobs[*].metadata.namespace}"), "nlp");
  });
}

test("in a context with a namespace, another scope can be said, and what counts is printed", async (t) => {
  const { address, as } = await served(t);
  const runs = as({ files: { "config.yaml": contextFile(address, "nlp") } });
  const line = (text: string) => runs(text.split(" "));
  const created = "binding create b --role admin --subject x";
  assert.equal((await line(`${created} --installation`)).stdout, "binding/b created at installation\n");
  assert.equal((await line("binding delete b")).exitCode, 0);
  assert.equal((await line(`${created} --queue research`)).stdout, "binding/b created at queue/research\n");
  const note = "at namespace/nlp, which the context or the environment says\n";
  assert.deepEqual(await line("can-i create jobs"), { exitCode: 0, stdout: "yes\n", stderr: note });
  assert.equal((await line("can-i create jobs -n nlp")).stderr, "");
  assert.equal((await line("can-i create jobs --installation")).stderr, "");
  assert.equal((await line("robot create ci --to ci.token")).stderr, note);
  assert.equal((await line("alloc lic:x q1 -n other")).exitCode, 0);
  assert.equal((await line("quota allocations")).stdout, "");
  assert.match((await line("quota allocations -A -o yaml")).stdout, /namespace: other/);
  assert.equal((await line("release lic:x q1")).exitCode, 3);
});

test("without a namespace, a binding without a scope is for the installation, and says so", async (t) => {
  const { address, as } = await served(t);
  const ran = await as({ address })(["binding", "create", "b", "--role", "admin", "--subject", "x"]);
  assert.deepEqual(ran, { exitCode: 0, stdout: "binding/b created at installation\n", stderr: "" });
});
