/**
 * Writes what the client in Python has of the API, from `clients/proto`: descriptors, from which it makes its message
 * classes when it is imported, and stubs with the types and comments of messages and methods. The stubs need no
 * package, since those of protobuf and grpcio differ from version to version.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { clone, createFileRegistry, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { RUN_POLICY_FIELDS, SCHEDULING_FIELDS } from "../src/core/kinds/manifest/from-manifest.ts";
import { SETTINGS } from "../src/core/kinds/manifest/settings.ts";
import { messageStubs, serviceStubs } from "./python-stubs.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const PACKAGE = join(root, "clients/python/gangway");
const BYTES_MAX = 64 * 1024 * 1024;

/** The generated files of the package, by their names in it. */
export function pythonFiles(): ReadonlyMap<string, string | Uint8Array> {
  const described = clientDescriptors();
  const registry = createFileRegistry(described);
  return new Map<string, string | Uint8Array>([
    ["gangway.binpb", toBinary(FileDescriptorSetSchema, withoutComments(described))],
    ["v1.pyi", messageStubs(registry)],
    ["_services.pyi", serviceStubs(registry)],
    ["manifest.json", `${JSON.stringify(manifestRules(), null, 1)}\n`],
  ]);
}

function clientDescriptors(): FileDescriptorSet {
  const args = ["build", join(root, "clients/proto"), "-o", "-"];
  const built = execFileSync(join(root, "node_modules/.bin/buf"), args, { maxBuffer: BYTES_MAX });
  return fromBinary(FileDescriptorSetSchema, built);
}

/** Comments are for readers of the stubs: without them, the descriptors take a tenth of the bytes. */
function withoutComments(described: FileDescriptorSet): FileDescriptorSet {
  const bare = clone(FileDescriptorSetSchema, described);
  for (const file of bare.file) delete file.sourceCodeInfo;
  return bare;
}

/** What the client needs to read manifests as the command line does. */
function manifestRules() {
  const settings = SETTINGS.map(({ name, field, type }) => ({ name, field, ...type }));
  return { settings, runPolicy: RUN_POLICY_FIELDS, schedulingPolicy: SCHEDULING_FIELDS };
}

function write(): void {
  for (const [name, content] of pythonFiles()) writeFileSync(join(PACKAGE, name), content);
}

if (import.meta.main) write();
