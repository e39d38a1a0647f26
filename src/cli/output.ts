import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { toJson } from "@bufbuild/protobuf";
import { stringify } from "yaml";
import type { OutputFormat, Run } from "./shell.ts";
import { type Column, renderTable } from "./table.ts";

/** One thing to show, in each of its forms. */
export type Shown<D extends DescMessage> = {
  readonly schema: D;
  readonly message: MessageShape<D>;
  readonly names: readonly string[];
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly string[])[];
  /** Said instead of an empty table. */
  readonly none: string;
};

/** Prints a message in the format that was asked for; JSON and YAML are protobuf's JSON. */
export function show<D extends DescMessage>(run: Run, format: OutputFormat, shown: Shown<D>): void {
  if (format === "name") printLines(run, shown.names);
  else if (format !== "table") run.deps.stdout(encodeMessage(format, shown.schema, shown.message));
  else if (shown.rows.length === 0) run.deps.stderr(`${shown.none}\n`);
  else printTable(run, shown.columns, shown.rows);
}

/** What a change has done: a line to people, or a message in the format that was asked for. */
export function showLine<D extends DescMessage>(
  run: Run,
  format: OutputFormat,
  { line, ...shown }: Pick<Shown<D>, "schema" | "message" | "names"> & { readonly line: string },
): void {
  if (format === "table") printLines(run, [line]);
  else show(run, format, { ...shown, columns: [], rows: [], none: "" });
}

export function encodeMessage<D extends DescMessage>(
  format: "json" | "yaml",
  schema: D,
  message: MessageShape<D>,
): string {
  const json = toJson(schema, message);
  return format === "json" ? `${JSON.stringify(json, null, 2)}\n` : stringify(json);
}

export function printTable(run: Run, columns: readonly Column[], rows: readonly (readonly string[])[]): void {
  const { isTty, columns: width, color } = run.deps;
  printLines(run, renderTable(columns, rows, { columns: isTty ? width : null, color }));
}

export function printLines(run: Run, lines: readonly string[]): void {
  if (lines.length > 0) run.deps.stdout(`${lines.join("\n")}\n`);
}
