import assert from "node:assert/strict";
import { test } from "node:test";
import type { SentSpec } from "../../src/core/job/request/sent.ts";
import { warnSimulated } from "../../src/intake/warn-simulated.ts";
import { OWN_KINDS } from "../support/kinds.ts";
import { NO_CLASSES } from "../support/no-classes.ts";

const EAST = { name: "east", labels: { region: "eu" }, simulated: true };
const WEST = { name: "west", labels: { region: "us" }, simulated: true };
const REAL = { name: "real", labels: { region: "eu" }, simulated: false };

async function messages(
  placement: SentSpec["placement"],
  clusters: readonly (typeof EAST)[] | null,
  { kind = "PyTorchJob", seesCluster }: { kind?: string; seesCluster?: (name: string) => boolean } = {},
): Promise<readonly string[]> {
  const metadata = { namespace: "team", name: "a", generateName: "", labels: {}, annotations: {} };
  const sent = { ...metadata, spec: { kind, replicaSpecs: {}, ...(placement === undefined ? {} : { placement }) } };
  const facts = {
    namespace: null,
    queueExists: async () => true,
    priorityClasses: NO_CLASSES,
    nodeResources: async () => null,
  };
  const all = clusters === null ? facts : { ...facts, clusters };
  const notes = await warnSimulated(sent, all, { kinds: OWN_KINDS, seesCluster });
  return notes.map(({ field, message }) => `${field}: ${message}`);
}

const ONLY = "job.spec.placement: only simulated clusters may take the job, and no program runs there: ";
const SOME = "job.spec.placement: simulated clusters may take the job, and no program runs there: ";

const cases: Record<string, readonly [SentSpec["placement"], readonly (typeof EAST)[] | null, readonly string[]]> = {
  "all clusters are simulated": [undefined, [EAST, WEST], [`${ONLY}east, west`]],
  "some are": [undefined, [EAST, REAL], [`${SOME}east`]],
  "its placement names a simulated one": [{ clusters: ["east"] }, [EAST, REAL], [`${ONLY}east`]],
  "its placement names a real one": [{ clusters: ["real"] }, [EAST, REAL], []],
  "its placement selects by label": [{ clusterSelector: { region: "eu" } }, [EAST, REAL, WEST], [`${SOME}east`]],
  "no cluster is simulated": [undefined, [], []],
  "clusters are not known": [undefined, null, []],
};
for (const [name, [placement, clusters, expected]] of Object.entries(cases)) {
  test(`a job is warned of the simulated clusters that may take it: ${name}`, async () => {
    assert.deepEqual(await messages(placement, clusters), expected);
  });
}

test("a job of a kind that is not served gets no such warning", async () => {
  assert.deepEqual(await messages(undefined, [EAST], { kind: "Gone" }), []);
});

test("clusters that the caller may not see are not named", async () => {
  const seesWest = await messages(undefined, [EAST, WEST], { seesCluster: (name) => name === "west" });
  assert.deepEqual(seesWest, [`${ONLY}west`]);
  const seesNone = await messages(undefined, [EAST, WEST], { seesCluster: () => false });
  assert.deepEqual(seesNone, [ONLY.replace(/: $/, "")]);
});
