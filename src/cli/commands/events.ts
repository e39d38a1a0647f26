import { create } from "@bufbuild/protobuf";
import { type JobEvent, JobService, ListJobEventsResponseSchema } from "../../gen/gangway/v1/job_service_pb.ts";
import { append } from "../../runtime/lists.ts";
import { EXIT } from "../exit.ts";
import { resolveJobName } from "../jobs/job-name.ts";
import { type OutputFormat, outputOption } from "../options.ts";
import { ageCell } from "../output/job-text.ts";
import { printResponse } from "../output/print.ts";
import { examples, onRun, type Registrar, type Run } from "../run-command.ts";

const PAGE_SIZE = 500;

export function registerEvents(registrar: Registrar): void {
  const command = registrar.program
    .command("events")
    .description("List the events of a job, oldest first")
    .argument("<name>", "name of the job, as NAME or KIND/NAME")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway events llama-pretrain"));
  type EventsOptions = { output: OutputFormat };
  onRun<EventsOptions>(registrar, command, async (run, [argument = ""], { output }) => {
    const events = await allEvents(run, { namespace: run.namespace, name: await resolveJobName(run, argument) });
    const nowMs = run.deps.clock.nowMs();
    printResponse(run, output, {
      schema: ListJobEventsResponseSchema,
      message: create(ListJobEventsResponseSchema, { events }),
      names: events.map((event) => event.reason),
      columns: [{ title: "AGE", align: "right" }, { title: "TYPE" }, { title: "REASON" }, { title: "MESSAGE" }],
      rows: events.map((event) => [ageCell(event.time, nowMs), event.type, event.reason, event.message]),
      none: "no events",
    });
    return EXIT.ok;
  });
}

async function allEvents(run: Run, job: { readonly namespace: string; readonly name: string }): Promise<JobEvent[]> {
  const events: JobEvent[] = [];
  let pageToken = "";
  do {
    const request = { ...job, pageSize: PAGE_SIZE, pageToken };
    const page = await run.client.call(JobService.method.listJobEvents, request);
    append(events, page.events);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return events;
}
