/** Python type stubs of messages, enums and services, with the comments of the protos as docstrings. */
import type {
  DescEnum,
  DescField,
  DescFile,
  DescMessage,
  DescMethod,
  DescService,
  FileRegistry,
} from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";

/** Lines of nested messages are indented further. */
const COLUMNS = 108;
const OWN = "gangway.v1";

const MESSAGE_HEAD = `"""Messages and enums of gangway.v1, and Google's that they use. Made by \`npm run generate\`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any as _Any
from typing import Iterable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence, TypeVar, overload

_M = TypeVar("_M", bound="Message")
_T = TypeVar("_T")
_K = TypeVar("_K")
_V = TypeVar("_V")

class Message:
    """A protobuf message. It equals another one of its type with the same fields."""
    def SerializeToString(self, *, deterministic: bool = ...) -> bytes: ...
    @classmethod
    def FromString(cls: type[_M], data: bytes) -> _M: ...
    def ParseFromString(self, data: bytes) -> int: ...
    def MergeFromString(self, data: bytes) -> int: ...
    def CopyFrom(self: _M, other: _M) -> None: ...
    def MergeFrom(self: _M, other: _M) -> None: ...
    def Clear(self) -> None: ...
    def ClearField(self, field_name: str) -> None: ...
    def HasField(self, field_name: str) -> bool: ...
    def WhichOneof(self, oneof_group: str) -> str | None: ...
    def ListFields(self) -> list[tuple[_Any, _Any]]: ...
    def ByteSize(self) -> int: ...
    def IsInitialized(self) -> bool: ...
    def SetInParent(self) -> None: ...

class RepeatedScalar(MutableSequence[_T]):
    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> MutableSequence[_T]: ...
    @overload
    def __setitem__(self, index: int, value: _T) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[_T]) -> None: ...
    def __delitem__(self, index: int | slice) -> None: ...
    def __len__(self) -> int: ...
    def insert(self, index: int, value: _T) -> None: ...

class RepeatedMessage(Sequence[_T]):
    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_T]: ...
    def __delitem__(self, index: int | slice) -> None: ...
    def __len__(self) -> int: ...
    def add(self, **fields: _Any) -> _T: ...
    def append(self, value: _T) -> None: ...
    def extend(self, values: Iterable[_T]) -> None: ...

class ScalarMap(MutableMapping[_K, _V]):
    def __getitem__(self, key: _K) -> _V: ...
    def __setitem__(self, key: _K, value: _V) -> None: ...
    def __delitem__(self, key: _K) -> None: ...
    def __iter__(self) -> Iterator[_K]: ...
    def __len__(self) -> int: ...

class MessageMap(Mapping[_K, _V]):
    def __getitem__(self, key: _K) -> _V:
        """The message of this key. A new key gets an empty message."""
    def __delitem__(self, key: _K) -> None: ...
    def __iter__(self) -> Iterator[_K]: ...
    def __len__(self) -> int: ...
    def get_or_create(self, key: _K) -> _V: ...
`;

/** Methods that protobuf adds to messages of these types. */
const WELL_KNOWN: Readonly<Record<string, readonly string[]>> = {
  "google.protobuf.Timestamp": [
    "def ToDatetime(self) -> datetime: ...",
    "def FromDatetime(self, dt: datetime) -> None: ...",
    "def ToJsonString(self) -> str: ...",
    "def FromJsonString(self, value: str) -> None: ...",
    "def GetCurrentTime(self) -> None: ...",
    "def ToNanoseconds(self) -> int: ...",
    "def FromSeconds(self, seconds: int) -> None: ...",
  ],
  "google.protobuf.Duration": [
    "def ToTimedelta(self) -> timedelta: ...",
    "def FromTimedelta(self, td: timedelta) -> None: ...",
    "def ToJsonString(self) -> str: ...",
    "def FromJsonString(self, value: str) -> None: ...",
    "def ToMilliseconds(self) -> int: ...",
    "def FromMilliseconds(self, millis: int) -> None: ...",
    "def FromSeconds(self, seconds: int) -> None: ...",
  ],
  "google.protobuf.Struct": [
    "def __getitem__(self, key: str) -> _Any: ...",
    "def __setitem__(self, key: str, value: _Any) -> None: ...",
    "def __contains__(self, key: str) -> bool: ...",
    "def __len__(self) -> int: ...",
    "def keys(self) -> Iterable[str]: ...",
    "def update(self, value: Mapping[str, _Any]) -> None: ...",
  ],
  "google.protobuf.FieldMask": [
    "def ToJsonString(self) -> str: ...",
    "def FromJsonString(self, value: str) -> None: ...",
  ],
  "google.protobuf.Any": [
    "def Pack(self, msg: Message) -> None: ...",
    "def Unpack(self, msg: Message) -> bool: ...",
    "def TypeName(self) -> str: ...",
  ],
};

