/**
 * Loaded before a test file. Ends the file's process if it runs for too long, and says what keeps it running: a test
 * that failed can leave a server, a timer or a process open. Does not keep the process running itself.
 */
const limitMs = Number(process.env["GANGWAY_TEST_FILE_MS_MAX"]);

setTimeout(() => {
  const open = process.getActiveResourcesInfo().join(", ");
  process.stderr.write(`the file was ended, because it ran for ${limitMs / 1000} s; still open: ${open}\n`);
  process.exit(1);
}, limitMs).unref();
