import { create } from "@bufbuild/protobuf";
import { Option } from "commander";
import {
  type AuditEntry,
  ListAuditEntriesResponseSchema,
  QueueService,
} from "../../../gen/gangway/v1/queue_service_pb.ts";
import { EXIT } from "../../exit.ts";
import { limitOption, type OutputFormat, outputOption } from "../../options.ts";
import { ageCell } from "../../output/job-text.ts";
import { printResponse } from "../../output/print.ts";
import type { Column } from "../../output/table.ts";
import { allPages } from "../../rpc/pages.ts";
import { examples, onRun, type Registrar } from "../../run-command.ts";

const ACTIONS = ["RegisterResourceQuota", "DeletePool", "ForceRelease", "ReconcileQuota"];

export function registerAudit(registrar: Registrar): void {
  const command = registrar.program
    .command("audit")
    .description("List administrators' changes of pools and tokens, newest first")
    .addOption(new Option("--action <action>", "only this action").choices(ACTIONS))
    .option("--actor <name>", "only changes by this caller")
    .option("--subject <name>", "only changes of this object, e.g. a pool")
    .addOption(limitOption())
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples("gangway quota audit --action ForceRelease", "gangway quota audit --subject gpu/h100"),
    );
  type AuditOptions = { action?: string; actor?: string; subject?: string; limit: number; output: OutputFormat };
  onRun<AuditOptions>(registrar, command, async (run, _args, { output, limit, ...filters }) => {
    const { action = "", actor = "", subject = "" } = filters;
    const filter = { action, actor, subject };
    const entries = await allPages(run, { limit, plural: "entries" }, async (page) => {
      const response = await run.client.call(QueueService.method.listAuditEntries, { filter, ...page });
      return { items: response.entries, next: response.nextPageToken };
    });
    const message = create(ListAuditEntriesResponseSchema, { entries });
    const table = auditTable(entries, run.deps.clock.nowMs());
    printResponse(run, output, { ...table, schema: ListAuditEntriesResponseSchema, message, none: "no entries" });
    return EXIT.ok;
  });
}

const COLUMNS: readonly Column[] = [
  { title: "AGE", align: "right" },
  { title: "ACTOR" },
  { title: "ACTION" },
  { title: "SUBJECT" },
  { title: "REASON" },
  { title: "DETAILS" },
];

function auditTable(entries: readonly AuditEntry[], nowMs: number) {
  const rows = entries.map((entry) => [
    ageCell(entry.time, nowMs),
    entry.actor,
    entry.action,
    entry.subject,
    entry.reason,
    entry.details === undefined ? "" : JSON.stringify(entry.details),
  ]);
  return { columns: COLUMNS, rows, names: entries.map(({ action, subject }) => `${action}/${subject}`) };
}
