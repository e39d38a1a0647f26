/** Writes as many lines as it is told to standard output, tells its parent so, and exits once it is told to. */
import { openLog } from "../../src/telemetry/log-output.ts";

const [lines = "0", length = "0"] = process.argv.slice(2);
const log = openLog(null, (dropped) => void process.send?.({ dropped }));
for (let line = 0; line < Number(lines); line += 1) log.write(`${String(line).padEnd(Number(length))}\n`);
process.send?.("written");
process.on("message", () => process.exit());
