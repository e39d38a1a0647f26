import assert from "node:assert/strict";
import { test } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  type AllocateResourceRequestSchema,
  type BatchAllocateResourcesRequestSchema,
  type RegisterResourceQuotaRequestSchema,
  ResourceManager,
} from "../../src/gen/gangway/v1/resource_manager_pb.ts";
import { startFixture } from "./fixture.ts";

const { method } = ResourceManager;
const AMOUNT_MAX = 2n ** 53n - 1n;
const POOL = "ex:warehouse";

type Wrong<Request> = { request: Request; fields: Record<string, RegExp> };
type Line = MessageInitShape<typeof AllocateResourceRequestSchema>;

const fine = { resourceNamespace: POOL, allocationToken: "a" };
const line = (more: Omit<Line, "$typeName">): Line => ({ ...fine, ...more });

const allocations: Record<string, Wrong<Line>> = {
  "nothing at all": {
    request: {},
    fields: { resource_namespace: /must name a pool such as gpu\/h100/, allocation_token: /1 to 512 bytes/ },
  },
  "a pool with a space": { request: line({ resourceNamespace: "a pool" }), fields: { resource_namespace: /letters/ } },
  "a pool with an empty part": { request: line({ resourceNamespace: "ex::a" }), fields: { resource_namespace: /':'/ } },
  "a pool whose name is too long": {
    request: line({ resourceNamespace: "a".repeat(129) }),
    fields: { resource_namespace: /128/ },
  },
  "a token of more than 512 bytes, although fewer characters": {
    request: line({ allocationToken: "é".repeat(257) }),
    fields: { allocation_token: /512 bytes/ },
  },
  "a token with a line break": {
    request: line({ allocationToken: "a\nb" }),
    fields: { allocation_token: /printable/ },
  },
  "no amount": { request: line({ amount: 0n }), fields: { amount: /1 and .*9007199254740991|equal to 1/ } },
  "an amount that counters cannot hold": {
    request: line({ amount: AMOUNT_MAX + 1n }),
    fields: { amount: /9007199254740991/ },
  },
  "a cap below zero": {
    request: line({ resourceConstraints: { projectScope: { value: -1n } } }),
    fields: { "resource_constraints.project_scope.value": /0/ },
  },
  "scopes that are no names": {
    request: line({ project: "Team", namespace: "a/b" }),
    fields: { project: /DNS label/, namespace: /DNS label/ },
  },
  "a token with a space that nobody sees": {
    request: line({ allocationToken: "a\u200bb" }),
    fields: { allocation_token: /printable/ },
  },
  "a holder that would pass for a job": { request: line({ holder: "job/default/a/1" }), fields: { holder: /job\// } },
  "a lease of nothing": { request: line({ lease: durationFromMs(0) }), fields: { lease: /greater than 0s/ } },
  "a lease of two years": { request: line({ lease: { seconds: 63_244_800n } }), fields: { lease: /31622400s/ } },
  "a priority that is none": { request: line({ priority: 2_000_000_000 }), fields: { priority: /1000000000/ } },
  "several of them at once": {
    request: { resourceNamespace: "?", allocationToken: "", amount: -1n, priority: -2_000_000_000, project: "_" },
    fields: { resource_namespace: /./, allocation_token: /./, amount: /./, priority: /./, project: /./ },
  },
};

const registrations: Record<string, Wrong<MessageInitShape<typeof RegisterResourceQuotaRequestSchema>>> = {
  "no quota": { request: { resourceNamespace: POOL }, fields: { quota: /required/ } },
  "a quota below zero": { request: { resourceNamespace: POOL, quota: -1n }, fields: { quota: /0/ } },
  "limits that counters cannot hold": {
    request: { resourceNamespace: POOL, quota: 1n, projectDefault: AMOUNT_MAX + 1n, namespaceDefault: -1n },
    fields: { project_default: /9007199254740991/, namespace_default: /9007199254740991|0/ },
  },
  "a domain that is no name, and a durability that is none": {
    request: { resourceNamespace: POOL, quota: 1n, domain: "A", durability: 7 as never },
    fields: { domain: /DNS label/, durability: /one of DURABILITY_LEDGER \(1\), DURABILITY_REDIS \(2\)/ },
  },
  "a default lease longer than the longest": {
    request: { resourceNamespace: POOL, quota: 1n, defaultLease: durationFromMs(2000), maxLease: durationFromMs(1000) },
    fields: { default_lease: /must not be longer than max_lease, which is 1s/ },
  },
};

const batches: Record<string, Wrong<MessageInitShape<typeof BatchAllocateResourcesRequestSchema>>> = {
  "no line": { request: {}, fields: { lines: /at least 1/ } },
  "too many lines": {
    request: { lines: Array.from({ length: 1001 }, (_, at) => line({ allocationToken: `t${at}` })) },
    fields: { lines: /1000/ },
  },
  "a token that is named twice, and another line that is wrong": {
    request: { lines: [fine, line({ amount: 0n }), line({ resourceNamespace: "gpu/h100" })] },
    fields: { "lines[1].amount": /./, "lines[1].allocation_token": /repeats lines\[0\]/ },
  },
  "lines with holders and priorities of their own": {
    request: { holder: "ann", lines: [line({ holder: "bob" }), { ...fine, allocationToken: "b", priority: 3 }] },
    fields: { "lines[0].holder": /the batch's/, "lines[1].priority": /the batch's/ },
  },
};

type Fields = readonly { readonly field: string; readonly description: string }[];

function checkFields(fields: Fields | undefined, expected: Record<string, RegExp>): void {
  assert.deepEqual(fields?.map(({ field }) => field).sort(), Object.keys(expected).sort());
  for (const { field, description } of fields ?? []) assert.match(description, expected[field]!, field);
}

async function served(t: Parameters<typeof startFixture>[0]) {
  const fixture = await startFixture(t);
  await fixture.call(method.registerResourceQuota, { resourceNamespace: POOL, quota: 4n });
  return fixture;
}

for (const [name, { request, fields }] of Object.entries(allocations)) {
  test(`an allocation with ${name} is refused with every field that is wrong, and takes nothing`, async (t) => {
    const { call, stream, resources } = await served(t);
    const { error } = await call(method.allocateResource, request);
    assert.equal(error?.code, "INVALID_ARGUMENT");
    checkFields(error.fields, fields);
    const { $typeName: _, ...same } = { $typeName: "", ...request };
    await assert.rejects(stream(method.waitForResource, same as never).toArray(), /INVALID_ARGUMENT/);
    assert.deepEqual([resources.held, resources.waiting], [[], 0]);
  });
}

for (const [name, { request, fields }] of Object.entries(registrations)) {
  test(`registering a pool with ${name} is refused, and changes nothing`, async (t) => {
    const { call, resources } = await served(t);
    const { error } = await call(method.registerResourceQuota, request);
    assert.equal(error?.code, "INVALID_ARGUMENT");
    checkFields(error.fields, fields);
    assert.equal(resources.pools.get(POOL)?.version, 1);
  });
}

for (const [name, { request, fields }] of Object.entries(batches)) {
  test(`a batch with ${name} is refused, and takes nothing`, async (t) => {
    const { call, resources } = await served(t);
    const { error } = await call(method.batchAllocateResources, request);
    assert.equal(error?.code, "INVALID_ARGUMENT");
    checkFields(error.fields, fields);
    assert.deepEqual(resources.held, []);
  });
}

test("renewals and releases name a token once, and force needs a reason", async (t) => {
  const { call } = await served(t);
  const twice = { "lines[1].allocation_token": /repeats lines\[0\]/ };
  checkFields((await call(method.renewAllocations, { lines: [fine, fine] })).error?.fields, twice);
  checkFields((await call(method.batchReleaseResources, { lines: [fine, fine] })).error?.fields, twice);
  for (const reason of ["", "  ", "x".repeat(1025)]) {
    checkFields((await call(method.forceRelease, { ...fine, reason })).error?.fields, { reason: /must say why/ });
  }
});

test("names and tokens as Flyte and Kubernetes write them are taken", async (t) => {
  const { call } = await served(t);
  for (const resourceNamespace of ["default_cluster", "gpu/h100", "ex:project:x", "Qubole:default_cluster-1.v2"]) {
    const made = await call(method.registerResourceQuota, { resourceNamespace, quota: 1n });
    assert.equal(made.ok?.pool?.name, resourceNamespace);
  }
  for (const allocationToken of ["flkgiwd13-akjdoe-0", "ex:flyte:prod:f1-n0-0", "naïve ☂ token", "x".repeat(512)]) {
    assert.equal((await call(method.allocateResource, { ...fine, allocationToken })).error, null, allocationToken);
  }
});