/** The stub of the module `gangway.v1`. Throws if two messages of the module would have one name. */
export function messageStubs(registry: FileRegistry): string {
  const files = [...registry.files];
  const names = files.flatMap(({ messages, enums }) => [...messages, ...enums].map(({ name }) => name));
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new Error(`two packages have a type ${twice}`);
  const texts = files.map((file) => `${fileTypes(file).join("\n")}\n`);
  return `${MESSAGE_HEAD}\n${texts.filter((text) => text.trim() !== "").join("\n")}`;
}

function fileTypes(file: DescFile): string[] {
  return [
    ...file.enums.flatMap((one) => [...enumStub(one), ""]),
    ...file.messages.flatMap((one) => [...messageStub(one), ""]),
  ].slice(0, -1);
}

/** The stub of the module with one class for each service, and one whose methods are coroutines. */
export function serviceStubs(registry: FileRegistry): string {
  const services = [...registry.files].flatMap((file) => (file.proto.package === OWN ? file.services : []));
  const head = [
    '"""One class for each service of the API. Made by `npm run generate`."""',
    "",
    "from __future__ import annotations",
    "",
    "from typing import Any, AsyncIterator, Iterator",
    "",
    "from . import v1",
    "",
    "class Rpc:",
    '    """One method of the API."""',
    "    service: str",
    "    name: str",
    "    path: str",
    "    request: Any",
    "    response: Any",
    "    is_stream: bool",
    "",
    "RPCS: dict[str, Rpc]",
    '"""All methods, by their names such as `JobService/GetJob`."""',
    "",
    "def bind(service: str, caller: Any) -> Any: ...",
  ];
  const classes = services.flatMap((service) => [...serviceStub(service, false), ...serviceStub(service, true)]);
  return `${[...head, ...classes].join("\n")}\n`;
}

function serviceStub(service: DescService, isAsync: boolean): string[] {
  const methods = service.methods.flatMap((method) => methodStub(method, isAsync));
  const name = isAsync ? `Async${service.name}` : service.name;
  return ["", `class ${name}:`, ...docstring(commentOf(service), 4), ...methods];
}

function methodStub(method: DescMethod, isAsync: boolean): string[] {
  const { input, output, methodKind, name } = method;
  const isStream = methodKind === "server_streaming";
  const answer = `v1.${output.name}`;
  const iterator = isAsync ? "AsyncIterator" : "Iterator";
  const head = isAsync && !isStream ? "    async def" : "    def";
  return [
    `${head} ${name}(`,
    `        self, request: v1.${input.name}, *, timeout: float | None = None`,
    `    ) -> ${isStream ? `${iterator}[${answer}]` : answer}:`,
    ...docstring(commentOf(method), 8),
  ];
}

function enumStub(desc: DescEnum): string[] {
  const members = desc.values.flatMap((value) => [
    `${value.name}: ${pythonName(desc)}`,
    ...docstring(commentOf(value), 0),
  ]);
  return [
    `class ${desc.name}(int):`,
    ...docstring(commentOf(desc), 4),
    "    @classmethod",
    "    def Name(cls, number: int) -> str: ...",
    "    @classmethod",
    `    def Value(cls, name: str) -> ${pythonName(desc)}: ...`,
    "    @classmethod",
    "    def keys(cls) -> list[str]: ...",
    "    @classmethod",
    "    def values(cls) -> list[int]: ...",
    ...members,
  ];
}

function messageStub(desc: DescMessage): string[] {
  const fields = desc.fields.flatMap(fieldStub);
  const inner = [
    ...desc.nestedEnums.flatMap(enumStub),
    ...desc.nestedMessages.flatMap(messageStub),
    ...fields,
    ...initStub(desc),
    ...(WELL_KNOWN[desc.typeName] ?? []),
  ].map((line) => (line === "" ? "" : `    ${line}`));
  return [`class ${desc.name}(Message):`, ...docstring(commentOf(desc), 4), ...inner];
}

function initStub({ fields }: DescMessage): string[] {
  if (fields.length === 0) return ["def __init__(self) -> None: ..."];
  const args = fields.map((field) => `    ${field.name}: ${givenType(field)} | None = ...,`);
  return ["def __init__(", "    self,", "    *,", ...args, ") -> None: ..."];
}

/** A scalar can be set; a message, a list and a map can only be changed. */
function fieldStub(field: DescField): string[] {
  const comment = commentOf(field);
  if (field.fieldKind === "scalar" || field.fieldKind === "enum")
    return [`${field.name}: ${readType(field)}`, ...docstring(comment, 0)];
  const head = `def ${field.name}(self) -> ${readType(field)}:`;
  const body = docstring(comment, 4);
  return body.length === 0 ? ["@property", `${head} ...`] : ["@property", head, ...body];
}

function readType(field: DescField): string {
  switch (field.fieldKind) {
    case "scalar":
      return scalarType(field.scalar);
    case "enum":
      return pythonName(field.enum);
    case "message":
      return pythonName(field.message);
    case "list":
      return field.listKind === "message"
        ? `RepeatedMessage[${pythonName(field.message)}]`
        : `RepeatedScalar[${itemType(field)}]`;
    case "map":
      return `${mapType(field)}[${scalarType(field.mapKey)}, ${itemType(field)}]`;
  }
}

