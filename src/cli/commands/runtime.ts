/** Serves users of Kubeflow Trainer: lists, shows, applies and deletes training runtimes. */
import { create } from "@bufbuild/protobuf";
import { Option } from "commander";
import { type RuntimeName, runtimeText } from "../../core/kinds/trainjob/training-runtime.ts";
import {
  ListRuntimesResponseSchema,
  type Runtime,
  RuntimeSchema,
  RuntimeService,
} from "../../gen/gangway/v1/runtime_service_pb.ts";
import { ageCell } from "../output/job-text.ts";
import type { Column } from "../output/table.ts";
import { isNotFound } from "../rpc/call-error.ts";
import { allPages } from "../rpc/pages.ts";
import { examples, type Registrar, type Run } from "../run/run-command.ts";
import { usageFailure } from "../shell/exit.ts";
import { registerGetObject, registerListObjects, registerObjectVerb } from "./named-object-commands.ts";
import { registerApplyRuntimes } from "./runtime/apply.ts";

/** More runtimes than a person reads. */
const LIMIT = 10_000;

/** `gangway runtime` and its commands. */
export function registerRuntime(registrar: Registrar): void {
  const program = registrar.program
    .command("runtime")
    .summary("List, apply and delete training runtimes")
    .description(
      "List, apply and delete training runtimes, which are the templates of TrainJobs: a TrainingRuntime belongs to " +
        "a namespace, a ClusterTrainingRuntime to the whole installation.",
    )
    .addHelpText(
      "after",
      examples(
        "gangway runtime list",
        "gangway runtime get torch-distributed -o yaml",
        "gangway runtime apply -f runtime.yaml",
      ),
    );
  const group = { ...registrar, program };
  registerListObjects(group, {
    description: "List the training runtimes of the namespace and of the installation, shipped ones included",
    plural: "runtimes",
    schema: ListRuntimesResponseSchema,
    options: [
      new Option("-A, --all-namespaces", "include runtimes of all namespaces"),
      new Option("--installation", "only runtimes of the whole installation"),
    ],
    list: (run, options) => listRuntimes(run, options),
    table: (run, { runtimes }) => runtimesTable(run, runtimes),
  });
  registerGetObject(group, {
    example: "torch-distributed",
    schema: RuntimeSchema,
    options: [new Option("--installation", "a runtime of the whole installation, also if the namespace has the name")],
    get: (run, name, options) => getRuntime(run, name, options["installation"] === true),
    table: (run, runtime) => runtimesTable(run, [runtime]),
  });
  registerApplyRuntimes(group);
  registerObjectVerb(group, "delete", {
    description: "Delete a training runtime; jobs keep the one that they were created with",
    example: "my-torch",
    done: "deleted",
    options: [new Option("--installation", "a runtime of the whole installation; omitted: one of the namespace")],
    change: (run, name, options) => deleteRuntime(run, namedBy(run, name, options)),
    shown: (run, name, options) => runtimeText(namedBy(run, name, options)),
  });
}

async function listRuntimes(run: Run, options: Readonly<Record<string, unknown>>) {
  const { allNamespaces = false, installation = false } = options;
  const isAll = allNamespaces === true;
  if (isAll && (installation === true || run.isNamespaceGiven)) {
    throw usageFailure("--all-namespaces cannot be combined with --installation or --namespace");
  }
  const namespace = isAll || installation === true ? "" : run.namespace;
  const runtimes = await allPages(run, { limit: LIMIT, plural: "runtimes" }, async (page) => {
    const request = { ...page, namespace, allNamespaces: isAll };
    const response = await run.client.call(RuntimeService.method.listRuntimes, request);
    return { items: response.runtimes, next: response.nextPageToken };
  });
  return create(ListRuntimesResponseSchema, { runtimes });
}

/** The runtime of the namespace, else that of the installation. */
async function getRuntime(run: Run, name: string, isOfInstallation: boolean): Promise<Runtime> {
  const read = async (namespace: string) => {
    const { runtime } = await run.client.call(RuntimeService.method.getRuntime, { namespace, name });
    return runtime ?? create(RuntimeSchema, { namespace, name });
  };
  if (isOfInstallation) return read("");
  try {
    return await read(run.namespace);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    return read("").catch((other: unknown) => Promise.reject(isNotFound(other) ? error : other));
  }
}

function namedBy({ namespace }: Run, name: string, options: Readonly<Record<string, unknown>>): RuntimeName {
  return { namespace: options["installation"] === true ? "" : namespace, name };
}

async function deleteRuntime(run: Run, runtime: RuntimeName): Promise<void> {
  try {
    await run.client.call(RuntimeService.method.deleteRuntime, runtime);
  } catch (error) {
    if (isNotFound(error) && runtime.namespace !== "") {
      error.remedy = ["  A runtime of the whole installation is deleted with --installation."];
    }
    throw error;
  }
}

const COLUMNS: readonly Column[] = [
  { title: "NAMESPACE" },
  { title: "NAME" },
  { title: "FRAMEWORK" },
  { title: "SHIPPED" },
  { title: "AGE", align: "right" },
];

const FRAMEWORK = "trainer.kubeflow.org/framework";

function runtimesTable(run: Run, runtimes: readonly Runtime[]) {
  const nowMs = run.deps.clock.nowMs();
  const rows = runtimes.map(({ namespace, name, labels, shipped, createTime }) => [
    namespace,
    name,
    labels[FRAMEWORK] ?? "",
    shipped ? "yes" : "",
    createTime === undefined ? "" : ageCell(createTime, nowMs),
  ]);
  return { columns: COLUMNS, rows, names: runtimes.map((one) => `runtime/${runtimeText(one)}`) };
}
