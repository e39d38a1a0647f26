/** Says at submit what `can-run` would say of a job that can never run. */
import type { Job } from "../../core/job/job.ts";
import type { FieldNote } from "../../core/job/request/sent.ts";
import type { HashedAsk } from "../../core/plan/model/ask.ts";
import type { NeverRuns } from "../../core/plan/model/simulation.ts";
import type { ForeseeJob } from "../ports.ts";
import type { CallContext } from "../rpc/call.ts";
import { simulationTo } from "./hide-others.ts";

/** The parts of a call on which the words of its answer depend. */
type Asking = Pick<CallContext, "access" | "signal" | "identity"> & { readonly strict: boolean };

/** Makes the function that warns of a job that can never run, in words that the caller may see. */
export function foreseer(foresee: ForeseeJob, { access, identity, signal, strict }: Asking) {
  const mayUse = (queue: string) => access.may("queues.use", { kind: "queue", name: queue });
  return async (job: Job, asked: HashedAsk): Promise<readonly FieldNote[]> => {
    const never = await foresee(job, asked, { caller: identity.subject, mayUse, mustKnow: strict, signal });
    return never === null ? [] : [{ field: "job.spec", message: wordsOf(never, { access, job }) }];
  };
}

function wordsOf(
  { refusal, queue }: NeverRuns,
  { access, job }: { readonly access: CallContext["access"]; readonly job: Job },
): string {
  const { reason, message, quotas, clusters: refusals } = refusal;
  const answer = { verdict: "NEVER", admission: null, reason, message, clusters: [], quotas, refusals } as const;
  const other = queue === null ? "" : `; queue ${queue} could take it`;
  const own = job.spec.runPolicy.schedulingPolicy.queue;
  return `can never run as things are: ${simulationTo(access, answer, own).message}${other}`;
}
