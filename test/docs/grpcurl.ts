/**
 * Plays `grpcurl` for the commands of the docs: reads the same arguments and makes the same call. Its method comes from
 * the descriptors that the service itself serves by reflection.
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import {
  create,
  createFileRegistry,
  type DescMethod,
  type FileRegistry,
  fromBinary,
  fromJson,
  type JsonValue,
  type MessageInitShape,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Client, credentials } from "@grpc/grpc-js";
import {
  ServerReflection,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from "../../src/gen/grpc/reflection/v1/reflection_pb.ts";

/** A stream that is silent for this long after a message is ended. */
const SILENCE_MS = 500;
const FIRST_MS_MAX = 15_000;

const { values, positionals } = parseArgs({
  args: process.argv.slice(2).map((arg) => (/^-\w\w/.test(arg) ? `-${arg}` : arg)),
  allowPositionals: true,
  options: { plaintext: { type: "boolean" }, d: { type: "string", short: "d" } },
});
const [address = "", verb = "", symbol] = positionals;
if (values.plaintext !== true) throw new Error("without -plaintext the call would be made over TLS");
const client = new Client(address, credentials.createInsecure(), { "grpc.enable_http_proxy": 0 });
try {
  if (verb === "list") print((await listServices()).join("\n"));
  else if (verb === "describe") print((await describe(symbol ?? "")).join("\n"));
  else await call(registry(), verb, JSON.parse(values.d ?? "{}") as JsonValue);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 64 + Number((error as { code?: number }).code ?? 0);
} finally {
  client.close();
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function registry(): FileRegistry {
  const bytes = readFileSync(new URL("../../src/gen/gangway.binpb", import.meta.url));
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
}

async function call(known: FileRegistry, name: string, body: JsonValue): Promise<void> {
  const [serviceName = "", methodName = ""] = name.split("/");
  const method = known.getService(serviceName)?.methods.find((one) => one.name === methodName);
  if (method === undefined) throw new Error(`there is no method ${name}`);
  const request = fromJson(method.input, body, { registry: known });
  const path = `/${serviceName}/${methodName}`;
  const serialize = () => Buffer.from(toBinary(method.input, request));
  const show = (bytes: Buffer) =>
    print(toJsonString(method.output, fromBinary(method.output, bytes), { registry: known, prettySpaces: 2 }));
  if (method.methodKind === "server_streaming") await readStream(method, { path, serialize, show });
  else {
    await new Promise<void>((resolve, reject) => {
      client.makeUnaryRequest(
        path,
        serialize,
        (bytes) => bytes,
        null,
        (error, bytes) => {
          if (error !== null || bytes === undefined) return reject(error ?? new Error("no answer"));
          show(bytes);
          resolve();
        },
      );
    });
  }
}

/** Prints the messages of a stream until it ends or is silent. */
async function readStream(
  method: DescMethod,
  of: { readonly path: string; readonly serialize: () => Buffer; readonly show: (bytes: Buffer) => void },
): Promise<void> {
  const stream = client.makeServerStreamRequest(of.path, of.serialize, (bytes) => bytes, null);
  await new Promise<void>((resolve, reject) => {
    const firstByMs = setTimeout(() => reject(new Error(`${method.name} sent no message`)), FIRST_MS_MAX);
    stream.on("data", (bytes: Buffer) => {
      clearTimeout(firstByMs);
      of.show(bytes);
      setTimeout(() => {
        stream.cancel();
        resolve();
      }, SILENCE_MS);
    });
    stream.on("error", reject);
    stream.on("end", resolve);
  });
}

async function listServices(): Promise<readonly string[]> {
  const answer = (await ask({ case: "listServices", value: "*" })).messageResponse;
  if (answer.case !== "listServicesResponse") throw new Error("reflection lists no services");
  return answer.value.service.map(({ name }) => name);
}

/** The names of the files that reflection gives for a symbol. */
async function describe(name: string): Promise<readonly string[]> {
  const answer = (await ask({ case: "fileContainingSymbol", value: name })).messageResponse;
  if (answer.case !== "fileDescriptorResponse") throw new Error(`reflection does not know ${name}`);
  return [name, `${answer.value.fileDescriptorProto.length} files`];
}

type Question = NonNullable<MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"]>;

function ask(messageRequest: Question): Promise<ServerReflectionResponse> {
  const { parent, name } = ServerReflection.method.serverReflectionInfo;
  const stream = client.makeBidiStreamRequest(
    `/${parent.typeName}/${name}`,
    (bytes: Buffer) => bytes,
    (bytes) => bytes,
  );
  return new Promise((resolve, reject) => {
    stream.on("error", reject);
    stream.on("data", (bytes: Buffer) => {
      resolve(fromBinary(ServerReflectionResponseSchema, bytes));
      stream.end();
    });
    const request = create(ServerReflectionRequestSchema, { messageRequest });
    stream.write(Buffer.from(toBinary(ServerReflectionRequestSchema, request)));
  });
}
