/** Writes `src/gen/openapi.json`: the RPCs of the service as clients of HTTP and JSON call them. */
import { readFileSync, writeFileSync } from "node:fs";
import { createFileRegistry, type DescMethod, type DescService, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { SERVICES } from "../src/api/services.ts";
import { commentOf, described, type Schema, Schemas } from "./openapi-schema.ts";

const DESCRIPTORS = new URL("../src/gen/gangway.binpb", import.meta.url);
const TARGET = new URL("../src/gen/openapi.json", import.meta.url);
const JSON_TYPE = "application/json";
const STREAM_TYPE = "application/connect+json";
/** The code of each error, and the status of HTTP that it has. */
const CODES = [
  ...["canceled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists"],
  ...["permission_denied", "resource_exhausted", "failed_precondition", "aborted", "out_of_range", "unimplemented"],
  ...["internal", "unavailable", "data_loss", "unauthenticated"],
];

const ABOUT = `Calls follow the protocol of Connect: POST with a request in JSON. Fields with their default value are
left out of answers. Requests may also name fields as the proto files do. A key that a request does not have is an
error.

An error has a code, a message and details; \`debug\` shows a detail as JSON.`;

/** The document. The descriptors have the comments of the proto files. */
export function openApi(): Schema {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(DESCRIPTORS)));
  const schemas = new Schemas();
  const services = SERVICES.map(({ typeName }) => {
    const service = registry.getService(typeName);
    if (service === undefined) throw new Error(`${typeName} is not in the descriptors`);
    return service;
  });
  const paths = services.flatMap((service) => service.methods.map((method) => pathOf(service, method, schemas)));
  return {
    openapi: "3.1.0",
    info: {
      title: "Gangway",
      version: "v1",
      description: ABOUT,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    tags: services.map((service) => ({ name: service.name, ...described([commentOf(service)]) })),
    security: [{}, { token: [] }],
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "Needed where the service asks for credentials." },
      },
      schemas: { ...schemas.all(), Error: ERROR },
      responses: {
        Error: { description: "The call failed.", content: jsonContent({ $ref: "#/components/schemas/Error" }) },
      },
    },
  };
}

const ERROR: Schema = {
  type: "object",
  required: ["code"],
  properties: {
    code: { type: "string", enum: CODES },
    message: { type: "string" },
    details: {
      type: "array",
      items: {
        type: "object",
        required: ["type", "value"],
        properties: {
          type: { type: "string", description: "The message's name, such as google.rpc.BadRequest." },
          value: { type: "string", contentEncoding: "base64", description: "The message." },
          debug: { description: "The message in JSON." },
        },
      },
    },
  },
};

function pathOf(service: DescService, method: DescMethod, schemas: Schemas): readonly [string, Schema] {
  const path = `/${service.typeName}/${method.name}`;
  const streams = method.methodKind === "server_streaming";
  const content = (schema: Schema) => (streams ? { [STREAM_TYPE]: { schema } } : jsonContent(schema));
  const operation = {
    operationId: `${service.name}_${method.name}`,
    tags: [service.name],
    ...described([commentOf(method), ...(streams ? [streamWords(path)] : [])]),
    requestBody: { required: true, content: content(schemas.message(method.input)) },
    responses: {
      "200": { description: streams ? "The stream." : "The answer.", content: content(schemas.message(method.output)) },
      ...(streams ? {} : { default: { $ref: "#/components/responses/Error" } }),
    },
  };
  return [path, { post: operation }];
}

function jsonContent(schema: Schema): Schema {
  return { [JSON_TYPE]: { schema } };
}

/** The line that calls a stream from a shell, with a request without fields. */
export function streamLine(path: string): string {
  const sends = `curl -sN -H 'content-type: ${STREAM_TYPE}' --data-binary @-`;
  return `printf '\\0\\0\\0\\0\\2{}' | ${sends} http://127.0.0.1:7480${path}`;
}

function streamWords(path: string): string {
  return `Streams its answer. The request and each message of the answer stand behind five bytes: flags, and the
length in bytes as a number of 32 bits, the highest byte first. Flags are 0; the last message has flags 2, and is an
object that has \`error\` if the call failed. With an empty request:

    ${streamLine(path)}`;
}

if (import.meta.main) writeFileSync(TARGET, `${JSON.stringify(openApi(), null, 1)}\n`);
