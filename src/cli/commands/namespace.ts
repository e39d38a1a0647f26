import { create } from "@bufbuild/protobuf";
import {
  ListNamespacesResponseSchema,
  type Namespace,
  NamespaceSchema,
  NamespaceService,
} from "../../gen/gangway/v1/namespace_service_pb.ts";
import { EXIT, usageFailure } from "../exit.ts";
import { ageCell } from "../job-text.ts";
import { printLines } from "../output.ts";
import { examples, onRun, type Registrar, type Run } from "../shell.ts";
import type { Column } from "../table.ts";
import { registerGet, registerList, registerVerb } from "./resource.ts";

type Settings = { project?: string; defaultQueue?: string };

/** `gangway namespace …`: where jobs live. */
export function registerNamespace(registrar: Registrar): void {
  const program = registrar.program
    .command("namespace")
    .description("the namespaces that jobs live in")
    .addHelpText("after", examples("gangway namespace list", "gangway namespace create team-nlp --project nlp"));
  const group = { ...registrar, program };
  const { listNamespaces, getNamespace, deleteNamespace } = NamespaceService.method;
  registerList(group, {
    description: "list namespaces",
    plural: "namespaces",
    schema: ListNamespacesResponseSchema,
    list: (run) => run.client.call(listNamespaces, {}),
    table: (run, { namespaces }) => namespacesTable(run, namespaces),
  });
  registerGet(group, {
    example: "team-nlp",
    schema: NamespaceSchema,
    get: async (run, name) =>
      (await run.client.call(getNamespace, { name })).namespace ?? create(NamespaceSchema, { name }),
    table: (run, namespace) => namespacesTable(run, [namespace]),
  });
  registerCreate(group);
  registerUpdate(group);
  registerVerb(group, "delete", {
    description: "delete a namespace without jobs",
    example: "team-nlp",
    done: "deleted",
    change: (run, name) => run.client.call(deleteNamespace, { name }),
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
