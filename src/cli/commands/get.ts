import { create } from "@bufbuild/protobuf";
import { JobSchema } from "../../gen/gangway/v1/job_pb.ts";
import { JobView, ListJobsResponseSchema } from "../../gen/gangway/v1/job_service_pb.ts";
import { EXIT } from "../exit.ts";
import { getJobsByName } from "../jobs/job-name.ts";
import { namespaceOption, type OutputFormat, outputOption } from "../options.ts";
import { jobsTable, qualifiedName } from "../output/job-text.ts";
import { printResponse } from "../output/print.ts";
import { examples, onRun, type Registrar } from "../run-command.ts";

export function registerGet(registrar: Registrar): void {
  const command = registrar.program
    .command("get")
    .description("Show jobs by name")
    .argument("<name...>", "names of jobs, as NAME or KIND/NAME")
    .addOption(namespaceOption())
    .addOption(outputOption())
    .addHelpText("after", examples("gangway get llama-pretrain", "gangway get llama-pretrain -o yaml"));
  type GetOptions = { namespace: string; output: OutputFormat };
  onRun<GetOptions>(registrar, command, async (run, names, { namespace, output }) => {
    const jobs = await getJobsByName(run, names, { namespace, view: JobView.FULL });
    const table = jobsTable(jobs, { nowMs: run.deps.clock.nowMs(), withNamespace: false });
    const response = { ...table, names: jobs.map(qualifiedName), none: "" };
    const [only] = jobs;
    if (only !== undefined && jobs.length === 1) {
      printResponse(run, output, { ...response, schema: JobSchema, message: only });
    } else {
      const message = create(ListJobsResponseSchema, { jobs: [...jobs] });
      printResponse(run, output, { ...response, schema: ListJobsResponseSchema, message });
    }
    return EXIT.ok;
  });
}
