/** What a gang is told that fits, but not as near each other as it must be. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { plan } from "../../../support/plan.ts";
import { AT, amounts, cluster, flavor, type JobParts, job, node, queue, snapshot } from "../plan-world.ts";

const LEVELS = [
  { name: "rack", label: "example.com/rack" },
  { name: "host", label: "kubernetes.io/hostname" },
];

/** Free GPUs of nodes of 8, by rack. */
const FREE: readonly (readonly [rack: string, free: number])[] = [
  ["r1", 2],
  ["r1", 1],
  ["r2", 4],
];

type Told = {
  readonly roles: JobParts["roles"];
  readonly topology?: JobParts["topology"];
  readonly reason: string;
  readonly domain?: object;
  readonly words: RegExp;
};

const refused: Readonly<Record<string, Told>> = {
  "a rack that is full now": {
    roles: { Worker: { replicas: 3, gpus: 2 } },
    topology: { required: "rack" },
    reason: "DomainFull",
    domain: { level: "rack", domain: "r2", sliceSize: null, fits: 2, fitsEmpty: 3 },
    words: /in one rack; the emptiest, r2, takes 2 now on east$/,
  },
  "hosts that are full now": {
    roles: { Worker: { replicas: 6, gpus: 1 } },
    topology: { required: "host" },
    reason: "DomainFull",
    domain: { level: "host", domain: "r2/h2", sliceSize: null, fits: 4, fitsEmpty: 6 },
    words: /in one host; the emptiest, r2\/h2, takes 4 now on east$/,
  },
  "types that no host takes together": {
    roles: { Worker: { replicas: 7, gpus: 1 }, PS: { replicas: 10, cpu: 1, topology: { required: "host" } } },
    topology: { required: "host" },
    reason: "DomainFull",
    words: /in one host; the emptiest, r2\/h2, takes \d+ now on east$/,
  },
  "slices of which too few fit": {
    roles: { Worker: { replicas: 6, gpus: 1, topology: { slices: [{ level: "host", size: 3 }] } } },
    reason: "DomainFull",
    domain: { level: "host", domain: null, sliceSize: 3, fits: 3, fitsEmpty: 18 },
    words: /in slices of 3, each in one host; 3 fit so now on east$/,
  },
  "the type whose wish does not hold": {
    roles: {
      Master: { replicas: 1, gpus: 1, topology: { required: "host" } },
      Worker: { replicas: 3, gpus: 2, topology: { required: "rack" } },
    },
    reason: "DomainFull",
    words: /in one rack; the emptiest, r2, takes 2 now on east$/,
  },
  "a level that the cluster does not have": {
    roles: { Worker: { replicas: 1, gpus: 1 } },
    topology: { required: "block" },
    reason: "NoSuchLevel",
    words: /it has no level block/,
  },
};

for (const [name, { roles, topology, reason, domain, words }] of Object.entries(refused)) {
  test(`${name}: ${reason}`, () => {
    const nodes = FREE.map(([rack, free], at) => {
      const labels = { gpu: "h100", "example.com/rack": rack, "kubernetes.io/hostname": `h${at}` };
      return node(`n${at}`, "h100", { labels, free: amounts(free, 1000), allocatable: amounts(8, 1000) });
    });
    const made = plan(
      snapshot({
        waiting: [job({ name: "x", roles, ...(topology ? { topology } : {}) })],
        queues: [queue("q", { h100: 1000 })],
        clusters: [cluster("east", { nodes, flavors: [flavor("h100")], topology: LEVELS })],
      }),
      AT,
    );
    const [refusal] = made.refusals;
    const [told] = refusal?.clusters ?? [];
    assert.equal(told?.reason, reason, JSON.stringify(refusal));
    assert.match(told.message, words);
    if (domain !== undefined) assert.deepEqual(told.domain, domain);
  });
}
