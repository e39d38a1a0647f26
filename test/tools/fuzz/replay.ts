/** Sends the calls of an earlier run again, one after the other, and prints the last answer. */
import { readFileSync } from "node:fs";
import type { DescMethod } from "@bufbuild/protobuf";
import { Bank } from "./bank.ts";
import { clientOf, restore, startClusters } from "./baseline.ts";
import { Caller } from "./caller.ts";
import { Chance } from "./chance.ts";
import { Departed } from "./departed.ts";
import { changedTables, digester } from "./digest.ts";
import { callOf, type FailureFile } from "./failures.ts";
import { bounds, send } from "./groups.ts";
import { HttpCaller } from "./http-caller.ts";
import { jsonOf, type PlannedCall, planCall } from "./plan.ts";
import { schedule } from "./schedule.ts";
import { Subject, type SubjectOptions } from "./subject.ts";
import { shortName } from "./surface.ts";
import { codeOf } from "./verdict.ts";

export type ReplayOptions = SubjectOptions & {
  readonly methods: readonly DescMethod[];
  /** True: as in the run with --http. Omitted: over gRPC. */
  readonly http?: boolean;
  readonly print: (line: string) => void;
};

/** `which` is a failure's file, or `SEED:N`. Returns 1 if the last call has a problem again. */
export async function replay(which: string, options: ReplayOptions): Promise<number> {
  await using parts = new AsyncDisposableStack();
  const { print } = options;
  const kubeconfigs = await startClusters(parts);
  const subject = parts.use(await Subject.start(options));
  const { address, url } = subject;
  const caller = options.http ? new HttpCaller(address, 1, url) : new Caller(address, 1);
  parts.defer(() => caller.close());
  await restore(clientOf(subject, parts), kubeconfigs);
  const bank = new Bank();
  const problems: string[] = [];
  const { seed, calls } = callsOf(which, { bank, methods: options.methods });
  const departed = new Departed();
  const digest = await digester(subject, departed);
  const deps = {
    caller,
    bank,
    seed,
    digest,
    departed,
    count: () => {},
    report: ({ problem }: { problem: string }) => problems.push(problem),
  };
  let last: PlannedCall | null = null;
  for (const next of calls) {
    const call = next();
    last = call;
    problems.length = 0;
    const before = await digest();
    const answer = await send(deps, call, bounds(call, Chance.ofCall(seed + 1, call.number)));
    const changed = answer.status === 0 || answer.left ? [] : changedTables(before, await digest());
    if (changed.length > 0) problems.push(`${codeOf(answer)}, yet ${changed.join(", ")} changed`);
    for (const problem of problems) print(`call ${call.number}, ${shortName(call.method)}: ${problem}`);
    if (subject.hasEnded) problems.push(`the service ended: ${subject.output}`);
  }
  if (last !== null) print(`${shortName(last.method)} ${JSON.stringify(jsonOf(last))}`);
  for (const line of subject.newErrors()) print(line);
  print(problems.length === 0 ? "the last call has no problem" : problems.join("\n"));
  return problems.length === 0 ? 0 : 1;
}

function callsOf(
  which: string,
  { bank, methods }: { readonly bank: Bank; readonly methods: readonly DescMethod[] },
): { readonly seed: number; readonly calls: readonly (() => PlannedCall)[] } {
  const [, seedText, numberText] = /^(\d+):(\d+)$/.exec(which) ?? [];
  if (seedText === undefined || numberText === undefined) {
    const file = JSON.parse(readFileSync(which, "utf8")) as FailureFile;
    return { seed: file.seed, calls: [...file.before, file].map((sent) => () => callOf(sent)) };
  }
  const seed = Number(seedText);
  const calls = schedule(Number(numberText) + 1).flatMap(({ from, calls: count, styles }) =>
    Array.from({ length: count }, (_, at) => () => planCall({ seed, bank, methods }, from + at, styles)),
  );
  return { seed, calls };
}
