/** Robots of namespaces and projects, in a whole service: who makes, sees and revokes them, and how many. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { startEmbedded } from "../../src/compose/embedded.ts";
import { readConfig } from "../../src/config/config.ts";
import { type AccessScopeSchema, AccessService } from "../../src/gen/gangway/v1/access_service_pb.ts";
import { NamespaceService } from "../../src/gen/gangway/v1/namespace_service_pb.ts";
import { callsOf, type Outcome } from "../api/fixture.ts";
import { withToken } from "../api/with-token.ts";
import { addDatabase } from "../support/data-folder.ts";
import { signingKey, TestIssuer } from "../support/issuer.ts";
import { OWN_KINDS } from "../support/kinds.ts";

/** Ann administers namespace nlp, pat project ml; vi only sees the robots of nlp; bob has nothing to do with robots. */
const ACCESS = {
  roles: [
    { name: "robot-viewer", permissions: ["robots.get"] },
    { name: "cleaner", permissions: ["namespaces.get", "namespaces.delete"] },
  ],
  bindings: [
    { name: "root", subject: "login:root", role: "admin" },
    { name: "ann", subject: "login:ann", role: "admin", scope: { namespace: "nlp" } },
    { name: "pat", subject: "login:pat", role: "admin", scope: { project: "ml" } },
    { name: "vi", subject: "login:vi", role: "robot-viewer", scope: { namespace: "nlp" } },
    { name: "bob", subject: "login:bob", role: "cleaner" },
  ],
};

type Scope = MessageInitShape<typeof AccessScopeSchema>;
const inNamespace = (value: string): Scope => ({ of: { case: "namespace", value } });
const inProject = (value: string): Scope => ({ of: { case: "project", value } });
const NLP = inNamespace("nlp");

/** Namespaces nlp and vision of project ml. */
async function serve(t: TestContext) {
  const issuer = await TestIssuer.start(await signingKey("one", "ES256"));
  t.after(() => issuer.close());
  const folder = mkdtempSync(join(tmpdir(), "gangway-robots-"));
  addDatabase(join(folder, "data"));
  const write = (name: string, value: unknown) => {
    writeFileSync(join(folder, name), JSON.stringify(value));
    return join(folder, name);
  };
  const issuers = [{ issuer: issuer.url, audiences: ["gangway"], subjectPrefix: "login:" }];
  const config = readConfig(folder, {
    GANGWAY_AUTHENTICATION_FILE: write("authentication.yaml", { issuers, robots: true }),
    GANGWAY_ACCESS_FILE: write("access.yaml", ACCESS),
  });
  const options = { listen: "127.0.0.1:0", insecure: false, data: join(folder, "data"), simulate: false };
  const service = await startEmbedded({ ...options, examples: false } as never, config, OWN_KINDS);
  const client = new Client(service.address, credentials.createInsecure());
  t.after(async () => {
    client.close();
    await service.close();
    rmSync(folder, { recursive: true });
  });
  const withSecret = (secret: string) => {
    const { call } = callsOf(withToken(client, secret));
    const { createRobotToken, listRobotTokens, revokeRobotToken, checkAccess } = AccessService.method;
    return {
      call,
      make: (name: string, scope?: Scope) => call(createRobotToken, { name, ...(scope && { scope }) }),
      robots: async () => ok(await call(listRobotTokens, {})).robots.map(({ name }) => name),
      revoke: (name: string) => call(revokeRobotToken, { name }),
      may: async (permission: string, scope: Scope) => ok(await call(checkAccess, { permission, scope })).allowed,
    };
  };
  const as = async (sub: string) => withSecret(await issuer.sign({ sub }));
  const root = await as("root");
  for (const name of ["nlp", "vision"]) {
    ok(await root.call(NamespaceService.method.createNamespace, { namespace: { name, project: "ml" } }));
  }
  const limit = async (tenant: { case: "namespace" | "project"; value: string }, maxRobotTokens: number) =>
    ok(await root.call(NamespaceService.method.setTenantLimits, { limits: { tenant, maxRobotTokens } }));
  return {
    root,
    ann: await as("ann"),
    pat: await as("pat"),
    vi: await as("vi"),
    bob: await as("bob"),
    withSecret,
    limit,
  };
}

function ok<T>({ ok: answer, error }: Outcome<T>): T {
  assert.equal(error, null, error?.message);
  return answer ?? assert.fail();
}

function reasonOf({ error }: Outcome<unknown>): string {
  return error === null ? "OK" : `${error.code} ${error.reason}`;
}

