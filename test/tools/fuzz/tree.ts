/** A message as plain data, which `create` of protobuf-es accepts: fields by local names, oneofs as `{case, value}`. */
export type Tree = { [field: string]: unknown };

/** A message of protobuf-es as plain data, in which any part can be replaced. */
export function treeOf(message: object): Tree {
  const { $typeName: _, $unknown: __, ...fields } = message as Tree;
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plain(value)]));
}

function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  return treeOf(value);
}
