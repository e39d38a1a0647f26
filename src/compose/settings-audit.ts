import { createHash } from "node:crypto";
import type { createStore } from "../adapters/store/store.ts";
import type { SettingsFile } from "../config/config-files.ts";
import type { VariableName } from "../config/variables.ts";
import type { FollowedFiles } from "../runtime/follow-files.ts";
import { type Base, runLoops } from "./base.ts";

const LOOK_MS = 2_000;
/** In characters. An entry of the audit log has larger settings by their digest alone. */
const SHOWN_MAX = 16_384;

type Parts = Pick<Base, "clock" | "telemetry" | "parts"> & {
  readonly store: { readonly access: Pick<ReturnType<typeof createStore>["access"], "noteSettings"> };
};

/**
 * Writes to the audit log which settings of a file count: those of the start before it returns, and those of a changed
 * file. The settings must hold no secret. They count also while no entry can be written, which is tried again.
 */
export async function auditSettings<T>(
  { clock, telemetry, parts, store }: Parts,
  variable: VariableName,
  file: SettingsFile<T> | null,
  followed: FollowedFiles<T>,
): Promise<void> {
  if (file === null) return;
  let noted: string | null = null;
  const look = async () => {
    const [text = ""] = followed.texts();
    if (text === noted) return;
    const sha256 = createHash("sha256").update(text).digest("hex");
    const settings = followed.now();
    const isShown = JSON.stringify(settings).length <= SHOWN_MAX;
    await store.access.noteSettings({ variable, file: file.path, sha256, settings: isShown ? settings : null });
    noted = text;
  };
  const lookOrTell = () => look().catch((error: unknown) => telemetry.loopFailed({ loop: "audit of settings", error }));
  await lookOrTell();
  runLoops(parts, async (signal) => {
    while (!signal.aborted) {
      await clock.sleep(LOOK_MS, signal);
      if (!signal.aborted) await lookOrTell();
    }
  });
}
