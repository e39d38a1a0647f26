import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A script. Redis knows it by the SHA-1 of its text. */
export type Script = { readonly text: string; readonly sha: string };

/** The shared text in front of each verb. Verbs that only read or mark tokens need only the keys. */
const KEYS = read("common");
const WAITING_LINES = `${KEYS}\n${read("decide")}\n${read("waiting-line")}`;

/** One script for each verb of the counters. The head of each file describes its arguments and replies. */
export const SCRIPTS = {
  open: script("open", KEYS),
  grant: script("grant", WAITING_LINES),
  free: script("free", WAITING_LINES),
  giveBack: script("give-back", WAITING_LINES),
  shrink: script("shrink", WAITING_LINES),
  turnOver: script("turn-over", WAITING_LINES),
  confirm: script("confirm", KEYS),
  renew: script("renew", KEYS),
  stand: script("stand", WAITING_LINES),
  leave: script("leave", WAITING_LINES),
  tick: script("tick", WAITING_LINES),
  report: script("report", KEYS),
  setLimits: script("set-limits", WAITING_LINES),
  used: script("used", KEYS),
  moment: script("moment", KEYS),
  held: script("held", KEYS),
  find: script("find", KEYS),
  waiting: script("waiting", WAITING_LINES),
} as const;

/** Writes one key. It needs none of the keys of the counters. */
export const TAKE_ROOM = script("room", "");

function script(name: string, shared: string): Script {
  const text = `${shared}\n${read(name)}`;
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

function read(name: string): string {
  return readFileSync(join(import.meta.dirname, `${name}.lua`), "utf8");
}
