/** Everything that a run found, each kind once, with what sends it again. */

import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Caller, framed } from "./caller.ts";
import { History, kindOfFinding, type Sent, writeFailure } from "./failures.ts";
import type { Finding } from "./groups.ts";
import { jsonOf, type PlannedCall } from "./plan.ts";
import { shrunk } from "./shrink.ts";
import { pathOf, shortName } from "./surface.ts";
import { isTimed, problemsOf } from "./verdict.ts";

const FOLDER = join(tmpdir(), "gangway-fuzz-failures");
/** Text of a request that is printed; its file has all of it. */
const SHOWN_CHARS = 2000;
const LEAVE_MS = 30_000;

export type FindingsOf = {
  readonly seed: number;
  readonly caller: Pick<Caller, "call">;
  readonly print: (line: string) => void;
  /** The arguments of `npm run fuzz` that send a call again. Omitted: those that read its file. */
  readonly again?: (call: PlannedCall) => string;
};

export class Findings {
  readonly all: string[] = [];
  readonly #of: FindingsOf;
  readonly #history = new History();
  readonly #kinds = new Set<string>();
  #fresh: { readonly finding: Finding; readonly before: readonly Sent[] }[] = [];

  constructor(of: FindingsOf) {
    this.#of = of;
  }

  /** Remembers a call that is sent. */
  sent(call: PlannedCall): void {
    this.#history.add(call);
  }

  report(finding: Finding): void {
    if (!this.#isNew(shortName(finding.call.method), finding.problem)) return;
    this.#fresh.push({ finding, before: this.#history.all });
  }

  /** Drops the new findings that a machine can have caused that stood still. Others of their kinds are new again. */
  dropTimed(): void {
    const dropped = this.#fresh.filter(({ finding }) => isTimed(finding.problem));
    this.#fresh = this.#fresh.filter(({ finding }) => !isTimed(finding.problem));
    for (const { finding } of dropped) {
      this.#kinds.delete(kindOfFinding(shortName(finding.call.method), finding.problem));
    }
  }

  /** A problem that no single call shows. */
  note(problem: string): void {
    if (!this.#isNew("", problem)) return;
    this.all.push(problem);
    this.#of.print(problem);
  }

  /** Makes the requests of new findings smaller, writes them to files and prints them. */
  async describe(): Promise<void> {
    const fresh = this.#fresh;
    this.#fresh = [];
    for (const { finding, before } of fresh) await this.#describeOne(finding, before);
  }

  async #describeOne({ call, problem }: Finding, before: readonly Sent[]): Promise<void> {
    const { seed, print } = this.#of;
    const smallest = await this.#shrunk(call, problem);
    const file = writeFailure(FOLDER, { seed, call: smallest, problem, before });
    this.all.push(`${shortName(call.method)}: ${problem}`);
    print(`${shortName(call.method)}: ${problem}`);
    print(`  seed ${seed}, call ${call.number} (${call.style})`);
    print(`  json ${JSON.stringify(jsonOf(smallest)).slice(0, SHOWN_CHARS)}`);
    print(`  base64 ${smallest.request.toString("base64").slice(0, SHOWN_CHARS)}`);
    print(`  npm run fuzz -- ${this.#of.again?.(call) ?? `--replay ${file}`}`);
  }

  /** The request without the fields that its problem does not need; the request itself if it shows no problem again. */
  async #shrunk(call: PlannedCall, problem: string): Promise<PlannedCall> {
    const rpc = shortName(call.method);
    const kind = kindOfFinding(rpc, problem);
    const fails = async (one: PlannedCall) => {
      const answer = await this.#of.caller.call(pathOf(one.method), framed(one.request), { leaveAfterMs: LEAVE_MS });
      return problemsOf(one.method, answer).some((found) => kindOfFinding(rpc, found) === kind);
    };
    return (await fails(call)) ? await shrunk(call, fails) : call;
  }

  #isNew(rpc: string, problem: string): boolean {
    const kind = kindOfFinding(rpc, problem);
    if (this.#kinds.has(kind)) return false;
    this.#kinds.add(kind);
    return true;
  }
}
