/** Serves queue admins: lists, shows, creates, changes and deletes priority classes. */
import { create } from "@bufbuild/protobuf";
import { type Command, Option } from "commander";
import { PreemptionPolicy } from "../../gen/gangway/v1/job_pb.ts";
import {
  ListPriorityClassesResponseSchema,
  type PriorityClass,
  PriorityClassSchema,
  PriorityClassService,
} from "../../gen/gangway/v1/priority_class_service_pb.ts";
import { ageCell } from "../output/job-text.ts";
import { printLines } from "../output/print.ts";
import type { Column } from "../output/table.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT, usageFailure } from "../shell/exit.ts";
import { parseInt32 } from "../shell/options.ts";
import { registerGetObject, registerListObjects, registerObjectVerb } from "./named-object-commands.ts";

const POLICIES = { "lower-priority": PreemptionPolicy.LOWER_PRIORITY, never: PreemptionPolicy.NEVER } as const;

type Settings = { readonly description?: string; readonly default?: "yes" | "no" };
type FirstSettings = Settings & { readonly value: number; readonly preemption?: keyof typeof POLICIES };

/** `gangway priority-class` and its commands. */
export function registerPriorityClass(registrar: Registrar): void {
  const program = registrar.program
    .command("priority-class")
    .description("List, create, change and delete priority classes, which are names for priorities of jobs")
    .addHelpText(
      "after",
      examples(
        "gangway priority-class list",
        "gangway priority-class create production --value 1000",
        "gangway submit job.yaml --priority-class production",
      ),
    );
  const group = { ...registrar, program };
  const { listPriorityClasses, getPriorityClass, deletePriorityClass } = PriorityClassService.method;
  registerListObjects(group, {
    description: "List priority classes, the highest value first",
    plural: "priority classes",
    schema: ListPriorityClassesResponseSchema,
    list: (run) => run.client.call(listPriorityClasses, {}),
    table: (run, { priorityClasses }) => classesTable(run, priorityClasses),
  });
  registerGetObject(group, {
    example: "production",
    schema: PriorityClassSchema,
    get: async (run, name) =>
      (await run.client.call(getPriorityClass, { name })).priorityClass ?? create(PriorityClassSchema, { name }),
    table: (run, one) => classesTable(run, [one]),
  });
  registerCreate(group);
  registerUpdate(group);
  registerObjectVerb(group, "delete", {
    description: "Delete a priority class; jobs that have it keep its name and value",
    example: "production",
    done: "deleted",
    change: (run, name) => run.client.call(deletePriorityClass, { name }),
  });
}

function registerCreate(registrar: Registrar): void {
  const command = registrar.program
    .command("create")
    .description("Create a priority class")
    .argument("<name>", "name of the priority class")
    .requiredOption("--value <number>", "priority of its jobs; higher numbers are admitted first", parseInt32)
    .addOption(
      new Option("--preemption <whom>", "jobs that its jobs may preempt, if their queue says so; never: none")
        .choices(Object.keys(POLICIES))
        .default("lower-priority"),
    );
  addSettingFlags(command).addHelpText(
    "after",
    examples(
      "gangway priority-class create production --value 1000 --description 'serves customers'",
      "gangway priority-class create normal --value 0 --default yes",
      "gangway priority-class create patient --value 500 --preemption never",
    ),
  );
  onRun<FirstSettings>(registrar, command, async (run, [name = ""], settings) => {
    const { value, preemption = "lower-priority", description = "" } = settings;
    await run.client.call(PriorityClassService.method.createPriorityClass, {
      priorityClass: {
        ...{ name, value, description, globalDefault: settings.default === "yes" },
        preemptionPolicy: POLICIES[preemption],
      },
    });
    printLines(run, [`priority-class/${name} created`]);
    return EXIT.ok;
  });
}

function registerUpdate(registrar: Registrar): void {
  const command = registrar.program
    .command("update")
    .summary("Change a priority class")
    .description(
      "Change a priority class. Omitted options change nothing. The value and the preemption policy never change, " +
        "because jobs copy them: create another class.",
    )
    .argument("<name>", "name of the priority class");
  addSettingFlags(command).addHelpText(
    "after",
    examples("gangway priority-class update normal --default no", "gangway priority-class update low --description x"),
  );
  onRun<Settings>(registrar, command, async (run, [name = ""], settings) => {
    if (!run.hasOwnOptions) {
      throw usageFailure("there is nothing to change; give --description or --default");
    }
    const { getPriorityClass, updatePriorityClass } = PriorityClassService.method;
    const { priorityClass: before } = await run.client.call(getPriorityClass, { name });
    await run.client.call(updatePriorityClass, {
      priorityClass: {
        name,
        description: settings.description ?? before?.description ?? "",
        globalDefault: settings.default === undefined ? (before?.globalDefault ?? false) : settings.default === "yes",
        resourceVersion: before?.resourceVersion ?? "",
      },
    });
    printLines(run, [`priority-class/${name} updated`]);
    return EXIT.ok;
  });
}

function addSettingFlags(command: Command): Command {
  return command
    .option("--description <text>", "what the class is for")
    .addOption(
      new Option("--default <yes|no>", "whether jobs that name neither a class nor a priority get this class").choices([
        "yes",
        "no",
      ]),
    );
}

const COLUMNS: readonly Column[] = [
  { title: "NAME" },
  { title: "VALUE", align: "right" },
  { title: "PREEMPTION" },
  { title: "DEFAULT" },
  { title: "AGE", align: "right" },
  { title: "DESCRIPTION" },
];

function classesTable(run: Run, classes: readonly PriorityClass[]) {
  const nowMs = run.deps.clock.nowMs();
  const rows = classes.map(({ name, value = 0, preemptionPolicy, globalDefault, createTime, description }) => [
    name,
    String(value),
    preemptionPolicy === PreemptionPolicy.NEVER ? "never" : "lower-priority",
    globalDefault ? "yes" : "",
    ageCell(createTime, nowMs),
    description,
  ]);
  return { columns: COLUMNS, rows, names: classes.map(({ name }) => `priority-class/${name}`) };
}
