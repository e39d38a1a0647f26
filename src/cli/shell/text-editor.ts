/** Lets the user change text in their editor, in a file that only they can read. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FileTooLarge, readBoundedFile } from "../../runtime/read-bounded-file.ts";
import { SOURCE_BYTES_MAX } from "../manifest/sources.ts";
import type { ChildProgram, CliDeps, TextEditor } from "./deps.ts";

export type EditorPorts = {
  /** The command of the editor, as a shell reads it. */
  readonly command: string;
  readonly startProgram: (argv: readonly string[], onFailure: (reason: string) => void) => ChildProgram;
  readonly takeSignals: CliDeps["takeSignals"];
};

/** Opens an editor for a file of this name. */
export async function openTextEditor(
  name: string,
  { command, startProgram, takeSignals }: EditorPorts,
): Promise<TextEditor> {
  const folder = await mkdtemp(join(tmpdir(), "gangway-edit-"));
  const path = join(folder, name);
  return {
    path,
    async edit(text) {
      await writeFile(path, text, { mode: 0o600 });
      let reason = "";
      // The shell splits the words of the command, such as `code --wait`.
      const program = startProgram(["sh", "-c", `${command} "$1"`, "sh", path], (why) => {
        reason = `: ${why}`;
      });
      // Ctrl-C is a key of many editors, and must not end this process.
      const stopTaking = takeSignals(({ name, fromTerminal }) => {
        if (!fromTerminal) program.signal(name);
      });
      const status = await program.ended.finally(stopTaking);
      if (status !== 0)
        return { kind: "failed", reason: `the editor "${command}" ended with status ${status}${reason}` };
      return await savedText(path);
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** The text that the user saved. A manifest of this size could not be sent. */
async function savedText(path: string): ReturnType<TextEditor["edit"]> {
  try {
    return { kind: "text", text: await readBoundedFile(path, { bytesMax: SOURCE_BYTES_MAX }) };
  } catch (error) {
    if (error instanceof FileTooLarge) return { kind: "failed", reason: error.message };
    throw error;
  }
}
