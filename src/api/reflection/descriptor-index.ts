import { toBinary } from "@bufbuild/protobuf";
import { type DescriptorProto, type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { getOrCreate } from "../../runtime/get-or-create.ts";

/** Finds proto files by their names and by their declarations, for the reflection service. */
export type DescriptorIndex = {
  /** Returns the file and all files that it imports, the file first. Undefined: there is no such file. */
  readonly withImports: (
    fileName: string,
  ) => readonly { readonly name: string; readonly bytes: Uint8Array }[] | undefined;
  /** Returns the file that declares a symbol. The symbol is a full name without a leading dot. */
  readonly fileOfSymbol: (symbol: string) => string | undefined;
  /** Returns the files that declare extensions of a message, by field number. */
  readonly extensionsOf: (message: string) => ReadonlyMap<number, string> | undefined;
  readonly isMessage: (name: string) => boolean;
};

export function indexDescriptors(files: readonly FileDescriptorProto[]): DescriptorIndex {
  const byName = new Map(files.map((file) => [file.name, file]));
  const bytesOf = new Map(files.map((file) => [file.name, toBinary(FileDescriptorProtoSchema, file)]));
  const index: Declared = { symbols: new Map(), messages: new Set(), extensions: new Map() };
  for (const file of files) indexFile(file, index);
  return {
    withImports: (fileName) => {
      if (!byName.has(fileName)) return undefined;
      const names = new Set([fileName]);
      for (const name of names) for (const imported of byName.get(name)?.dependency ?? []) names.add(imported);
      return [...names].flatMap((name) => {
        const bytes = bytesOf.get(name);
        return bytes === undefined ? [] : [{ name, bytes }];
      });
    },
    fileOfSymbol: (symbol) => index.symbols.get(symbol),
    extensionsOf: (message) => index.extensions.get(message),
    isMessage: (name) => index.messages.has(name),
  };
}

type Declared = {
  readonly symbols: Map<string, string>;
  readonly messages: Set<string>;
  readonly extensions: Map<string, Map<number, string>>;
};

function indexFile(file: FileDescriptorProto, index: Declared): void {
  const scope = file.package === "" ? "" : `${file.package}.`;
  for (const message of file.messageType) indexMessage(file, message, scope, index);
  indexEnumsAndExtensions(file, file, scope, index);
  for (const service of file.service) {
    index.symbols.set(scope + service.name, file.name);
    for (const method of service.method) index.symbols.set(`${scope}${service.name}.${method.name}`, file.name);
  }
}

function indexMessage(file: FileDescriptorProto, message: DescriptorProto, scope: string, index: Declared): void {
  const name = scope + message.name;
  index.symbols.set(name, file.name);
  index.messages.add(name);
  for (const member of [...message.field, ...message.oneofDecl]) index.symbols.set(`${name}.${member.name}`, file.name);
  for (const nested of message.nestedType) indexMessage(file, nested, `${name}.`, index);
  indexEnumsAndExtensions(file, message, `${name}.`, index);
}

function indexEnumsAndExtensions(
  file: FileDescriptorProto,
  within: Pick<DescriptorProto, "enumType" | "extension">,
  scope: string,
  index: Declared,
): void {
  for (const enumType of within.enumType) {
    index.symbols.set(scope + enumType.name, file.name);
    // As in C++, the values of an enum are members of the scope that declares the enum.
    for (const value of enumType.value) index.symbols.set(scope + value.name, file.name);
  }
  for (const extension of within.extension) {
    index.symbols.set(scope + extension.name, file.name);
    const extended = extension.extendee.replace(/^\./, "");
    getOrCreate(index.extensions, extended, () => new Map()).set(extension.number, file.name);
  }
}
