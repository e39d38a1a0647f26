/** A process that takes the directory it is given, says how that went, and holds on until its input ends. */
import { DirectoryHeldError, lockDirectory } from "../../src/adapters/store/db/directory-lock.ts";

try {
  lockDirectory(process.argv[2] ?? "");
  console.log("held");
} catch (error) {
  console.log(error instanceof DirectoryHeldError ? `refused ${error.pid}` : String(error));
}
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
