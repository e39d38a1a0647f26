import { readFileSync } from "node:fs";
import { fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { status } from "@grpc/grpc-js";
import type {
  ServerReflection,
  ServerReflectionRequest,
  ServerReflectionResponseSchema,
} from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";
import { type DescriptorIndex, indexDescriptors } from "./descriptor-index.ts";

const DESCRIPTORS = new URL("../../gen/gangway.binpb", import.meta.url);

type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;

/**
 * Reads the descriptors of all served files, with their comments. google.rpc is among them, so that clients can decode
 * error details.
 */
export function readDescriptors(): readonly FileDescriptorProto[] {
  return fromBinary(FileDescriptorSetSchema, readFileSync(DESCRIPTORS)).file;
}

/**
 * Makes the reflection service (grpc/reflection/v1/reflection.proto) for these files. It lists only `services`.
 */
export function reflectionService(
  files: readonly FileDescriptorProto[],
  services: readonly string[],
): ServiceHandlers<typeof ServerReflection> {
  const index = indexDescriptors(files);
  return {
    serverReflectionInfo: async function* (requests) {
      // A client needs each file once: an answer leaves out files that this stream has sent, except the requested one.
      const sent = new Set<string>();
      for await (const request of requests) {
        const { host, messageRequest } = request;
        const messageResponse = answer(request, { index, services, sent });
        // Without unknown fields, which may be deeper than the caller itself decodes.
        yield { validHost: host, originalRequest: { host, messageRequest }, messageResponse };
      }
    },
  };
}

type Context = {
  readonly index: DescriptorIndex;
  readonly services: readonly string[];
  readonly sent: Set<string>;
};

function answer({ messageRequest }: ServerReflectionRequest, context: Context): Answer {
  const { index } = context;
  switch (messageRequest.case) {
    case "fileByFilename":
      return files(messageRequest.value, context);
    case "fileContainingSymbol":
      return files(index.fileOfSymbol(messageRequest.value.replace(/^\./, "")), context);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = messageRequest.value;
      return files(index.extensionsOf(containingType)?.get(extensionNumber), context);
    }
    case "allExtensionNumbersOfType": {
      const baseTypeName = messageRequest.value;
      if (!index.isMessage(baseTypeName)) return notFound(`message ${baseTypeName} does not exist`);
      const extensionNumber = [...(index.extensionsOf(baseTypeName)?.keys() ?? [])].sort((a, b) => a - b);
      return { case: "allExtensionNumbersResponse", value: { baseTypeName, extensionNumber } };
    }
    case "listServices":
      return { case: "listServicesResponse", value: { service: context.services.map((name) => ({ name })) } };
    default:
      return {
        case: "errorResponse",
        value: {
          errorCode: status.INVALID_ARGUMENT,
          errorMessage: "the request sets no message_request that this server supports",
        },
      };
  }
}

function files(fileName: string | undefined, { index, sent }: Context): Answer {
  const all = fileName === undefined ? undefined : index.withImports(fileName);
  if (all === undefined) return notFound("the file, symbol or extension does not exist");
  const fresh = all.filter(({ name }) => name === fileName || !sent.has(name));
  for (const { name } of fresh) sent.add(name);
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto: fresh.map(({ bytes }) => bytes) } };
}

function notFound(errorMessage: string): Answer {
  return { case: "errorResponse", value: { errorCode: status.NOT_FOUND, errorMessage } };
}
