import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Run } from "../run/run-command.ts";
import { isTable, type OutputFormat } from "../shell/options.ts";
import { documentsOf, itemsOf, messageJson } from "./message-json.ts";
import { type Column, renderTable } from "./table.ts";
import { yamlText } from "./terminal.ts";

/** A response, with what each output format needs of it. */
export type PrintableResponse<D extends DescMessage> = {
  readonly schema: D;
  readonly message: MessageShape<D>;
  readonly names: readonly string[];
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly string[])[];
  /** Printed on stderr instead of an empty table. */
  readonly none: string;
};

/** Prints a response in the format of `--output`. JSON and YAML are protobuf's JSON mapping; see `messageJson`. */
export function printResponse<D extends DescMessage>(
  run: Run,
  format: OutputFormat,
  response: PrintableResponse<D>,
): void {
  if (format === "name") printLines(run, response.names);
  else if (!isTable(format)) printEncoded(run, format, response);
  else if (response.rows.length === 0) run.deps.stderr(`${response.none}\n`);
  else printTable(run, response.columns, response.rows, format);
}

/** Prints the result of a change: one line of text instead of a table, or the response in another format. */
export function printChange<D extends DescMessage>(
  run: Run,
  format: OutputFormat,
  { line, ...response }: Pick<PrintableResponse<D>, "schema" | "message" | "names"> & { readonly line: string },
): void {
  if (isTable(format)) printLines(run, [line]);
  else printResponse(run, format, { ...response, columns: [], rows: [], none: "" });
}

/** Prints a message in a format for programs. On a terminal, too, it is exact. */
export function printEncoded<D extends DescMessage>(
  run: Run,
  format: Exclude<OutputFormat, "table" | "wide" | "name">,
  { schema, message }: Pick<PrintableResponse<D>, "schema" | "message">,
): void {
  run.deps.stdout(encodeMessage(format, schema, message));
}

export function encodeMessage<D extends DescMessage>(
  format: Exclude<OutputFormat, "table" | "wide" | "name">,
  schema: D,
  message: MessageShape<D>,
): string {
  const json = messageJson(schema, message);
  if (format === "json") return `${JSON.stringify(json, null, 2)}\n`;
  if (format === "yaml") return documentsOf(schema, json).map(yamlText).join("---\n");
  const items = itemsOf(schema, json);
  return format.render(items === null ? json : { ...json, items }, items);
}

export function printTable(
  run: Run,
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  format: "table" | "wide",
): void {
  const lines = renderTable(columns, rows, { columns: tableWidth(run, format), color: run.deps.color });
  printPainted(run, run.hasHeadings === false ? lines.slice(1) : lines);
}

/** The width that a table must fit. Null: any, for a file or a pipe, and with `-o wide`. */
export function tableWidth({ deps }: Pick<Run, "deps">, format: OutputFormat): number | null {
  return deps.isTty && format !== "wide" ? deps.columns : null;
}

/** Prints lines that may have colours. Text of others in them has passed `oneLine`. */
export function printPainted(run: Run, lines: readonly string[]): void {
  if (lines.length > 0) run.deps.stdoutAsIs(`${lines.join("\n")}\n`);
}

export function printLines(run: Run, lines: readonly string[]): void {
  if (lines.length > 0) run.deps.stdout(`${lines.join("\n")}\n`);
}
