/** Keeps what a run finds: each kind of finding once, in a file that `--replay` takes. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { jsonOf, type PlannedCall } from "./plan.ts";
import { methodNamed, shortName } from "./surface.ts";

/** A request as a file holds it. */
export type Sent = { readonly rpc: string; readonly base64: string };

export type FailureFile = Sent & {
  readonly seed: number;
  readonly number: number;
  readonly problem: string;
  readonly json: unknown;
  /** The calls before it, oldest first. */
  readonly before: readonly Sent[];
};

/** Calls before a failure that its file keeps, and the size of the largest. */
const BEFORE_MAX = 300;
const BEFORE_BYTES_MAX = 20_000;

export class History {
  readonly #sent: Sent[] = [];

  add(call: PlannedCall): void {
    if (call.request.length > BEFORE_BYTES_MAX) return;
    this.#sent.push(sentOf(call));
    if (this.#sent.length > BEFORE_MAX) this.#sent.shift();
  }

  get all(): readonly Sent[] {
    return [...this.#sent];
  }
}

export function sentOf({ method, request }: Pick<PlannedCall, "method" | "request">): Sent {
  return { rpc: shortName(method), base64: request.toString("base64") };
}

export function callOf({ rpc, base64 }: Sent): PlannedCall {
  return { number: 0, style: "bytes", method: methodNamed(rpc), request: Buffer.from(base64, "base64") };
}

/** The key of a finding, the same each time it occurs: the RPC, and the problem without numbers and references. */
export function kindOfFinding(rpc: string, problem: string): string {
  return `${rpc} ${problem
    .replace(/[0-9a-f]{8}/g, "")
    .replace(/\d+/g, "")
    .slice(0, 80)}`;
}

/** Writes the file of a failure and returns its path. */
export function writeFailure(
  folder: string,
  { seed, call, problem, before }: { seed: number; call: PlannedCall; problem: string; before: readonly Sent[] },
): string {
  const { number } = call;
  const failure: FailureFile = { seed, number, problem, ...sentOf(call), json: jsonOf(call), before };
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${seed}-${number}.json`);
  writeFileSync(file, `${JSON.stringify(failure, null, 1)}\n`);
  return file;
}
