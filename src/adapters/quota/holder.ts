import type { Holder } from "../../core/quota/counters.ts";

/** As it is shown where the job's name is not at hand; callers cannot name admissions. */
export function holderText(holder: Holder): string {
  return holder.kind === "caller" ? holder.name : `job/${holder.jobUid}/${holder.admission}`;
}
