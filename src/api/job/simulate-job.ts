/** Answers before a job is submitted: could it run, on which clusters, and if not, what is in the way? */
import { clusterWords } from "../../core/job/cluster-text.ts";
import { shownFlavors } from "../../core/job/flavor-labels.ts";
import type { Job } from "../../core/job/job.ts";
import type { PlannedAdmission } from "../../core/plan/model/plan-types.ts";
import type { SimulatedVerdict, Simulation } from "../../core/plan/model/simulation.ts";
import { type SimulateJobRequest, Verdict } from "../../gen/gangway/v1/job_service_pb.ts";
import { invariant } from "../../runtime/assert.ts";
import type { SimulateJob } from "../ports.ts";
import type { CallContext } from "../rpc/call.ts";
import { toProtoClusterRefusal, toProtoQuotaRefusal } from "./convert-refusal.ts";
import { asInRequest, checkSubmission, refusedSubmission, type SubmitPorts, toProtoWarning } from "./create-job.ts";
import { simulationTo } from "./hide-others.ts";
import { requestedJob } from "./request-manifest.ts";
import { RequestRuntimes } from "./request-runtimes.ts";

const VERDICT: Readonly<Record<SimulatedVerdict, Verdict>> = {
  FITS_NOW: Verdict.FITS_NOW,
  WAITS: Verdict.WAITS,
  NEVER: Verdict.NEVER,
};

/** Judges the job that a request would create, and creates nothing. Throws as `createJob` does if it is refused. */
export async function simulateJob(
  {
    intake,
    simulate,
    kinds,
    findRuntime,
  }: Pick<SubmitPorts, "intake" | "kinds" | "findRuntime"> & { readonly simulate: SimulateJob },
  { job, manifest }: SimulateJobRequest,
  context: CallContext,
) {
  const runtimeOf = await new RequestRuntimes(findRuntime).of({ job, manifest });
  const asked = requestedJob({ job, manifest }, { ...context, strict: false, kinds, runtimeOf });
  const request = { asked, requestId: "", strict: false, validateOnly: true };
  const submission = await checkSubmission(intake, request, context);
  const made = await intake.make(submission);
  if (made.kind === "refused") {
    invariant(!("job" in made.answer), "a submission without a request id has no earlier answer");
    const answer = asInRequest(made.answer, asked);
    invariant(!("job" in answer), "a refusal stays one");
    throw refusedSubmission(answer, submission.job, context.access);
  }
  const judged = await simulate(made.job, context.signal);
  // The caller has left, so the answer reaches no one.
  if (judged === null) return {};
  const simulation = simulationTo(context.access, judged, made.job.spec.runPolicy.schedulingPolicy.queue);
  const { verdict, admission, reason, clusters, quotas } = simulation;
  return {
    verdict: VERDICT[verdict],
    summary: summaryOf(made.job, simulation),
    reason,
    clusters: clusters.map(({ refusal, ...of }) => {
      return { ...of, verdict: VERDICT[of.verdict], ...(refusal && { refusal: toProtoClusterRefusal(refusal) }) };
    }),
    quotas: quotas.map(toProtoQuotaRefusal),
    ...(admission && { admission: toProtoPlanned(admission) }),
    warnings: [...asked.warnings, ...made.warnings.map(asked.named)].map(toProtoWarning),
  };
}

function toProtoPlanned({ cluster, simulated, members, flavors, allocations }: PlannedAdmission) {
  const tokens = allocations.map(({ pool, amount }) => ({ pool, amount: BigInt(amount) }));
  const where = { cluster: cluster ?? "", simulated: simulated === true };
  return { ...where, members: { ...members }, ...shownFlavors(flavors), tokens };
}

/** Builds one sentence that needs no context. */
function summaryOf(job: Job, { verdict, admission, message }: Simulation): string {
  const name = `${job.namespace}/${job.name}`;
  switch (verdict) {
    case "FITS_NOW":
      return `${name} can run now${whereText(admission)}`;
    case "WAITS":
      return (
        `${name} can run, but not now; it must first wait in the queue ` +
        `"${job.spec.runPolicy.schedulingPolicy.queue}": ${clauseOf(message)}`
      );
    case "NEVER":
      return `${name} can never run: ${message}`;
  }
}

/** Messages that begin with a verb are about the job. */
function clauseOf(message: string): string {
  return message.replace(/^(?=needs |waits )/, "it ");
}

function whereText(admission: PlannedAdmission | null): string {
  return admission?.cluster ? ` on ${clusterWords({ ...admission, name: admission.cluster })}` : "";
}
