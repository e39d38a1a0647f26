import { create } from "@bufbuild/protobuf";
import {
  ListNamespacesResponseSchema,
  type Namespace,
  NamespaceSchema,
  NamespaceService,
} from "../../gen/gangway/v1/namespace_service_pb.ts";
import { EXIT, usageFailure } from "../exit.ts";
import { ageCell } from "../output/job-text.ts";
import { printLines } from "../output/print.ts";
import type { Column } from "../output/table.ts";
import { examples, onRun, type Registrar, type Run } from "../run-command.ts";
import { registerGetObject, registerListObjects, registerObjectVerb } from "./named-object-commands.ts";

type NamespaceSettings = { project?: string; defaultQueue?: string };

/** `gangway namespace` and its commands. */
export function registerNamespace(registrar: Registrar): void {
  const program = registrar.program
    .command("namespace")
    .description("List, create, change and delete the namespaces of jobs")
    .addHelpText("after", examples("gangway namespace list", "gangway namespace create team-nlp --project nlp"));
  const group = { ...registrar, program };
  const { listNamespaces, getNamespace, deleteNamespace } = NamespaceService.method;
  registerListObjects(group, {
    description: "List namespaces",
    plural: "namespaces",
    schema: ListNamespacesResponseSchema,
    list: (run) => run.client.call(listNamespaces, {}),
    table: (run, { namespaces }) => namespacesTable(run, namespaces),
  });
  registerGetObject(group, {
    example: "team-nlp",
    schema: NamespaceSchema,
    get: async (run, name) =>
      (await run.client.call(getNamespace, { name })).namespace ?? create(NamespaceSchema, { name }),
    table: (run, namespace) => namespacesTable(run, [namespace]),
  });
  registerCreate(group);
  registerUpdate(group);
  registerObjectVerb(group, "delete", {
    description: "Delete a namespace that has no jobs",
    example: "team-nlp",
    done: "deleted",
    change: (run, name) => run.client.call(deleteNamespace, { name }),
  });
}

function registerCreate(registrar: Registrar): void {
  const command = registrar.program
    .command("create")
    .description("Create a namespace")
    .argument("<name>", "name of the namespace")
    .option("--project <name>", "project of the namespace (default: default)")
    .option("--default-queue <name>", "queue for jobs that name no queue (default: default)")
    .addHelpText("after", examples("gangway namespace create team-nlp --project nlp --default-queue research"));
  onRun<NamespaceSettings>(registrar, command, async (run, [name = ""], { project = "", defaultQueue = "" }) => {
    await run.client.call(NamespaceService.method.createNamespace, { namespace: { name, project, defaultQueue } });
    printLines(run, [`namespace/${name} created`]);
    return EXIT.ok;
  });
}

function registerUpdate(registrar: Registrar): void {
  const command = registrar.program
    .command("update")
    .summary("Change a namespace")
    .description("Change a namespace. Omitted options change nothing.")
    .argument("<name>", "name of the namespace")
    .option("--project <name>", "project of the namespace; can change only while the namespace has no jobs")
    .option("--default-queue <name>", "queue for jobs that name no queue")
    .addHelpText("after", examples("gangway namespace update team-nlp --default-queue default"));
  onRun<NamespaceSettings>(registrar, command, async (run, [name = ""], { project, defaultQueue }) => {
    if (project === undefined && defaultQueue === undefined)
      throw usageFailure("there is nothing to change; give --project or --default-queue");
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

const COLUMNS: readonly Column[] = [
  { title: "NAME" },
  { title: "PROJECT" },
  { title: "DEFAULT QUEUE" },
  { title: "AGE", align: "right" },
];

function namespacesTable(run: Run, namespaces: readonly Namespace[]) {
  const nowMs = run.deps.clock.nowMs();
  const rows = namespaces.map(({ name, project, defaultQueue, createTime }) => [
    name,
    project,
    defaultQueue,
    ageCell(createTime, nowMs),
  ]);
  return { columns: COLUMNS, rows, names: namespaces.map(({ name }) => `namespace/${name}`) };
}
