/**
 * Writes as many lines as it is told to standard output, tells its parent so, and exits: once it is told to, or, with
 * `stays`, in the same turn once nobody can read any more.
 */
import { writeSync } from "node:fs";
import { openLog } from "../../src/telemetry/log-output.ts";

const [lines = "0", length = "0", exits = ""] = process.argv.slice(2);
const log = openLog(null, { onDropped: () => {}, onResumed: (dropped) => void process.send?.({ dropped }) });
for (let line = 0; line < Number(lines); line += 1) log.write(`${String(line).padEnd(Number(length))}\n`);
process.send?.("written");
if (exits === "stays") {
  while (mayBeRead());
  process.exit();
}
process.on("message", () => process.exit());

function mayBeRead(): boolean {
  try {
    writeSync(process.stdout.fd, "more");
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "EPIPE";
  }
}
