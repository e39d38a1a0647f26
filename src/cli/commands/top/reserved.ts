import type { Run } from "../../run/run-command.ts";
import { isTable, type OutputFormat } from "../../shell/options.ts";

/** Says below a table with rows what its numbers are: `kubectl top` shows what is measured. */
export function noteReserved(run: Run, output: OutputFormat, rows: number): void {
  if (isTable(output) && rows > 0) run.deps.stderr("held GPUs are reserved; how busy they are is not measured\n");
}
