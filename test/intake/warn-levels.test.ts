import assert from "node:assert/strict";
import { test } from "node:test";
import type { TopologyWish } from "../../src/core/job/placement/topology-wish.ts";
import type { SentSpec } from "../../src/core/job/request/sent.ts";
import type { ClusterLevels } from "../../src/intake/ports.ts";
import { warnLevels } from "../../src/intake/warn-levels.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { NO_CLASSES } from "../support/no-classes.ts";

const BLOCK = { name: "block", label: "example.com/block" };
const RACK = { name: "rack", label: "example.com/rack" };
const EAST = { name: "east", labels: { region: "eu" }, levels: [BLOCK, RACK] };
const WEST = { name: "west", labels: { region: "us" }, levels: [{ name: "pod", label: "oci.example/pod" }] };
const PLAIN = { name: "plain", labels: {}, levels: [] };

type Clusters = readonly ClusterLevels[];
type Asked = {
  readonly job?: TopologyWish;
  readonly worker?: TopologyWish;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly placement?: SentSpec["placement"];
};

async function warnings(
  { job, worker, annotations = {}, placement }: Asked,
  clusters: Clusters | null,
  seesCluster?: (name: string) => boolean,
): Promise<readonly string[]> {
  const template = { metadata: { annotations }, spec: { containers: [{ name: "pytorch" }] } };
  const spec: SentSpec = {
    kind: "PyTorchJob",
    replicaSpecs: { Worker: { replicas: 4, template, ...(worker && { topology: worker }) } },
    placement: { ...placement, ...(job && { topology: job }) },
  };
  const metadata = { namespace: "team", name: "a", generateName: "", labels: {}, annotations: {} };
  const facts = {
    namespace: null,
    queueExists: async () => true,
    priorityClasses: NO_CLASSES,
    nodeResources: async () => null,
    ...(clusters !== null && { clusterLevels: async () => clusters }),
  };
  const kind = OWN_KINDS.kindOf("PyTorchJob") ?? assert.fail("it is served");
  const notes = await warnLevels({ ...metadata, spec }, facts, { kind, seesCluster });
  return notes.map(({ field, message }) => `${field} ${message}`);
}

const NONE = "a level that no cluster has in which the job may run";
const RANKS = {
  slices: [
    { level: "rack", size: 2 },
    { level: "host", size: 1 },
  ],
};
const cases: Record<string, readonly [Asked, Clusters | null, readonly string[]]> = {
  "no wish": [{}, [PLAIN], []],
  "a name": [{ job: { required: "rack" } }, [PLAIN, EAST], []],
  "a label": [{ worker: { preferred: "oci.example/pod" } }, [EAST, WEST], []],
  "no cluster": [{ job: { required: "rack" } }, [], []],
  "clusters are not known": [{ job: { required: "rack" } }, null, []],
  "no cluster has it": [
    { job: { required: "row" } },
    [EAST, WEST],
    [`job.spec.placement.topology.required is row, ${NONE}; levels are: block, pod, rack`],
  ],
  "no cluster has levels": [
    { job: { preferred: "rack" } },
    [PLAIN],
    [`job.spec.placement.topology.preferred is rack, ${NONE}`],
  ],
  "a cluster has it that the job does not select": [
    { job: { required: "rack" }, placement: { clusters: ["west"] } },
    [EAST, WEST],
    [`job.spec.placement.topology.required is rack, ${NONE}; levels are: pod`],
  ],
  "a level of slices": [
    { worker: RANKS },
    [EAST],
    [`job.spec.replica_specs[Worker].topology.slices[1].level is host, ${NONE}; levels are: block, rack`],
  ],
  "an annotation of Kueue": [
    { annotations: { "kueue.x-k8s.io/podset-required-topology": "cloud.example/rack" } },
    [EAST],
    [
      'job.spec.replica_specs[Worker].template.metadata.annotations["kueue.x-k8s.io/podset-required-topology"] ' +
        `is cloud.example/rack, ${NONE}; levels are: block, rack`,
    ],
  ],
};
for (const [name, [asked, clusters, expected]] of Object.entries(cases)) {
  test(`a job is warned of levels that no cluster has: ${name}`, async () => {
    assert.deepEqual(await warnings(asked, clusters), expected);
  });
}

test("levels of clusters that the caller may not see are not named", async () => {
  const sees = async (seen: string) => warnings({ job: { required: "row" } }, [EAST, WEST], (name) => name === seen);
  assert.deepEqual(await sees("west"), [`job.spec.placement.topology.required is row, ${NONE}; levels are: pod`]);
  assert.deepEqual(await sees("none"), [`job.spec.placement.topology.required is row, ${NONE}`]);
});

test("a message names the first levels, and counts the others", async () => {
  const levels = Array.from({ length: 10 }, (_, at) => ({ name: `l${at}`, label: `l${at}` }));
  const [warning = ""] = await warnings({ job: { required: "row" } }, [{ ...EAST, levels }]);
  assert.match(warning, /; levels are: l0, l1, l2, l3, l4, l5, l6, l7, and 2 more$/);
});
