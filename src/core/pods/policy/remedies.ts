/** Writes the commands by which an admin lifts what a pod policy refuses. */
import { type Allowance, allowanceText, covers, readAllowance } from "./allowances.ts";
import type { LimitExcess } from "./limits.ts";

/** Longer texts of a template are cut in messages, so they cannot be part of a command. */
export const SHOWN_MAX = 200;

/**
 * The commands for the errors of one job, in their order. An admin who runs them one after the other has allowed all:
 * only the first one makes a namespace that does not exist.
 */
export class Remedies {
  readonly #namespace: string;
  #isNew: boolean;

  constructor(namespace: string, isNew: boolean) {
    this.#namespace = namespace;
    this.#isNew = isNew;
  }

  /** Allows what a pod needs beyond its level. If no allowance can, allows everything. */
  allow(needs: Allowance): string {
    return this.#command(allowFlag(needs));
  }

  /** Adds an entry to a limit. If no entry takes the value, lifts the limit. */
  widen({ kind, entry }: Pick<LimitExcess, "kind" | "entry">): string {
    const isPossible = entry !== null && entry.length <= SHOWN_MAX;
    return this.#command(isPossible ? `--also ${shellWord(`${kind}=${entry}`)}` : `--only ${kind}=any`);
  }

  #command(flags: string): string {
    const verb = this.#isNew ? "create" : "update";
    this.#isNew = false;
    return `gangway namespace ${verb} ${shellWord(this.#namespace.slice(0, SHOWN_MAX))} ${flags}`;
  }
}

function allowFlag(needs: Allowance): string {
  const read = readAllowance(allowanceText(needs));
  const text = read.kind === "read" && covers(read.allowance, needs) ? allowanceText(read.allowance) : null;
  return text === null || text.length > SHOWN_MAX ? "--pod-security privileged" : `--allow ${shellWord(text)}`;
}

/** One word of a shell. Admins copy these commands, whose texts come from templates of users. */
function shellWord(text: string): string {
  return /^[-\w./:=]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