test("who administers a namespace or a project makes, sees and revokes its robots, and no others", async (t) => {
  const { root, ann, pat, vi, bob } = await serve(t);
  const made = ok(await ann.make("nlp-ci", NLP));
  assert.deepEqual(made.robot?.scope?.of, NLP.of);
  assert.equal(made.robot?.owner, "login:ann");
  ok(await pat.make("ml-ci", inProject("ml")));
  ok(await pat.make("vision-ci", inNamespace("vision")));
  assert.equal(ok(await root.make("all-ci")).robot?.scope?.of.case, undefined);

  for (const scope of [undefined, {}, inNamespace("vision"), inNamespace("nowhere"), inProject("ml")]) {
    assert.equal(reasonOf(await ann.make("more", scope)), "PERMISSION_DENIED PERMISSION_DENIED");
  }
  for (const caller of [vi, bob]) {
    assert.equal(reasonOf(await caller.make("more", NLP)), "PERMISSION_DENIED PERMISSION_DENIED");
  }
  assert.deepEqual(await ann.robots(), ["nlp-ci"]);
  assert.deepEqual(await vi.robots(), ["nlp-ci"]);
  assert.deepEqual(await pat.robots(), ["ml-ci", "nlp-ci", "vision-ci"]);
  assert.deepEqual(await root.robots(), ["all-ci", "ml-ci", "nlp-ci", "vision-ci"]);
  assert.equal(
    reasonOf(await bob.call(AccessService.method.listRobotTokens, {})),
    "PERMISSION_DENIED PERMISSION_DENIED",
  );

  for (const name of ["vision-ci", "ml-ci", "all-ci", "nobody"]) {
    const { error } = await ann.revoke(name);
    assert.deepEqual([error?.code, error?.message], ["NOT_FOUND", `robot ${name} does not exist`]);
  }
  assert.equal(reasonOf(await bob.revoke("nlp-ci")), "NOT_FOUND ROBOT_NOT_FOUND");
  assert.equal(reasonOf(await vi.revoke("nlp-ci")), "PERMISSION_DENIED PERMISSION_DENIED");
  assert.ok(ok(await ann.revoke("nlp-ci")).robot?.revokeTime);
  assert.ok(ok(await pat.revoke("vision-ci")).robot?.revokeTime);
});

test("a robot has what bindings give it, and nobody makes one that has more than its maker", async (t) => {
  const { root, ann, withSecret } = await serve(t);
  const { createBinding } = AccessService.method;
  const bind = (name: string, subject: string, role: string, scope: Scope) => {
    return { binding: { name, to: { case: "subject", value: subject } as const, role, scope } };
  };
  const { secret } = ok(await ann.make("nlp-ci", NLP));
  const robot = withSecret(secret);
  assert.equal(await robot.may("jobs.create", NLP), false);
  ok(await ann.call(createBinding, bind("ci", "robot:nlp-ci", "submitter", NLP)));
  assert.deepEqual(
    [await robot.may("jobs.create", NLP), await robot.may("jobs.create", inNamespace("vision"))],
    [true, false],
  );
  for (const [name, scope] of Object.entries({ boss: {}, other: inNamespace("vision") })) {
    ok(await root.call(createBinding, bind(name, `robot:${name}`, "submitter", scope)));
    // Ann may not see the binding, so that she does not learn where it is.
    const { error } = await ann.make(name, NLP);
    assert.deepEqual([error?.code, error?.reason, error?.metadata], ["PERMISSION_DENIED", "BEYOND_CALLER", {}]);
    assert.equal(
      error?.message,
      `bindings give robot:${name} permissions that the caller lacks itself, so it cannot give them away`,
    );
  }
  assert.deepEqual(await root.robots(), ["nlp-ci"]);
});

test("robots beyond a limit of their namespace or project are refused, until the limit changes", async (t) => {
  const { root, ann, pat, limit } = await serve(t);
  await limit({ case: "namespace", value: "nlp" }, 1);
  ok(await ann.make("one", NLP));
  const { error } = await ann.make("two", NLP);
  assert.deepEqual(
    [error?.code, error?.reason, error?.retries, error?.quota],
    [
      "RESOURCE_EXHAUSTED",
      "TOO_MANY_ROBOT_TOKENS",
      true,
      {
        subject: "namespace nlp",
        description:
          "has 1 robot whose token counts, and its max_robot_tokens is 1: revoke one first: gangway robot revoke NAME",
      },
    ],
  );
  assert.deepEqual(await root.robots(), ["one"]);
  await limit({ case: "namespace", value: "nlp" }, 3);
  ok(await ann.make("two", NLP));
  const { limits } = await limit({ case: "project", value: "ml" }, 2);
  assert.deepEqual([limits?.maxRobotTokens, limits?.use?.robotTokens], [2, 2]);
  for (const [caller, scope] of [
    [ann, NLP],
    [pat, inNamespace("vision")],
    [pat, inProject("ml")],
  ] as const) {
    assert.equal((await caller.make("three", scope)).error?.quota?.subject, "project ml");
  }
  ok(await root.make("of-all"));
  ok(await ann.revoke("one"));
  ok(await pat.make("three", inProject("ml")));
});

test("a scope that has no robots is refused with its field, and changes nothing", async (t) => {
  const { root, ann, bob } = await serve(t);
  const label =
    "must be a DNS label: at most 63 lower-case letters, digits and '-', " +
    "beginning and ending with one of the first two";
  const other = "must be a namespace or a project; omit it for a robot of the installation";
  const cases: readonly (readonly [Scope, field: string, description: string])[] = [
    [{ of: { case: "queue", value: "default" } }, "scope", other],
    [{ of: { case: "poolPrefix", value: "ex:team" } }, "scope", other],
    [{ of: { case: "cluster", value: "east" } }, "scope", other],
    [inNamespace("Not_a_name"), "scope.namespace", label],
    [inProject(""), "scope.project", label],
  ];
  for (const [scope, field, description] of cases) {
    const { error } = await root.make("ci", scope);
    assert.deepEqual([error?.code, error?.fields], ["INVALID_ARGUMENT", [{ field, description }]]);
  }
  assert.equal(reasonOf(await root.make("ci", inNamespace("nowhere"))), "NOT_FOUND NAMESPACE_NOT_FOUND");
  assert.deepEqual(await root.robots(), []);

  ok(await ann.make("ci", NLP));
  for (const [caller, by] of [
    [root, "robot ci of namespace nlp"],
    [bob, "a robot"],
  ] as const) {
    const { error } = await caller.call(NamespaceService.method.deleteNamespace, { name: "nlp" });
    assert.deepEqual([error?.precondition, error?.message], ["NAMESPACE_IN_USE", `namespace nlp is in use by ${by}`]);
  }
});
