/**
 * Plays what Flyte's plugins ask of their resource manager (`RegisterResourceQuota`, `AllocateResource`,
 * `ReleaseResource`) through this API: the same answers, except where Flyte's own implementation, which reads and adds
 * in separate commands, answers wrongly.
 */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, before, describe, type TestContext, test } from "node:test";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Client, credentials } from "@grpc/grpc-js";
import fc from "fast-check";
import { AllocationStatus, ReleaseOutcome, ResourceManager } from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { newDataFolder } from "../support/data-folder.ts";
import { ServiceProcess } from "../support/service.ts";
import { callsOf, startFixture } from "./fixture.ts";

const { method } = ResourceManager;
const { GRANTED, EXHAUSTED, NAMESPACE_QUOTA_EXCEEDED } = AllocationStatus;

/** `core.ResourceConstraintsSpec`: a constraint that is nil constrains nothing. */
type Constraints = { readonly project: number | null; readonly namespace: number | null };
type Execution = { readonly project: string; readonly domain: string; readonly name: string };
const UNCONSTRAINED: Constraints = { project: null, namespace: null };

/** Flyte's token of an execution; namespaces are a project's domains. */
function tokenOf({ project, domain, name }: Execution): string {
  return `ex:${project}:${domain}:${name}`;
}

type Call = ReturnType<typeof callsOf>["call"];

/** What a port of Flyte's propeller would do; pools get a prefix of their own. */
function propeller(call: Call, prefix: string) {
  const nameOf = (pool: string) => `${prefix}:${pool}`;
  const register = async (pool: string, quota: number) => {
    const settings = { quota: BigInt(quota), defaultLease: durationFromMs(0) };
    const { error } = await call(method.registerResourceQuota, { resourceNamespace: nameOf(pool), ...settings });
    assert.equal(error, null);
  };
  const allocate = async (pool: string, execution: Execution, { project, namespace }: Constraints) => {
    const { ok, error } = await call(method.allocateResource, {
      resourceNamespace: nameOf(pool),
      allocationToken: tokenOf(execution),
      project: execution.project,
      namespace: execution.domain,
      resourceConstraints: {
        ...(project === null ? {} : { projectScope: { value: BigInt(project) } }),
        ...(namespace === null ? {} : { namespaceScope: { value: BigInt(namespace) } }),
      },
    });
    assert.equal(error, null);
    return ok!.status;
  };
  const release = async (pool: string, execution: Execution) => {
    const request = { resourceNamespace: nameOf(pool), allocationToken: tokenOf(execution) };
    const { ok, error } = await call(method.releaseResource, request);
    assert.equal(error, null);
    return ok!.outcome;
  };
  const used = async (pool: string) => (await call(method.getPool, { name: nameOf(pool) })).ok?.pool?.used;
  return { register, allocate, release, used };
}

type Flyte = ReturnType<typeof propeller>;
let started = 0;

const run = (name: string, project = "team", domain = "prod"): Execution => ({ project, domain, name });

/** Flyte's contract, one call at a time: a set of tokens, counted by whole names. */
class Contract {
  readonly held = new Map<string, Execution>();
  readonly quota: number;

  constructor(quota: number) {
    this.quota = quota;
  }

  allocate(execution: Execution, { project, namespace }: Constraints): AllocationStatus {
    if (this.held.has(tokenOf(execution))) return GRANTED;
    if (this.held.size >= this.quota) return EXHAUSTED;
    const inProject = [...this.held.values()].filter((one) => one.project === execution.project);
    const inDomain = inProject.filter((one) => one.domain === execution.domain);
    const isOver = inProject.length >= (project ?? Infinity) || inDomain.length >= (namespace ?? Infinity);
    if (isOver) return NAMESPACE_QUOTA_EXCEEDED;
    this.held.set(tokenOf(execution), execution);
    return GRANTED;
  }

  release(execution: Execution): ReleaseOutcome {
    return this.held.delete(tokenOf(execution)) ? ReleaseOutcome.RELEASED : ReleaseOutcome.NOT_HELD;
  }
}

const execution = fc.record({
  project: fc.constantFrom("team", "team1"),
  domain: fc.constantFrom("dev", "prod"),
  name: fc.constantFrom("a", "b", "c"),
});
const cap = fc.option(fc.nat({ max: 3 }), { nil: null });
const command = fc.oneof(
  { weight: 3, arbitrary: fc.record({ allocate: execution, by: fc.record({ project: cap, namespace: cap }) }) },
  { weight: 2, arbitrary: fc.record({ release: execution }) },
);

