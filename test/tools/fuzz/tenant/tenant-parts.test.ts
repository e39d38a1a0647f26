import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { GetJobResponseSchema, ListJobsResponseSchema } from "../../../../src/gen/gangway/v1/job_service_pb.ts";
import { Bank } from "../bank.ts";
import type { Answer } from "../caller.ts";
import { encode, methodsNamed, type PlannedCall } from "../plan.ts";
import { methodNamed } from "../surface.ts";
import { absentUid, leaksOf, namesTheirs, spokenIn, THEIRS, type Uids, UNSPOKEN, withAbsent } from "./names.ts";
import { planTenantCall } from "./plan.ts";
import { difference } from "./twin.ts";

const UIDS: Uids = {
  theirs: ["01900000-0000-7000-8000-00000000a001"],
  unspoken: ["01900000-0000-7000-8000-00000000b001"],
};
const GET_JOB = methodNamed("JobService.GetJob");
const UPDATE_JOB = methodNamed("JobService.UpdateJob");
const LIST_JOBS = methodNamed("JobService.ListJobs");
const ANSWER: Answer = {
  status: 0,
  message: "",
  details: null,
  messages: [],
  httpStatus: 200,
  left: false,
  failure: null,
  trailerBytes: 0,
  headers: "",
};
const callOf = (request: Buffer, method = GET_JOB): PlannedCall => ({ number: 0, method, style: "valid", request });
const asked = encode(GET_JOB, { namespace: `${THEIRS}-space`, name: `${THEIRS}-job` });
const metadata = { namespace: `${THEIRS}-space`, name: `${THEIRS}-job`, labels: { team: "b" } };
const labelled = encode(UPDATE_JOB, { job: { metadata } });
const jobNamed = (name: string) =>
  Buffer.from(toBinary(GetJobResponseSchema, create(GetJobResponseSchema, { job: { metadata: { name } } })));
const page = (nextPageToken: string) =>
  Buffer.from(toBinary(ListJobsResponseSchema, create(ListJobsResponseSchema, { nextPageToken })));

const told: Readonly<Record<string, { answer: Partial<Answer>; call?: PlannedCall; leaks: number }>> = {
  nothing: { answer: { messages: [jobNamed("job-1")] }, leaks: 0 },
  "a name that its call has": { answer: { status: 5, message: `job ${THEIRS}-space/${THEIRS}-job` }, leaks: 0 },
  "a name that its call has before a field whose tag is a digit": {
    call: callOf(labelled, UPDATE_JOB),
    answer: { status: 5, message: `job ${THEIRS}-space/${THEIRS}-job does not exist` },
    leaks: 0,
  },
  "another name": { answer: { status: 5, message: `job ${THEIRS}-other` }, leaks: 1 },
  "a name that no call has, in a message": { answer: { messages: [jobNamed(`${UNSPOKEN}-job`)] }, leaks: 1 },
  "in details": { answer: { status: 9, details: Buffer.from(`x ${UNSPOKEN}-queue`) }, leaks: 1 },
  "in a header": { answer: { headers: `x-note: ${UNSPOKEN}` }, leaks: 1 },
  "in the token of a page": {
    call: callOf(Buffer.alloc(0), LIST_JOBS),
    answer: { messages: [page(Buffer.from(`["jobs","${UNSPOKEN}-job"]`).toString("base64url"))] },
    leaks: 1,
  },
  "a uid": { answer: { message: UIDS.unspoken[0] ?? "" }, leaks: 1 },
};
for (const [name, { answer, call = callOf(asked), leaks }] of Object.entries(told)) {
  test(`an answer tells of the other tenant: ${name}`, () => {
    const spoken = new Set(spokenIn(call, UIDS));
    assert.equal(leaksOf(call, { ...ANSWER, ...answer }, { uids: UIDS, spoken }).length, leaks);
  });
}

const notFound = (request: Buffer): Answer => {
  const [name = ""] = /\w+-job/.exec(request.toString("latin1")) ?? [];
  return { ...ANSWER, status: 5, message: `job ${name} does not exist` };
};
const compared: Readonly<Record<string, { of: (request: Buffer) => Answer; differs: boolean }>> = {
  "the same words": { of: notFound, differs: false },
  "words that end within the name": {
    of: (request) => ({ ...notFound(request), message: `queue ${namesTheirs(request, UIDS) ? "their" : "absen"}…` }),
    differs: false,
  },
  "another code": {
    of: (request) => ({ ...notFound(request), status: namesTheirs(request, UIDS) ? 7 : 5 }),
    differs: true,
  },
  "other words": {
    of: (request) => ({ ...notFound(request), message: namesTheirs(request, UIDS) ? "it is hidden" : "there is none" }),
    differs: true,
  },
  "an answer for what exists": {
    of: (request) =>
      namesTheirs(request, UIDS) ? { ...ANSWER, messages: [jobNamed(`${THEIRS}-job`)] } : notFound(request),
    differs: true,
  },
};
for (const [name, { of, differs }] of Object.entries(compared)) {
  test(`an answer about the other tenant is compared with one about nothing: ${name}`, async () => {
    const send = async ({ request }: PlannedCall) => of(request);
    const found = await difference(callOf(asked), of(asked), { uids: UIDS, send });
    assert.equal(found !== null, differs);
  });
}

test("a name of nothing is as long as one of the other tenant", () => {
  const [uid = ""] = UIDS.theirs;
  const request = Buffer.from(`${THEIRS}-job ${uid}`);
  assert.equal(withAbsent(request, UIDS).length, request.length);
  assert.equal(namesTheirs(withAbsent(request, UIDS), UIDS), false);
  assert.notEqual(absentUid(uid), uid);
});

test("calls of each role name things of the other tenant, and never a secret one", () => {
  const theirs = new Bank(400, (value) => !value.includes(UNSPOKEN));
  for (const name of ["namespace", "queue", "name"]) theirs.add(name, `${THEIRS}-${name}`);
  theirs.add("name", `${UNSPOKEN}-name`);
  const plan = { seed: 5, bank: new Bank(), theirs, methods: methodsNamed([]) };
  const calls = Array.from({ length: 1_000 }, (_, number) => planTenantCall(plan, number));
  const naming = calls.filter(({ request }) => namesTheirs(request, UIDS));
  assert.ok(naming.length > 100 && naming.length < 900, String(naming.length));
  assert.deepEqual([...new Set(naming.map(({ role }) => role))].sort(), ["operator", "submitter", "viewer"]);
  assert.ok(calls.every(({ request }) => !request.includes(UNSPOKEN)));
});
