/** Whatever amounts a job asks for: it is refused with a reason, or every command can answer about it. */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import fc from "fast-check";
import { AMOUNT_ABOVE } from "../../src/core/quota/allocations.ts";
import { until } from "../cluster/harness.ts";
import { startLab } from "./lab-service.ts";

const GPU = "nvidia.com/gpu";
const NODES = [
  {
    name: "n",
    labels: { gpu: "h100" },
    // A whole number of bytes above 2^53 thousandths.
    allocatable: { cpu: "64", memory: "70368744177665", [GPU]: "8" },
  },
  { name: "m", labels: { gpu: "h100" }, allocatable: { cpu: "64", memory: "70368744177665", [GPU]: "8" } },
];
const EDGES = [2n ** 53n - 1n, 2n ** 53n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n, 10n ** 30n];
const amount = fc.oneof(
  fc.constantFrom(...EDGES).map(String),
  fc.bigInt(1n, 2n ** 80n).map(String),
  fc
    .tuple(fc.integer({ min: 1, max: 9999 }), fc.constantFrom("k", "T", "E", "Ti", "Ei", "e18", "e60"))
    .map((parts) => parts.join("")),
);
const asked = fc.record({
  requests: fc.dictionary(fc.constantFrom("cpu", "memory", "ephemeral-storage", GPU), amount, { minKeys: 1 }),
  replicas: fc.constantFrom(1, 3, 2_000_000),
});

/** Commands that read amounts. */
const READS = [
  "list -A -o wide",
  "list -A -o json",
  "explain j",
  "explain j -o json",
  "get j -o yaml",
  "queue list",
  "queue tree",
  "queue get default -o json",
  "quota list",
  "quota allocations",
  "namespace get default -o json",
  "top --once",
  "cluster list -o json",
];

suite("amounts beyond what numbers hold", () => {
  const files: Record<string, string> = {};
  let lab: Awaited<ReturnType<typeof startLab>>;

  before(async () => {
    lab = await startLab(NODES, files);
    await lab.ok(`cluster add lab --kubeconfig lab.kubeconfig --flavor gpu/h100=${GPU}:gpu=h100`);
    await lab.ok(`queue update default --quota gpu/h100=${GPU}:9007199254740991`);
  });
  after(() => lab.close());

  /** Runs a command that may refuse, and must not fail. */
  async function answered(line: string): Promise<string> {
    const { exitCode, stdout, stderr } = await lab.gangway(line.split(" "));
    assert.ok([0, 1, 3].includes(exitCode) && !/internal/i.test(stderr), `gangway ${line}: ${exitCode} ${stderr}`);
    return stdout + stderr;
  }

  function write({
    requests,
    replicas,
  }: {
    readonly requests: Readonly<Record<string, string>>;
    readonly replicas: number;
  }) {
    const resources = { requests, limits: requests };
    const template = { spec: { containers: [{ name: "main", image: "i", resources }] } };
    const runPolicy = { schedulingPolicy: { queue: "default" } };
    const spec = { replicaSpecs: { Worker: { replicas, template } }, runPolicy };
    files["j.json"] = JSON.stringify({ apiVersion: "gangway.dev/v1", kind: "Job", metadata: { name: "j" }, spec });
  }

  test("every command answers about a job with any amounts", async () => {
    await fc.assert(
      fc.asyncProperty(asked, async (job) => {
        write(job);
        await answered("can-run j.json");
        await answered("can-run j.json -o json");
        if ((await lab.gangway(["submit", "j.json"])).exitCode !== 0) return;
        await until(async () => !/NotEvaluated/.test(await lab.ok("explain j -o json")), "it was evaluated");
        for (const line of READS) await answered(line);
        await lab.ok("delete j --wait");
      }),
      { numRuns: Number(process.env["GANGWAY_AMOUNTS"] ?? 6), seed: 7 },
    );
  });

  test("an amount that no quota can have is said to be that much or more", async () => {
    write({ requests: { [GPU]: String(2n ** 52n) }, replicas: 4096 });
    const said = await answered("can-run j.json");
    assert.match(said, new RegExp(`needs ${AMOUNT_ABOVE} or more of gpu/h100; queue default may use 9007199254740991`));
  });

  test("the memory of a cluster is added exactly", async () => {
    const [found] = JSON.parse(await lab.ok("cluster list -o json")).clusters;
    assert.equal(found.allocatable.memory, String(70368744177665n * 2n));
  });
});
