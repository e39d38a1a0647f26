/** Every RPC that the service serves, from the descriptors that it ships. New ones appear here by themselves. */
import { readFileSync } from "node:fs";
import { createFileRegistry, type DescMessage, type DescMethod, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const DESCRIPTORS = new URL("../../../src/gen/gangway.binpb", import.meta.url);
export const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(DESCRIPTORS)));

export const METHODS: readonly DescMethod[] = [...registry.files].flatMap((file) =>
  file.services.flatMap((service) => service.methods),
);

/** `JobService.CreateJob`. */
export function shortName(method: DescMethod): string {
  return `${method.parent.name}.${method.name}`;
}

export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** Throws if there is no such RPC. */
export function methodNamed(name: string): DescMethod {
  const found = METHODS.find((method) => shortName(method) === name);
  if (found === undefined) throw new Error(`there is no ${name}; there are ${METHODS.map(shortName).join(", ")}`);
  return found;
}

export function messageNamed(typeName: string): DescMessage {
  const found = registry.getMessage(typeName);
  if (found === undefined) throw new Error(`there is no message ${typeName}`);
  return found;
}
