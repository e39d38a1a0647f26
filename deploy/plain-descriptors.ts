/**
 * Lets generated code take its descriptors from plain objects. As generated, it decodes each of them when it is loaded,
 * rules of protovalidate included, which takes longer than all calls of most commands.
 */
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { create, fromBinary } from "@bufbuild/protobuf";
import { protoCamelCase } from "@bufbuild/protobuf/reflect";
import { base64Decode } from "@bufbuild/protobuf/wire";
import {
  type DescriptorProto,
  FileDescriptorProtoSchema,
  file_google_protobuf_descriptor,
} from "@bufbuild/protobuf/wkt";
import type { Plugin } from "esbuild";

const HELPER = "plain-descriptors";
/** Only the service checks the rules. */
const RULES = "file_buf_validate_validate";
const IMPORT_OF_RULES = new RegExp(`^import \\{ ${RULES} \\} from .*$`, "m");

export const plainDescriptors: Plugin = {
  name: HELPER,
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^plain-descriptors$/ }, ({ path }) => ({ path, namespace: HELPER }));
    onLoad({ filter: /./, namespace: HELPER }, () => ({ contents: helper(), resolveDir: import.meta.dirname }));
    onLoad({ filter: /_pb\.[jt]s$/ }, ({ path }) => {
      const source = readFileSync(path, "utf8").replace(IMPORT_OF_RULES, "");
      const text = source.replace(CALL, (_call, encoded: string, imports: string | undefined) => {
        const used = (imports ?? "").split(",").filter((name) => name.trim() !== "" && name.trim() !== RULES);
        return `plainFile(${plainText(encoded)}, [${used.join()}])`;
      });
      const contents = `import { defaults, plainFile } from "${HELPER}";\n${text}`;
      return { contents, loader: path.endsWith(".ts") ? "ts" : "js", resolveDir: dirname(path) };
    });
  },
};

/** `fileDesc("the descriptor in base64", [its imports])` */
const CALL = /\bfileDesc\("([^"]*)"(?:,\s*\[([^\]]*)\])?\)/;

/** The module that makes a described file of a plain object. It imports no more than generated code does. */
function helper(): string {
  const registry = fileURLToPath(new URL("registry.js", import.meta.resolve("@bufbuild/protobuf")));
  const types = file_google_protobuf_descriptor.messages.flatMap((message) => [message, ...message.nestedMessages]);
  const texts = types.map((type) => {
    const message = create(type);
    const fields = [...Object.entries(Object.getPrototypeOf(message)), ...Object.entries(message)];
    return `${keyOf(type)}: ${objectText(fields)}`;
  });
  return `
import { createFileRegistry } from ${JSON.stringify(registry)};
export const defaults = {${texts.join(",\n")}};
export function plainFile(proto, imports) {
  proto.dependency = imports.map((file) => file.proto.name);
  return createFileRegistry(proto, (name) => imports.find((file) => file.proto.name === name)).getFile(proto.name);
}`;
}

function plainText(encoded: string): string {
  const file = fromBinary(FileDescriptorProtoSchema, base64Decode(encoded));
  file.messageType.forEach(nameFields);
  return literal(file);
}

/** Descriptors in generated code leave out the JSON names that follow from the names. */
function nameFields({ field, nestedType }: DescriptorProto): void {
  for (const one of field) if (one.jsonName === "") one.jsonName = protoCamelCase(one.name);
  nestedType.forEach(nameFields);
}

/** JavaScript for a message. It inherits the values of the fields that are not set. */
function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literal).join()}]`;
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const { $typeName, $unknown: _, ...fields } = value as { $typeName?: string; $unknown?: unknown };
  const set = Object.entries(fields).filter(([, field]) => !Array.isArray(field) || field.length > 0);
  return $typeName === undefined
    ? objectText(set)
    : objectText(set, `__proto__: defaults.${keyOf({ typeName: $typeName })},`);
}

function objectText(entries: readonly (readonly [string, unknown])[], start = ""): string {
  return `{${start}${entries.map(([key, value]) => `${JSON.stringify(key)}: ${literal(value)}`).join()}}`;
}

/** `FieldDescriptorProto` */
function keyOf({ typeName }: { readonly typeName: string }): string {
  return typeName.slice("google.protobuf.".length).replaceAll(".", "_");
}