function suite(flyte: (t: TestContext) => Promise<Flyte>): void {
  test("a pool grants its quota and no more, and a release makes room again", async (t) => {
    const { register, allocate, release } = await flyte(t);
    await register("default_cluster", 2);
    assert.equal(await allocate("default_cluster", run("a"), UNCONSTRAINED), GRANTED);
    assert.equal(await allocate("default_cluster", run("b"), UNCONSTRAINED), GRANTED);
    assert.equal(await allocate("default_cluster", run("c"), UNCONSTRAINED), EXHAUSTED);
    assert.equal(await release("default_cluster", run("a")), ReleaseOutcome.RELEASED);
    assert.equal(await allocate("default_cluster", run("c"), UNCONSTRAINED), GRANTED);
  });

  test("grants a held token again, also in a full pool, and answers the release of a token not held", async (t) => {
    const { register, allocate, release, used } = await flyte(t);
    await register("default_cluster", 1);
    for (let round = 0; round < 3; round++)
      assert.equal(await allocate("default_cluster", run("a"), UNCONSTRAINED), GRANTED);
    assert.equal(await used("default_cluster"), 1n);
    assert.equal(await release("default_cluster", run("b")), ReleaseOutcome.NOT_HELD);
    await release("default_cluster", run("a"));
    assert.equal(await release("default_cluster", run("a")), ReleaseOutcome.NOT_HELD);
  });

  test("a constraint that is nil constrains nothing; others cap what its project or its domain uses", async (t) => {
    const { register, allocate } = await flyte(t);
    await register("default_cluster", 10);
    const perProject = { project: 2, namespace: null };
    const perDomain = { project: null, namespace: 1 };
    assert.equal(await allocate("default_cluster", run("a"), perDomain), GRANTED);
    assert.equal(await allocate("default_cluster", run("b"), perDomain), NAMESPACE_QUOTA_EXCEEDED);
    assert.equal(await allocate("default_cluster", run("b", "team", "dev"), perDomain), GRANTED);
    assert.equal(await allocate("default_cluster", run("c", "team", "dev"), perProject), NAMESPACE_QUOTA_EXCEEDED);
    assert.equal(await allocate("default_cluster", run("c", "other"), perProject), GRANTED);
    assert.equal(await allocate("default_cluster", run("c"), UNCONSTRAINED), GRANTED);
    assert.equal(
      await allocate("default_cluster", run("d", "none"), { project: 0, namespace: null }),
      NAMESPACE_QUOTA_EXCEEDED,
    );
  });

  test("sub-namespaces are pools of their own", async (t) => {
    const { register, allocate } = await flyte(t);
    await register("qubole:default_cluster", 1);
    await register("qubole:other_cluster", 1);
    assert.equal(await allocate("qubole:default_cluster", run("a"), UNCONSTRAINED), GRANTED);
    assert.equal(await allocate("qubole:other_cluster", run("a"), UNCONSTRAINED), GRANTED);
    assert.equal(await allocate("qubole:other_cluster", run("b"), UNCONSTRAINED), EXHAUSTED);
  });

  test("registering again at each start changes the quota only, and takes nothing from who holds", async (t) => {
    const { register, allocate, release, used } = await flyte(t);
    await register("default_cluster", 2);
    await allocate("default_cluster", run("a"), UNCONSTRAINED);
    await allocate("default_cluster", run("b"), UNCONSTRAINED);
    await register("default_cluster", 1);
    assert.equal(await used("default_cluster"), 2n);
    await release("default_cluster", run("a"));
    assert.equal(await allocate("default_cluster", run("c"), UNCONSTRAINED), EXHAUSTED);
  });

  test("128 callers at once get a quota of 10 and no more, where Flyte's overshoots", async (t) => {
    const { register, allocate, used } = await flyte(t);
    await register("default_cluster", 10);
    const callers = Array.from({ length: 128 }, (_, at) => allocate("default_cluster", run(`n${at}`), UNCONSTRAINED));
    const statuses = await Promise.all(callers);
    assert.equal(statuses.filter((status) => status === GRANTED).length, 10);
    assert.equal(await used("default_cluster"), 10n);
  });

  test("project team1 is not charged to project team, where Flyte's compares prefixes", async (t) => {
    const { register, allocate } = await flyte(t);
    await register("default_cluster", 10);
    const one = { project: 1, namespace: null };
    assert.equal(await allocate("default_cluster", run("a", "team1"), UNCONSTRAINED), GRANTED);
    assert.equal(await allocate("default_cluster", run("a", "team"), one), GRANTED);
    assert.equal(await allocate("default_cluster", run("b", "team"), one), NAMESPACE_QUOTA_EXCEEDED);
  });

  test("any history of single calls is answered as Flyte's contract says", async (t) => {
    const { register, allocate, release } = await flyte(t);
    let pools = 0;
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: 5 }), fc.array(command, { maxLength: 25 }), async (quota, commands) => {
        const pool = `cluster_${pools++ % 40}`;
        await register(pool, quota);
        const contract = new Contract(quota);
        for (const one of commands) {
          if ("release" in one) assert.equal(await release(pool, one.release), contract.release(one.release));
          else assert.equal(await allocate(pool, one.allocate, one.by), contract.allocate(one.allocate, one.by));
        }
        for (const left of contract.held.values()) await release(pool, left);
      }),
      { numRuns: 60 },
    );
  });
}

describe("over the counters' specification", () => {
  suite(async (t) => propeller((await startFixture(t)).call, `flyte${started++}`));
});

describe("over the whole service", () => {
  const directory = newDataFolder("gangway-flyte-");
  const service = new ServiceProcess(["--data", directory, "--listen", "127.0.0.1:0", "--no-examples"]);
  let client: Client;
  before(async () => {
    const address = await service.listening();
    assert.ok(address !== null, service.output);
    client = new Client(address, credentials.createInsecure());
  });
  after(async () => {
    client.close();
    await service.kill();
    rmSync(directory, { recursive: true, force: true });
  });
  suite(async () => propeller(callsOf(client).call, `flyte${started++}`));
});
