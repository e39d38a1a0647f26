/** Work that is always the same, of the kind that a large request makes: its cost tells how busy the machine is. */

const MEMBERS = 10_000;
const ROUNDS = 2;

/** Runs it once. Takes tens of milliseconds: a thread's CPU time is counted in ticks of some milliseconds. */
export function yardstick(): number {
  let read = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const object: Record<string, string> = {};
    for (let at = 0; at < MEMBERS; at += 1) object[`member-${at}`] = "value";
    const copy = JSON.parse(JSON.stringify(object)) as Readonly<Record<string, string>>;
    for (const name in copy) read += copy[name]?.length ?? 0;
  }
  return read;
}
