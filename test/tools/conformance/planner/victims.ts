import type { QuotaState } from "../../../../src/core/plan/usage/quota-state.ts";
import type { RunningGang } from "../../../../src/core/plan/victims/running-gang.ts";
import { victimsFor } from "../../../../src/core/plan/victims/victims.ts";
import { amountsOf, type CaseConfig, type CaseGang, type CaseState, quotaStateOf } from "./world.ts";

type VictimsCase = {
  readonly config: CaseConfig;
  readonly input: CaseState & { readonly gangs: readonly CaseGang[]; readonly incoming: string };
};

/** The gangs that the incoming one has preempted, and why, by id. */
export function runVictims({ config, input }: VictimsCase): object {
  const quota = quotaStateOf(input, config);
  const incoming = input.gangs.find(({ id }) => id === input.incoming);
  if (incoming === undefined) throw new Error(`the case has no gang ${input.incoming}`);
  const running = input.gangs.flatMap((gang) => runningGang(quota, gang));
  const victims = victimsFor(
    { quota, gangsOf: (queue) => running.filter(({ account }) => account.queue === queue) },
    {
      account: accountOf(quota, incoming),
      priority: incoming.priority,
      createTimeMs: incoming.createTime,
      requested: amountsOf(incoming.wants ?? {}),
      needed: new Set(incoming.needPreemption),
    },
  );
  const shown = victims.map(({ gang, reason }) => ({ id: gang.uid, queue: gang.account.queue, reason }));
  return { victims: shown.sort((a, b) => (a.id < b.id ? -1 : 1)) };
}

/** The gang as one that runs. None: it is not admitted. */
export function runningGang(quota: QuotaState, gang: CaseGang): readonly RunningGang[] {
  const { id: uid, admitted, priority, createTime: createTimeMs, evicted } = gang;
  if (admitted === undefined) return [];
  const uses = amountsOf(admitted.uses);
  const times = { createTimeMs, admitTimeMs: admitted.sinceMs };
  return [{ uid, account: accountOf(quota, gang), priority, ...times, evicted: evicted !== undefined, uses }];
}

function accountOf(quota: QuotaState, { queue }: CaseGang) {
  return quota.account(queue, "project", "namespace");
}
