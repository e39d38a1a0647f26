import { create } from "@bufbuild/protobuf";
import { type Command, InvalidArgumentError, Option } from "commander";
import {
  type CountJobsResponse,
  CountJobsResponseSchema,
  type JobCount,
  JobProperty,
  JobService,
} from "../../gen/gangway/v1/job_service_pb.ts";
import { addFilterTextOptions } from "../jobs/filter-text.ts";
import { addJobFilterOptions, type JobFilterOptions, jobFilterOf } from "../jobs/job-filter.ts";
import { labelSelectorOf } from "../jobs/label-selector.ts";
import { ownName } from "../jobs/own-name.ts";
import { ageCell } from "../output/job-text.ts";
import { printResponse } from "../output/print.ts";
import type { Column } from "../output/table.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT, usageFailure } from "../shell/exit.ts";
import { isTable, noHeadersOption, type OutputFormat, outputOption, splitCommas } from "../shell/options.ts";

type CountOptions = JobFilterOptions & {
  readonly by: readonly Property[];
  readonly output: OutputFormat;
};

const PROPERTIES = ["phase", "queue", "namespace", "owner", "kind", "cluster", "flavor", "reason"] as const;
type Property = (typeof PROPERTIES)[number];

export function registerCount(registrar: Registrar): void {
  const command = addOptions(registrar.program.command("count"))
    .summary("Count jobs by their properties")
    .description(
      [
        "Count jobs, their pods and the tokens that they hold, in groups.",
        "Jobs that have ended count only if the filter has their phase or ended: the last 10,000 of the last 7 days.",
      ].join(" "),
    )
    .addHelpText(
      "after",
      examples(
        "gangway count",
        "gangway count -A --by queue,phase",
        "gangway count -A --by reason --filter 'phase:waiting queue:nlp+'",
        "gangway count --by owner --filter 'phase:failed ended:<1d' -o json",
      ),
    );
  onRun<CountOptions>(registrar, command, async (run, _args, options) => {
    const counted = await run.client.call(JobService.method.countJobs, {
      filter: await filterOf(run, options),
      groupBy: options.by.map((property) => JobProperty[property.toUpperCase() as Uppercase<Property>]),
    });
    print(run, counted, options);
    return EXIT.ok;
  });
}

function addOptions(command: Command): Command {
  return addFilterTextOptions(addJobFilterOptions(command))
    .addOption(
      new Option("--by <property,...>", `one or two of ${PROPERTIES.join(", ")}`)
        .default(["phase"], "phase")
        .argParser(parseProperties),
    )
    .addOption(noHeadersOption())
    .addOption(outputOption());
}

function parseProperties(text: string): readonly Property[] {
  const words = splitCommas(text.toLowerCase());
  const properties = words.flatMap((word) => PROPERTIES.find((property) => property === word) ?? []);
  const isRight = words.length === new Set(properties).size && [1, 2].includes(words.length);
  if (isRight) return properties;
  throw new InvalidArgumentError(`It must be one or two different ones of ${PROPERTIES.join(", ")}.`);
}

/** The service counts, so it must express every condition. */
async function filterOf(run: Run, options: JobFilterOptions) {
  if (labelSelectorOf(options.selector ?? []).others.length > 0) {
    throw usageFailure("count takes only KEY=VALUE in -l");
  }
  const filter = await jobFilterOf(run, options, []);
  if (options.mine !== true) return filter;
  if (filter.createdBy !== undefined) throw usageFailure("give either --mine or owner: in --filter, not both");
  return { ...filter, createdBy: [await ownName(run)] };
}

function print(run: Run, counted: CountJobsResponse, { by, output }: CountOptions): void {
  const { groups, rest, restGroups } = counted;
  const others = rest === undefined ? [] : [[`${restGroups} others`, ...by.slice(1).map(() => "")]];
  const named = [...groups.map(({ values }) => values), ...others];
  const counts = [...groups, ...(rest === undefined ? [] : [rest])];
  const nowMs = run.deps.clock.nowMs();
  printResponse(run, output, {
    schema: CountJobsResponseSchema,
    message: create(CountJobsResponseSchema, counted),
    names: groups.map(({ values }) => values.join("/")),
    columns: columnsOf(by),
    rows: counts.map((count, at) => [...(named[at] ?? []), ...cellsOf(count, nowMs)]),
    none: "no jobs",
  });
  if (isTable(output) && counted.endedCapped) {
    run.deps.stderr("more jobs have ended; only the 10,000 that ended last are counted\n");
  }
}

function columnsOf(by: readonly Property[]): readonly Column[] {
  return [
    ...by.map((property) => ({ title: property.toUpperCase() })),
    { title: "JOBS", align: "right" },
    { title: "PODS", align: "right" },
    { title: "OLDEST", align: "right", drop: 1 },
    { title: "HELD" },
  ];
}

function cellsOf({ jobs, pods, tokens, oldestCreateTime }: JobCount, nowMs: number): readonly string[] {
  const held = Object.entries(tokens)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([pool, amount]) => `${amount} ${pool || "of other pools"}`);
  return [`${jobs}`, `${pods}`, ageCell(oldestCreateTime, nowMs), held.join(", ")];
}
