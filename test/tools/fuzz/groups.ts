/** Sends the calls of a run in groups: many at a time, or one after the other with a look at the tables after each. */
import { fromBinary } from "@bufbuild/protobuf";
import type { Bank } from "./bank.ts";
import { type Answer, type Caller, type CallOptions, framed } from "./caller.ts";
import { Chance } from "./chance.ts";
import type { Departed } from "./departed.ts";
import { changedTables, type Digests } from "./digest.ts";
import { misuse } from "./misuse.ts";
import type { PlannedCall } from "./plan.ts";
import { methodNamed, pathOf } from "./surface.ts";
import { treeOf } from "./tree.ts";
import { codeOf, problemsOf } from "./verdict.ts";

/** A call whose answer, or whose effect, must not be. */
export type Finding = { readonly call: PlannedCall; readonly problem: string };

export type GroupDeps = {
  readonly caller: Caller;
  readonly bank: Bank;
  readonly seed: number;
  readonly digest: () => Promise<Digests>;
  readonly departed: Departed;
  readonly count: (call: PlannedCall, code: string) => void;
  readonly report: (finding: Finding) => void;
};

const CONCURRENT = 24;
const MISUSES_CONCURRENT = 6;
/** Streams have no end of their own. */
const STREAM_MS_MAX = 250;
const LEARN_SHARE = 0.3;
/**
 * Calls that were left may still run for a moment. Tables that move for longer move without them. The moment is counted
 * in calls that read the database, because a busy machine does less in any time.
 */
const CALM_LOOKS_MAX = 100;
const CALM_CALLS = 20;
const LIST_QUEUES = methodNamed("QueueService.ListQueues");

/** Sends calls side by side. Some callers leave before the answer. */
export async function together(deps: GroupDeps, next: () => PlannedCall, calls: number): Promise<void> {
  let left = calls;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      const call = next();
      const chance = Chance.ofCall(deps.seed + 1, call.number);
      const leaves = chance.is(0.03) ? { leaveAfterMs: chance.int(0, 30) } : {};
      await send(deps, call, { ...bounds(call, chance), ...leaves });
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT }, lane));
}

/** Sends calls that misuse HTTP/2, beside each other. */
export async function misused(deps: GroupDeps, next: () => PlannedCall, calls: number): Promise<void> {
  let left = calls;
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      const call = next();
      const { name, code, problems } = await misuse(deps.caller, Chance.ofCall(deps.seed + 3, call.number), call);
      deps.count(call, `${code.split(" (")[0]} on ${name}`);
      for (const problem of problems) deps.report({ call, problem });
    }
  };
  await Promise.all(Array.from({ length: MISUSES_CONCURRENT }, lane));
}

/** Sends one call after the other, and checks that a call that failed has changed nothing. */
export async function alone(deps: GroupDeps, next: () => PlannedCall, calls: number): Promise<void> {
  let before = await calm(deps);
  for (let left = calls; left > 0; left -= 1) {
    const call = next();
    const answer = await send(deps, call, bounds(call, Chance.ofCall(deps.seed + 1, call.number)));
    if (answer.left) {
      before = await calm(deps);
      continue;
    }
    const after = await deps.digest();
    const changed = answer.status === 0 ? [] : changedTables(before, after);
    if (changed.length > 0) {
      deps.report({ call, problem: `${codeOf(answer)} (${answer.message}), yet ${changed.join(", ")} changed` });
    }
    before = after;
  }
}

/** Sends one call, and reports what is wrong with its answer. */
export async function send(deps: GroupDeps, call: PlannedCall, options: CallOptions): Promise<Answer> {
  const answer = await deps.caller.call(pathOf(call.method), framed(call.request), options);
  deps.count(call, codeOf(answer).split(" (")[0] ?? "");
  if (answer.left) deps.departed.note(call);
  for (const problem of problemsOf(call.method, answer)) deps.report({ call, problem });
  if (Chance.ofCall(deps.seed + 2, call.number).is(LEARN_SHARE)) learn(deps.bank, call, answer);
  return answer;
}

/** Keeps what an answer has told, for later calls. */
export function learn(bank: Bank, { method }: PlannedCall, { messages }: Answer): void {
  if (!method.parent.typeName.startsWith("gangway.")) return;
  try {
    // The first message of a watch has a job, and its last one a cursor.
    for (const message of new Set([messages.at(0), messages.at(-1)])) {
      if (message !== undefined) bank.learn(method, treeOf(fromBinary(method.output, message)));
    }
  } catch {
    // Its verdict has told of it.
  }
}

/** How long a caller reads a stream. */
export function bounds({ method }: Pick<PlannedCall, "method">, chance: Chance): CallOptions {
  if (method.methodKind === "unary") return {};
  return { messagesMax: chance.int(1, 20), leaveAfterMs: chance.int(1, STREAM_MS_MAX) };
}

async function calm({ caller, digest }: GroupDeps): Promise<Digests> {
  let last = await digest();
  for (let look = 0; look < CALM_LOOKS_MAX; look += 1) {
    for (let made = 0; made < CALM_CALLS; made += 1) await caller.call(pathOf(LIST_QUEUES), framed(Buffer.alloc(0)));
    const now = await digest();
    if (changedTables(last, now).length === 0) break;
    last = now;
  }
  return last;
}
