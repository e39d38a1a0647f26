import { create } from "@bufbuild/protobuf";
import { InvalidArgumentError, Option } from "commander";
import {
  ListNamespacesResponseSchema,
  type Namespace,
  NamespaceSchema,
  NamespaceService,
} from "../../gen/gangway/v1/namespace_service_pb.ts";
import { ageCell } from "../output/job-text.ts";
import { printLines } from "../output/print.ts";
import type { Column } from "../output/table.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT, usageFailure } from "../shell/exit.ts";
import { registerGetObject, registerListObjects, registerObjectVerb } from "./named-object-commands.ts";
import { ON_CLUSTER_LOST, onClusterLostOption } from "./on-cluster-lost.ts";
import { addPodPolicyFlags, changedPodPolicy, type PodPolicyOptions, podSecurityCell } from "./pod-policy-flags.ts";

type NamespaceSettings = {
  project?: string;
  defaultQueue?: string;
  failureLogs?: "on" | "off";
  onClusterLost?: "wait" | "move";
} & PodPolicyOptions;

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
    .addOption(failureLogsOption("default: on"))
    .addOption(onClusterLostOption(["wait", "move"], " (default: move)"));
  addPodPolicyFlags(command).addHelpText(
    "after",
    examples(
      "gangway namespace create team-nlp --project nlp --default-queue research",
      "gangway namespace create team-efa --allow host-path=/dev/shm,host-network,capability=IPC_LOCK",
    ),
  );
  onRun<NamespaceSettings>(registrar, command, async (run, [name = ""], settings) => {
    const { project = "", defaultQueue = "" } = settings;
    const podPolicy = changedPodPolicy(undefined, settings);
    const parts = { ...(podPolicy === undefined ? {} : { podPolicy }), ...plainSettings(settings) };
    const namespace = { name, project, defaultQueue, ...parts };
    await run.client.call(NamespaceService.method.createNamespace, { namespace });
    printLines(run, [`namespace/${name} created`]);
    return EXIT.ok;
  });
}

function registerUpdate(registrar: Registrar): void {
  const command = registrar.program
    .command("update")
    .summary("Change a namespace")
    .description(
      "Change a namespace. Omitted options change nothing. --allow and --disallow add and take away allowances; " +
        "--only replaces the values of one limit, --also adds to them.",
    )
    .argument("<name>", "name of the namespace")
    .option("--project <name>", "project of the namespace; can change only while the namespace has no jobs")
    .option("--default-queue <name>", "queue for jobs that name no queue")
    .addOption(failureLogsOption("off also deletes those that are kept"))
    .addOption(onClusterLostOption(["wait", "move"], ""));
  addPodPolicyFlags(command).addHelpText(
    "after",
    examples(
      "gangway namespace update team-nlp --default-queue default",
      "gangway namespace update team-nlp --failure-logs off",
      "gangway namespace update team-nlp --on-cluster-lost move",
      "gangway namespace update team-nlp --allow host-path=/dev/shm,host-network,capability=IPC_LOCK",
      "gangway namespace update team-nlp --pod-security restricted --only image=ghcr.io/acme/*",
    ),
  );
  onRun<NamespaceSettings>(registrar, command, async (run, [name = ""], settings) => {
    const { project, defaultQueue } = settings;
    const isPlain = project === undefined && defaultQueue === undefined;
    const changesMore = Object.keys(plainSettings(settings)).length > 0;
    if (isPlain && !changesMore && changedPodPolicy(undefined, settings) === undefined)
      throw usageFailure(
        "there is nothing to change; give --project, --default-queue, --failure-logs, --on-cluster-lost, " +
          "--pod-security, --allow, --disallow, --only or --also",
      );
    const { namespace } = await run.client.call(NamespaceService.method.getNamespace, { name });
    const podPolicy = changedPodPolicy(namespace?.podPolicy, settings);
    await run.client.call(NamespaceService.method.updateNamespace, {
      namespace: {
        name,
        project: project ?? namespace?.project ?? "",
        defaultQueue: defaultQueue ?? namespace?.defaultQueue ?? "",
        resourceVersion: namespace?.resourceVersion ?? "",
        ...(podPolicy === undefined ? {} : { podPolicy }),
        ...plainSettings(settings),
      },
    });
    printLines(run, [`namespace/${name} updated`]);
    return EXIT.ok;
  });
}

function failureLogsOption(more: string): Option {
  return new Option(
    "--failure-logs <on|off>",
    `whether the last lines of containers that fail are kept with their jobs (${more})`,
  ).argParser((text: string) => {
    if (text !== "on" && text !== "off") throw new InvalidArgumentError("It must be on or off.");
    return text;
  });
}

/** The settings that a change leaves as they are if they are omitted. */
function plainSettings({ failureLogs, onClusterLost }: NamespaceSettings) {
  return {
    ...(failureLogs === undefined ? {} : { keepFailureLogs: failureLogs === "on" }),
    ...(onClusterLost === undefined ? {} : { onClusterLost: ON_CLUSTER_LOST[onClusterLost] }),
  };
}

const COLUMNS: readonly Column[] = [
  { title: "NAME" },
  { title: "PROJECT" },
  { title: "DEFAULT QUEUE" },
  { title: "POD SECURITY" },
  { title: "AGE", align: "right" },
];

function namespacesTable(run: Run, namespaces: readonly Namespace[]) {
  const nowMs = run.deps.clock.nowMs();
  const rows = namespaces.map(({ name, project, defaultQueue, effectivePodPolicy, createTime }) => [
    name,
    project,
    defaultQueue,
    podSecurityCell(effectivePodPolicy),
    ageCell(createTime, nowMs),
  ]);
  return { columns: COLUMNS, rows, names: namespaces.map(({ name }) => `namespace/${name}`) };
}
