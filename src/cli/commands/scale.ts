import { JOB_ARGUMENT, resolveJobName } from "../jobs/job-name.ts";
import { partialSpec, updateJob } from "../jobs/update-job.ts";
import { examples, onRun, type Registrar } from "../run/run-command.ts";
import { EXIT, usageFailure } from "../shell/exit.ts";

export function registerScale(registrar: Registrar): void {
  const command = registrar.program
    .command("scale")
    .summary("Change the number of replicas of a job")
    .description(
      "Change the number of replicas of a job. While the job is admitted, this works only if its kind is elastic.",
    )
    .argument("<name>", JOB_ARGUMENT)
    .argument("<type=replicas...>", "replica types with their new numbers, e.g. Worker=8")
    .addHelpText("after", examples("gangway scale llama-pretrain Worker=8"));
  onRun<object>(registrar, command, async (run, args) => {
    // A kind may stand before the name: the first pair begins the replicas.
    const at = args.findIndex((word) => word.includes("="));
    const [names, pairs] = at < 0 ? [args.slice(0, 1), args.slice(1)] : [args.slice(0, at), args.slice(at)];
    const replicaSpecs = Object.fromEntries(pairs.map(parseReplicas));
    const job = { namespace: run.namespace, name: await resolveJobName(run, names) };
    const update = { spec: partialSpec({ replicaSpecs }), paths: ["spec.replica_specs.*.replicas"] };
    await updateJob(run, job, "scaled", update);
    return EXIT.ok;
  });
}

function parseReplicas(pair: string): [string, { replicas: number }] {
  const [, role = "", count = ""] = /^([^=]+)=(\d{1,9})$/.exec(pair) ?? [];
  if (role === "") throw usageFailure(`replicas must be TYPE=NUMBER, e.g. Worker=8, not ${pair}`);
  return [role, { replicas: Number(count) }];
}
