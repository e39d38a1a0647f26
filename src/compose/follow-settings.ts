import { readSettingsAgain, type SettingsFile } from "../config/config-files.ts";
import { type FollowedFiles, type FollowPorts, followFiles } from "../runtime/follow-files.ts";

/** Follows a file with settings. Without one, `unset` stays in force. */
export function followSettings<T>(
  file: SettingsFile<T> | null,
  unset: T,
  ports: Omit<FollowPorts, "readFile">,
): FollowedFiles<T> {
  return followFiles(
    { ...ports, readFile: readSettingsAgain },
    {
      paths: file === null ? [] : [file.path],
      texts: file === null ? [] : [file.text],
      value: file?.value ?? unset,
      parse: ([text = ""]) => file?.parse(text) ?? unset,
    },
  );
}