function mapType({ mapKind }: DescField & { fieldKind: "map" }): string {
  return mapKind === "message" ? "MessageMap" : "ScalarMap";
}

function givenType(field: DescField): string {
  switch (field.fieldKind) {
    case "list":
      return `Iterable[${itemType(field)}]`;
    case "map":
      return `Mapping[${scalarType(field.mapKey)}, ${itemType(field)}]`;
    default:
      return readType(field);
  }
}

function itemType(field: DescField & { fieldKind: "list" | "map" }): string {
  if (field.message !== undefined) return pythonName(field.message);
  if (field.enum !== undefined) return pythonName(field.enum);
  return scalarType(field.scalar ?? ScalarType.STRING);
}

function scalarType(scalar: ScalarType): string {
  switch (scalar) {
    case ScalarType.STRING:
      return "str";
    case ScalarType.BYTES:
      return "bytes";
    case ScalarType.BOOL:
      return "bool";
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return "float";
    default:
      return "int";
  }
}

/** `CreateJobResponse.Outcome` of a nested type. */
function pythonName(desc: DescMessage | DescEnum): string {
  return desc.parent === undefined ? desc.name : `${pythonName(desc.parent)}.${desc.name}`;
}

type Commented = DescMessage | DescField | DescEnum | DescEnum["values"][number] | DescService | DescMethod;

/** The comment before a declaration of the API, one string for each line. Protos of Google have theirs elsewhere. */
function commentOf(desc: Commented): readonly string[] {
  const { file, path } = placeOf(desc);
  if (file.proto.package !== OWN) return [];
  const places = file.proto.sourceCodeInfo?.location ?? [];
  const place = places.find(
    (one) => one.path.length === path.length && one.path.every((part, at) => part === path[at]),
  );
  const text = place?.leadingComments ?? "";
  return text.split("\n").map((line) => line.trimEnd().replace(/^ /, ""));
}

/** The numbers are those of the fields of descriptor.proto. */
function placeOf(desc: Commented): { readonly file: DescFile; readonly path: readonly number[] } {
  switch (desc.kind) {
    case "message": {
      if (desc.parent === undefined) return { file: desc.file, path: [4, indexIn(desc.file.proto.messageType, desc)] };
      const path = [...placeOf(desc.parent).path, 3, indexIn(desc.parent.proto.nestedType, desc)];
      return { file: desc.file, path };
    }
    case "enum": {
      if (desc.parent === undefined) return { file: desc.file, path: [5, indexIn(desc.file.proto.enumType, desc)] };
      return { file: desc.file, path: [...placeOf(desc.parent).path, 4, indexIn(desc.parent.proto.enumType, desc)] };
    }
    case "field":
      return {
        file: desc.parent.file,
        path: [...placeOf(desc.parent).path, 2, indexIn(desc.parent.proto.field, desc)],
      };
    case "enum_value":
      return {
        file: desc.parent.file,
        path: [...placeOf(desc.parent).path, 2, indexIn(desc.parent.proto.value, desc)],
      };
    case "service":
      return { file: desc.file, path: [6, indexIn(desc.file.proto.service, desc)] };
    case "rpc":
      return {
        file: desc.parent.file,
        path: [...placeOf(desc.parent).path, 2, indexIn(desc.parent.proto.method, desc)],
      };
  }
}

function indexIn(protos: readonly { readonly name: string }[], { name }: { readonly name: string }): number {
  return protos.findIndex((proto) => proto.name === name);
}

/** Omits the docstring of a declaration without a comment. */
function docstring(lines: readonly string[], indent: number): string[] {
  const blank = " ".repeat(indent);
  const text = lines.join("\n").trim().replaceAll("\\", "\\\\").replaceAll('"""', "'''");
  if (text === "") return [];
  const wrapped = paragraphsOf(text).flatMap((line) => wrap(line, COLUMNS - indent));
  const [first = "", ...rest] = wrapped;
  if (rest.length === 0 && !first.endsWith('"')) return [`${blank}"""${first}"""`];
  const indented = rest.map((line) => (line === "" ? "" : blank + line));
  return [`${blank}"""${first}`, ...indented, `${blank}"""`];
}

/** The lines of each paragraph as one, because they end elsewhere in Python. Lines of an example stay as they are. */
function paragraphsOf(text: string): string[] {
  const lines: string[] = [];
  for (const line of text.split("\n")) {
    const last = lines.at(-1) ?? "";
    const isOfLast = last !== "" && line !== "" && !/^ /.test(line) && !/^ /.test(last);
    if (isOfLast) lines[lines.length - 1] = `${last} ${line}`;
    else lines.push(line);
  }
  return lines;
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let rest = text;
  while (rest.length > width) {
    const at = rest.lastIndexOf(" ", width);
    if (at <= 0) break;
    lines.push(rest.slice(0, at));
    rest = rest.slice(at + 1);
  }
  return [...lines, rest];
}
