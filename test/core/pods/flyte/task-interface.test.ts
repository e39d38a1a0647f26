import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  readInterface,
  SIMPLE_TYPES,
  type TaskVariable,
  typedInterface,
  variableMap,
} from "../../../../src/core/pods/flyte/task-interface.ts";

type Field = { readonly number: number; readonly value: number | Uint8Array };

/** Reads a protobuf message, field by field, as any reader of its wire format does. */
function fieldsOf(bytes: Uint8Array): readonly Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]!;
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const isBytes = (tag & 7) === 2;
    const value = varint();
    if (isBytes) at += value;
    fields.push({ number: tag >> 3, value: isBytes ? bytes.subarray(at - value, at) : value });
  }
  assert.equal(at, bytes.length, "the message ends with its last field");
  return fields;
}

const inside = (field: Field | undefined) => fieldsOf(field?.value as Uint8Array);

/** The variables of a message `VariableMap`, by Flyte's numbers of fields. */
function variablesOf(bytes: Uint8Array): readonly TaskVariable[] {
  return fieldsOf(bytes).map((entry) => {
    const [key, variable] = inside(entry);
    const [type] = inside(variable);
    return { name: Buffer.from(key?.value as Uint8Array).toString("utf8"), type: typeOf(type) };
  });
}

function typeOf(field: Field | undefined): string {
  const [type] = inside(field);
  if (type?.number === 1) return SIMPLE_TYPES[type.value as number] ?? "";
  if (type?.number === 3) return `${typeOf({ number: 1, value: type.value })}[]`;
  const dimensionality = inside(type).find(({ number }) => number === 2)?.value ?? 0;
  return dimensionality === 1 ? "multipart" : "blob";
}

const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_-]{0,62}$/);
const type = fc
  .tuple(fc.constantFrom(...SIMPLE_TYPES, "blob", "multipart"), fc.constantFrom("", "[]"))
  .map((parts) => parts.join(""));
const variables = fc.uniqueArray(fc.record({ name, type }, { noNullPrototype: true }), {
  selector: (one) => one.name,
  minLength: 1,
  maxLength: 100,
});

test("the names and types of an interface come back from the message that Flyte's co-pilot reads", () => {
  fc.assert(
    fc.property(variables, variables, (inputs, outputs) => {
      const text = inputs.map((one) => ` ${one.name} = ${one.type} `).join(",");
      assert.deepEqual(readInterface(text), { kind: "interface", variables: inputs });
      assert.deepEqual(variablesOf(Buffer.from(variableMap(inputs), "base64")), inputs);
      const [first, second] = fieldsOf(Buffer.from(typedInterface({ inputs, outputs }), "base64"));
      assert.deepEqual([first?.number, second?.number], [1, 2]);
      assert.deepEqual(variablesOf(first?.value as Uint8Array), inputs);
      assert.deepEqual(variablesOf(second?.value as Uint8Array), outputs);
    }),
  );
});

test("one integer is the message that Flyte's definitions give, byte by byte", () => {
  // 0a 09: variables, an entry of 9 bytes. 0a 01 78: its key x. 12 04: its value. 0a 02: the type. 08 01: INTEGER.
  assert.equal(variableMap([{ name: "x", type: "integer" }]), "CgkKAXgSBAoCCAE=");
});

test("an interface has at most 100 names", () => {
  const text = Array.from({ length: 101 }, (_, at) => `v${at}=float`).join(",");
  assert.deepEqual(readInterface(text), { kind: "refused", message: "has 101 names: at most 100 are allowed" });
});
