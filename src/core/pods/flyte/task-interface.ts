/**
 * The interface of a task, as its inputs or outputs with their types. Flyte's co-pilot takes it as a message of
 * `flyteidl.core` in base64.
 */

/** The simple types of Flyte, in the order of its enum. */
export const SIMPLE_TYPES = [
  "none",
  "integer",
  "float",
  "string",
  "boolean",
  "datetime",
  "duration",
  "binary",
  "error",
  "struct",
] as const;
/** A file, and a folder of files. */
const BLOBS = ["blob", "multipart"] as const;
/** After a type: a list of it. */
const LIST = "[]";

/** An input or an output, with its type: `integer`, `blob`, `string[]`. */
export type TaskVariable = { readonly name: string; readonly type: string };

type InterfaceOutcome =
  | { readonly kind: "interface"; readonly variables: readonly TaskVariable[] }
  | { readonly kind: "refused"; readonly message: string };

/** As many as a job has inputs. */
const VARIABLES_MAX = 100;
const NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/;

/** Reads `model=blob, epochs=integer, tags=string[]`. */
export function readInterface(text: string): InterfaceOutcome {
  const parts = text.split(",").map((part) => part.trim());
  if (parts.length > VARIABLES_MAX) return refused(`has ${parts.length} names: at most ${VARIABLES_MAX} are allowed`);
  const variables: TaskVariable[] = [];
  for (const part of parts) {
    const at = part.indexOf("=");
    const [name, type] = [part.slice(0, Math.max(0, at)).trim(), part.slice(at + 1).trim()];
    if (!NAME.test(name) || !isType(type)) {
      const types = [...SIMPLE_TYPES, ...BLOBS].join(", ");
      return refused(`has "${part.slice(0, 80)}": must be NAME=TYPE; types are ${types}, and TYPE[] for a list`);
    }
    if (variables.some((one) => one.name === name)) return refused(`has ${name} twice`);
    variables.push({ name, type });
  }
  return { kind: "interface", variables };
}

function refused(message: string): InterfaceOutcome {
  return { kind: "refused", message };
}

function isType(type: string): boolean {
  const base = type.endsWith(LIST) ? type.slice(0, -LIST.length) : type;
  return [...SIMPLE_TYPES, ...BLOBS].some((one) => one === base);
}

/** Flyte's `VariableMap`, in base64. */
export function variableMap(variables: readonly TaskVariable[]): string {
  return Buffer.from(mapBytes(variables)).toString("base64");
}

/** Flyte's `TypedInterface`, in base64. */
export function typedInterface(of: {
  readonly inputs: readonly TaskVariable[];
  readonly outputs: readonly TaskVariable[];
}): string {
  return Buffer.from([...message(1, mapBytes(of.inputs)), ...message(2, mapBytes(of.outputs))]).toString("base64");
}

/** The fields of `flyteidl/core/types.proto` and `interface.proto`. */
function mapBytes(variables: readonly TaskVariable[]): readonly number[] {
  return variables.flatMap(({ name, type }) => {
    const variable = message(1, typeBytes(type));
    return message(1, [...message(1, [...Buffer.from(name, "utf8")]), ...message(2, variable)]);
  });
}

function typeBytes(type: string): readonly number[] {
  if (type.endsWith(LIST)) return message(3, typeBytes(type.slice(0, -LIST.length)));
  if (type === "blob") return message(5, []);
  if (type === "multipart") return message(5, [0x10, 1]);
  return [0x08, (SIMPLE_TYPES as readonly string[]).indexOf(type)];
}

/** A field whose value has a length: a message or a text. */
function message(field: number, bytes: readonly number[]): readonly number[] {
  return [(field << 3) | 2, ...varint(bytes.length), ...bytes];
}

function varint(value: number): readonly number[] {
  return value < 128 ? [value] : [(value % 128) | 128, ...varint(Math.floor(value / 128))];
}
