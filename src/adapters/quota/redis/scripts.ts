import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A script as Redis knows it: by the SHA-1 of its text. */
export type Script = { readonly text: string; readonly sha: string };

const COMMON = read("common");

/** One script for each verb of the counters; what each takes and answers is written at its head. */
export const SCRIPTS = {
  open: script("open"),
  grant: script("grant"),
  free: script("free"),
  setLimits: script("set-limits"),
  used: script("used"),
} as const;

function script(name: string): Script {
  const text = `${COMMON}\n${read(name)}`;
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

function read(name: string): string {
  return readFileSync(join(import.meta.dirname, `${name}.lua`), "utf8");
}
