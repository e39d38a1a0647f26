import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { create, fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import {
  ServerReflection,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
} from "../../src/gen/grpc/reflection/v1/reflection_pb.ts";
import { startFixture } from "./fixture.ts";

type Ask = NonNullable<MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"]>;

async function startReflection(t: TestContext) {
  const { bidi } = await startFixture(t);
  const stream = bidi(ServerReflection.method.serverReflectionInfo);
  const answers = stream[Symbol.asyncIterator]();
  const ask = async (messageRequest: Ask) => {
    stream.write(create(ServerReflectionRequestSchema, { messageRequest }));
    const { value } = await answers.next();
    return (value as ServerReflectionResponse).messageResponse;
  };
  const askFiles = async (messageRequest: Ask) => {
    const answer = await ask(messageRequest);
    assert.equal(answer.case, "fileDescriptorResponse");
    return answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
  };
  t.after(() => stream.end());
  return { ask, askFiles };
}

test("every service is listed, health and reflection among them", async (t) => {
  const { ask } = await startReflection(t);
  const answer = await ask({ case: "listServices", value: "*" });
  assert.equal(answer.case, "listServicesResponse");
  assert.deepEqual(
    answer.value.service.map(({ name }) => name),
    [
      "gangway.v1.AccessService",
      "gangway.v1.ClusterService",
      "gangway.v1.JobService",
      "gangway.v1.NamespaceService",
      "gangway.v1.PriorityClassService",
      "gangway.v1.QueueService",
      "gangway.v1.ResourceManager",
      "gangway.v1.RuntimeService",
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
    ],
  );
});

const symbols = {
  "gangway.v1.JobService": "gangway/v1/job_service.proto",
  "gangway.v1.JobService.CreateJob": "gangway/v1/job_service.proto",
  "gangway.v1.JobSpec": "gangway/v1/job.proto",
  "gangway.v1.JobSpec.kind": "gangway/v1/job.proto",
  "gangway.v1.WatchJobsResponse.Type": "gangway/v1/job_service.proto",
  "gangway.v1.ResourceManager.WaitForResource": "gangway/v1/resource_manager.proto",
  "gangway.v1.Violation.Scope": "gangway/v1/resource_manager.proto",
  "gangway.v1.JOB_PHASE_WAITING": "gangway/v1/job.proto",
  "grpc.health.v1.Health": "grpc/health/v1/health.proto",
  "grpc.reflection.v1.ServerReflection": "grpc/reflection/v1/reflection.proto",
  "google.rpc.BadRequest": "google/rpc/error_details.proto",
  "buf.validate.field": "buf/validate/validate.proto",
};
for (const [symbol, file] of Object.entries(symbols)) {
  test(`${symbol} is described by ${file} with everything that it imports`, async (t) => {
    const { askFiles } = await startReflection(t);
    const files = await askFiles({ case: "fileContainingSymbol", value: symbol });
    assert.equal(files[0]?.name, file);
    const names = new Set(files.map(({ name }) => name));
    for (const { dependency } of files) for (const imported of dependency) assert.ok(names.has(imported), imported);
    assert.ok((files[0]?.sourceCodeInfo?.location ?? []).some((location) => location.leadingComments !== ""));
  });
}

test("a file that was sent on the stream is sent again only if it is requested itself", async (t) => {
  const { askFiles } = await startReflection(t);
  const first = await askFiles({ case: "fileByFilename", value: "gangway/v1/job_service.proto" });
  assert.ok(first.length > 3);
  const second = await askFiles({ case: "fileByFilename", value: "gangway/v1/job.proto" });
  assert.deepEqual(
    second.map(({ name }) => name),
    ["gangway/v1/job.proto"],
  );
});

test("extensions are found by the message that they extend", async (t) => {
  const { ask, askFiles } = await startReflection(t);
  const numbers = await ask({ case: "allExtensionNumbersOfType", value: "google.protobuf.FieldOptions" });
  assert.equal(numbers.case, "allExtensionNumbersResponse");
  const [extensionNumber] = numbers.value.extensionNumber;
  const containingType = "google.protobuf.FieldOptions";
  const extension = {
    $typeName: "grpc.reflection.v1.ExtensionRequest" as const,
    containingType,
    extensionNumber: extensionNumber!,
  };
  const files = await askFiles({ case: "fileContainingExtension", value: extension });
  assert.equal(files[0]?.name, "buf/validate/validate.proto");
  const none = await ask({ case: "allExtensionNumbersOfType", value: "gangway.v1.Job" });
  assert.deepEqual(none.case === "allExtensionNumbersResponse" && none.value.extensionNumber, []);
});

test("a client that stops asking gets all its answers, then OK", async (t) => {
  const { bidi } = await startFixture(t);
  const stream = bidi(ServerReflection.method.serverReflectionInfo);
  const ended = new Promise<number>((resolve) => stream.on("status", ({ code }) => resolve(code)));
  for (const value of ["gangway.v1.Job", "gangway.v1.Queue"]) {
    stream.write(create(ServerReflectionRequestSchema, { messageRequest: { case: "fileContainingSymbol", value } }));
  }
  stream.end();
  assert.equal((await stream.toArray()).length, 2);
  assert.equal(await ended, 0);
});

test("an answer repeats the request without fields that the service does not know", async (t) => {
  const { bidi } = await startFixture(t);
  const stream = bidi(ServerReflection.method.serverReflectionInfo);
  t.after(() => stream.end());
  const request = create(ServerReflectionRequestSchema, {
    host: "here",
    messageRequest: { case: "listServices", value: "*" },
  });
  request.$unknown = [{ no: 77, wireType: WireType.Varint, data: new Uint8Array([1]) }];
  stream.write(request);
  const { value } = await stream[Symbol.asyncIterator]().next();
  const { originalRequest } = value as ServerReflectionResponse;
  assert.deepEqual([originalRequest?.host, originalRequest?.messageRequest.case], ["here", "listServices"]);
  assert.equal(originalRequest?.$unknown, undefined);
});

test("an unknown symbol is answered as not found, and the stream continues", async (t) => {
  const { ask } = await startReflection(t);
  const asks: Ask[] = [
    { case: "fileByFilename", value: "nothing.proto" },
    { case: "fileContainingSymbol", value: "gangway.v1.Nothing" },
    { case: "allExtensionNumbersOfType", value: "gangway.v1.Nothing" },
  ];
  for (const one of asks) {
    const answer = await ask(one);
    assert.equal(answer.case === "errorResponse" && answer.value.errorCode, 5);
  }
});
