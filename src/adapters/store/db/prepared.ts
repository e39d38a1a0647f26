/** The statements that connections prepare, with their names there. */
const names = new Map<string, string>();

/**
 * A statement that runs so often that every connection prepares it once: the server then parses and plans it no more.
 * Its best plan must not depend on its parameters.
 */
export function prepared(text: string): string {
  if (!names.has(text)) names.set(text, `gangway_${names.size}`);
  return text;
}

/**
 * An array parameter of a prepared statement, whose length the server does not see. Else the plan for one short array
 * looks cheaper than the plan for all arrays, and the server plans the statement each time that it runs.
 */
export function unseenArray(param: `$${number}`, type: string): string {
  return `(select ${param}::${type}[])::${type}[]`;
}

/** The name under which connections prepare a statement. Undefined: they do not. */
export function preparedName(text: string): string | undefined {
  return names.get(text);
}
