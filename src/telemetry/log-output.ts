import sonicBoom from "sonic-boom";

/** Lines that wait for a slow reader. More are dropped: they would fill the memory. */
const WAITING_BYTES_MAX = 32 * 1024 * 1024;
/** How long a reader gets to make room. */
const RETRY_MS = 10;

/**
 * Opens a file for log lines; null: standard output. A line is written before `write` returns, so that a killed process
 * loses none. If the reader of a pipe is too slow, lines wait for it in their order, and the process goes on meanwhile;
 * what still waits is written when it exits. `onDropped` tells of lines that found no room to wait.
 */
export function openLog(file: string | null, onDropped: (lines: number) => void): { write: (line: string) => void } {
  let exits = false;
  let dropped = 0;
  let retry: NodeJS.Timeout | null = null;
  const output = new sonicBoom.SonicBoom({
    dest: file ?? process.stdout.fd,
    mkdir: true,
    sync: true,
    maxLength: WAITING_BYTES_MAX,
    // To try again at once is to stand still until there is room.
    retryEAGAIN: () => exits,
  });
  const writeWaiting = () => {
    retry = null;
    process.off("exit", writeAll);
    output.write("");
    if (retry !== null) return;
    const lines = dropped;
    dropped = 0;
    if (lines > 0) onDropped(lines);
  };
  // Not flushSync, which would try for ever if the reader has gone.
  const writeAll = () => {
    exits = true;
    output.write("");
  };
  const wait = () => {
    if (retry !== null) return;
    retry = setTimeout(writeWaiting, RETRY_MS);
    process.on("exit", writeAll);
  };
  output.on("drop", () => {
    dropped += 1;
  });
  output.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") output.write = () => true;
    else if (error.code === "EAGAIN" || error.code === "EBUSY") wait();
    else throw error;
  });
  return output;
}
