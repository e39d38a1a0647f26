import { create } from "@bufbuild/protobuf";
import {
  ListNamespacesResponseSchema,
  type Namespace,
  NamespaceSchema,
  NamespaceService,
} from "../../gen/gangway/v1/namespace_service_pb.ts";
import { EXIT, usageFailure } from "../exit.ts";
import { ageCell } from "../job-text.ts";
import { printLines, show } from "../output.ts";
import { examples, type OutputFormat, onRun, outputOption, type Registrar, type Run } from "../shell.ts";
import type { Column } from "../table.ts";

type Output = { output: OutputFormat };
type Settings = { project?: string; defaultQueue?: string };

/** `gangway namespace …`: where jobs live. */
export function registerNamespace(registrar: Registrar): void {
  const program = registrar.program
    .command("namespace")
    .description("the namespaces that jobs live in")
    .addHelpText("after", examples("gangway namespace list", "gangway namespace create team-nlp --project nlp"));
  const group = { ...registrar, program };
  registerList(group);
  registerGet(group);
  registerCreate(group);
  registerUpdate(group);
  registerDelete(group);
}

function registerList(registrar: Registrar): void {
  const command = registrar.program
    .command("list")
    .description("list namespaces")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway namespace list"));
  onRun<Output>(registrar, command, async (run, _args, { output }) => {
    const { namespaces } = await run.client.call(NamespaceService.method.listNamespaces, {});
    const message = create(ListNamespacesResponseSchema, { namespaces });
    const table = namespacesTable(run, namespaces);
    show(run, output, { ...table, schema: ListNamespacesResponseSchema, message, none: "no namespaces" });
    return EXIT.ok;
  });
}

function registerGet(registrar: Registrar): void {
  const command = registrar.program
    .command("get")
    .description("show a namespace")
    .argument("<name>", "name of the namespace")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway namespace get team-nlp -o yaml"));
  onRun<Output>(registrar, command, async (run, [name = ""], { output }) => {
    const { namespace } = await run.client.call(NamespaceService.method.getNamespace, { name });
    const message = namespace ?? create(NamespaceSchema, { name });
    show(run, output, { ...namespacesTable(run, [message]), schema: NamespaceSchema, message, none: "" });
    return EXIT.ok;
  });
}

function registerCreate(registrar: Registrar): void {
  const command = registrar.program
    .command("create")
    .description("create a namespace")
    .argument("<name>", "name of the namespace")
    .option("--project <name>", "the project that it belongs to (default: default)")
    .option("--default-queue <name>", "the queue of jobs that name none (default: default)")
    .addHelpText("after", examples("gangway namespace create team-nlp --project nlp --default-queue research"));
  onRun<Settings>(registrar, command, async (run, [name = ""], { project = "", defaultQueue = "" }) => {
    await run.client.call(NamespaceService.method.createNamespace, { namespace: { name, project, defaultQueue } });
    printLines(run, [`namespace/${name} created`]);
    return EXIT.ok;
  });
}

function registerUpdate(registrar: Registrar): void {
  const command = registrar.program
    .command("update")
    .description("change a namespace: what is not given stays")
    .argument("<name>", "name of the namespace")
    .option("--project <name>", "the project that it belongs to; changes only while the namespace has no job")
    .option("--default-queue <name>", "the queue of jobs that name none")
    .addHelpText("after", examples("gangway namespace update team-nlp --default-queue default"));
  onRun<Settings>(registrar, command, async (run, [name = ""], { project, defaultQueue }) => {
    if (project === undefined && defaultQueue === undefined) throw usageFailure("give --project or --default-queue");
    const { namespace } = await run.client.call(NamespaceService.method.getNamespace, { name });
    await run.client.call(NamespaceService.method.updateNamespace, {
      namespace: {
        name,
        project: project ?? namespace?.project ?? "",
        defaultQueue: defaultQueue ?? namespace?.defaultQueue ?? "",
        resourceVersion: namespace?.resourceVersion ?? "",
      },
    });
    printLines(run, [`namespace/${name} updated`]);
    return EXIT.ok;
  });
}

function registerDelete(registrar: Registrar): void {
  const command = registrar.program
    .command("delete")
    .description("delete a namespace without jobs")
    .argument("<name>", "name of the namespace")
    .addHelpText("after", examples("gangway namespace delete team-nlp"));
  onRun<object>(registrar, command, async (run, [name = ""]) => {
    await run.client.call(NamespaceService.method.deleteNamespace, { name });
    printLines(run, [`namespace/${name} deleted`]);
    return EXIT.ok;
  });
}

const COLUMNS: readonly Column[] = [
  { title: "NAME" },
  { title: "PROJECT" },
  { title: "DEFAULT QUEUE" },
  { title: "AGE", align: "right" },
];

function namespacesTable(run: Run, namespaces: readonly Namespace[]) {
  const nowMs = run.deps.clock.nowMs();
  const rows = namespaces.map((one) => [one.name, one.project, one.defaultQueue, ageCell(one.createTime, nowMs)]);
  return { columns: COLUMNS, rows, names: namespaces.map((one) => `namespace/${one.name}`) };
}
