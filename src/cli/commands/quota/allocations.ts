import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type Allocation,
  ListAllocationsResponseSchema,
  ResourceManager,
} from "../../../gen/gangway/v1/resource_manager_pb.ts";
import { formatSpan } from "../../output/duration.ts";
import { ageCell } from "../../output/job-text.ts";
import { printResponse } from "../../output/print.ts";
import type { Column } from "../../output/table.ts";
import { allPages } from "../../rpc/pages.ts";
import { examples, onRun, type Registrar } from "../../run/run-command.ts";
import { EXIT } from "../../shell/exit.ts";
import { durationOption, limitOption, type OutputFormat, outputOption } from "../../shell/options.ts";

type ListAllocationsOptions = {
  readonly pool?: string;
  readonly project?: string;
  readonly allNamespaces?: boolean;
  readonly holder?: string;
  readonly olderThan?: number;
  readonly neverLapses?: boolean;
  readonly limit: number;
  readonly output: OutputFormat;
};

export function registerAllocations(registrar: Registrar): void {
  const command = registrar.program
    .command("allocations")
    .summary("List held tokens and their holders")
    .description(
      "List held tokens and their holders, the oldest grants first: those of the namespace of --namespace or of the " +
        "context, or else all.",
    )
    .option("-A, --all-namespaces", "tokens of all namespaces, also if the context has one")
    .option("--pool <pool>", "only tokens of this pool")
    .option("--project <name>", "only tokens of this project")
    .option("--holder <name>", "only tokens of this holder: a caller, or job/NAMESPACE/NAME/ADMISSION")
    .addOption(durationOption("--older-than <duration>", "only tokens that were granted at least this long ago"))
    .option("--never-lapses", "only tokens of callers that do not lapse: somebody must release each of them")
    .addOption(limitOption())
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples(
        "gangway quota allocations --pool gpu/h100",
        "gangway quota allocations --project nlp --older-than 1d",
        "gangway quota allocations --never-lapses --older-than 7d",
      ),
    );
  onRun<ListAllocationsOptions>(registrar, command, async (run, _args, { output, limit, olderThan, ...rest }) => {
    const { pool = "", project = "", holder = "", allNamespaces = false, neverLapses = false } = rest;
    const namespace = allNamespaces ? "" : (run.chosenNamespace ?? "");
    const age = olderThan === undefined ? {} : { olderThan: durationFromMs(olderThan) };
    const filter = { pool, project, namespace, holder, neverLapses, ...age };
    const allocations = await allPages(run, { limit, plural: "allocations" }, async (page) => {
      const response = await run.client.call(ResourceManager.method.listAllocations, { filter, ...page });
      return { items: response.allocations, next: response.nextPageToken };
    });
    const message = create(ListAllocationsResponseSchema, { allocations });
    const table = allocationsTable(allocations, run.deps.clock.nowMs());
    printResponse(run, output, { ...table, schema: ListAllocationsResponseSchema, message, none: "no allocations" });
    return EXIT.ok;
  });
}

const COLUMNS: readonly Column[] = [
  { title: "POOL" },
  { title: "TOKEN" },
  { title: "AMOUNT", align: "right" },
  { title: "PROJECT" },
  { title: "NAMESPACE" },
  { title: "QUEUE" },
  { title: "AGE", align: "right" },
  { title: "EXPIRES IN", align: "right" },
  { title: "HOLDER" },
];

function allocationsTable(allocations: readonly Allocation[], nowMs: number) {
  const rows = allocations.map((allocation) => [
    allocation.resourceNamespace,
    allocation.allocationToken,
    String(allocation.amount),
    allocation.project,
    allocation.namespace,
    allocation.queue,
    ageCell(allocation.grantTime, nowMs),
    allocation.expireTime === undefined ? "" : formatSpan(timestampMs(allocation.expireTime) - nowMs),
    allocation.holder,
  ]);
  return { columns: COLUMNS, rows, names: allocations.map(({ allocationToken }) => `allocation/${allocationToken}`) };
}
