import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { Option } from "commander";
import {
  type AuditEntry,
  ListAuditEntriesResponseSchema,
  QueueService,
} from "../../gen/gangway/v1/queue_service_pb.ts";
import {
  type Allocation,
  QuotaDifference_Kind as DifferenceKind,
  ForceReleaseResponseSchema,
  ListAllocationsResponseSchema,
  type QuotaDifference,
  ReconcileQuotaResponseSchema,
  ResourceManager,
} from "../../gen/gangway/v1/resource_manager_pb.ts";
import { formatSpan } from "../duration.ts";
import { EXIT, usageFailure } from "../exit.ts";
import { ageCell } from "../job-text.ts";
import { show, showLine } from "../output.ts";
import { allPages, limitOption } from "../pages.ts";
import { releaseWord } from "../quota-text.ts";
import { durationOption, examples, type OutputFormat, onRun, outputOption, type Registrar } from "../shell.ts";
import type { Column } from "../table.ts";

type Output = { readonly output: OutputFormat };
type Listed = Output & { readonly limit: number };

/** `gangway quota allocations|release|reconcile|audit`. */
export function registerQuotaTokens(registrar: Registrar): void {
  registerAllocations(registrar);
  registerForceRelease(registrar);
  registerReconcile(registrar);
  registerAudit(registrar);
}

type Filter = {
  readonly pool?: string;
  readonly project?: string;
  readonly namespace?: string;
  readonly holder?: string;
  readonly olderThan?: number;
};

function registerAllocations(registrar: Registrar): void {
  const command = registrar.program
    .command("allocations")
    .description("list tokens that are held, and by whom")
    .option("--pool <pool>", "of this pool")
    .option("--project <name>", "of this project")
    .option("--namespace <name>", "of this namespace")
    .option("--holder <name>", "of this holder: a caller's, or job/NAMESPACE/NAME/ADMISSION")
    .addOption(durationOption("--older-than <duration>", "granted at least so long ago"))
    .addOption(limitOption())
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples("gangway quota allocations --pool gpu/h100", "gangway quota allocations --project nlp --older-than 1d"),
    );
  onRun<Listed & Filter>(registrar, command, async (run, _args, { output, limit, olderThan, ...rest }) => {
    const { pool = "", project = "", namespace = "", holder = "" } = rest;
    const older = olderThan === undefined ? {} : { olderThan: durationFromMs(olderThan) };
    const filter = { pool, project, namespace, holder, ...older };
    const allocations = await allPages(run, { limit, what: "allocations" }, async (page) => {
      const listed = await run.client.call(ResourceManager.method.listAllocations, { filter, ...page });
      return { items: listed.allocations, next: listed.nextPageToken };
    });
    const message = create(ListAllocationsResponseSchema, { allocations });
    const table = allocationsTable(allocations, run.deps.clock.nowMs());
    show(run, output, { ...table, schema: ListAllocationsResponseSchema, message, none: "no allocations" });
    return EXIT.ok;
  });
}

const ALLOCATION_COLUMNS: readonly Column[] = [
  { title: "POOL" },
  { title: "TOKEN" },
  { title: "AMOUNT", align: "right" },
  { title: "PROJECT" },
  { title: "NAMESPACE" },
  { title: "QUEUE" },
  { title: "AGE", align: "right" },
  { title: "LAPSES IN", align: "right" },
  { title: "HOLDER" },
];

function allocationsTable(allocations: readonly Allocation[], nowMs: number) {
  const rows = allocations.map((one) => [
    one.resourceNamespace,
    one.allocationToken,
    String(one.amount),
    one.project,
    one.namespace,
    one.queue,
    ageCell(one.grantTime, nowMs),
    one.expireTime === undefined ? "" : formatSpan(timestampMs(one.expireTime) - nowMs),
    one.holder,
  ]);
  return { columns: ALLOCATION_COLUMNS, rows, names: allocations.map((one) => `allocation/${one.allocationToken}`) };
}

function registerForceRelease(registrar: Registrar): void {
  const command = registrar.program
    .command("release")
    .description("take a token from whoever holds it; the admission of a running job keeps its tokens")
    .argument("<pool>", "the pool")
    .argument("<token>", "what names the grant")
    .option("--force", "yes, although its holder may go on working")
    .option("--reason <text>", "why, for those who ask later")
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples('gangway quota release ex:warehouse query-17 --force --reason "its host is gone, see INC-4711"'),
    );
  type Options = Output & { force?: boolean; reason?: string };
  onRun<Options>(registrar, command, async (run, [pool = "", token = ""], { force, reason, output }) => {
    if (force !== true || reason === undefined) {
      throw usageFailure('give --force and a --reason; holders themselves use "gangway release"');
    }
    const request = { resourceNamespace: pool, allocationToken: token, reason };
    const message = await run.client.call(ResourceManager.method.forceRelease, request);
    const line = `${pool} ${token} ${releaseWord(message.outcome)}`;
    showLine(run, output, { line, names: [`allocation/${token}`], schema: ForceReleaseResponseSchema, message });
    return EXIT.ok;
  });
}

function registerReconcile(registrar: Registrar): void {
  const command = registrar.program
    .command("reconcile")
    .description("compare counters, ledger and live holders, and repair what differs")
    .argument("[pool]", "only this pool (default: all)")
    .option("--dry-run", "only compare")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway quota reconcile --dry-run", "gangway quota reconcile gpu/h100"));
  onRun<Output & { dryRun?: boolean }>(registrar, command, async (run, [pool = ""], { output, dryRun = false }) => {
    const message = await run.client.call(ResourceManager.method.reconcileQuota, { pool, dryRun });
    const { differences } = message;
    const names = differences.map(({ subject }) => subject);
    const rows = differences.map(differenceRow);
    const none = "counters, ledger and holders agree";
    show(run, output, { columns: COLUMNS, rows, names, schema: ReconcileQuotaResponseSchema, message, none });
    return EXIT.ok;
  });
}

const COLUMNS: readonly Column[] = [
  { title: "POOL" },
  { title: "DIFFERENCE" },
  { title: "COUNTERS", align: "right" },
  { title: "LEDGER", align: "right" },
  { title: "REPAIRED" },
  { title: "SUBJECT" },
];

const DIFFERENCES: Readonly<Record<number, string>> = {
  [DifferenceKind.COUNTER_ONLY]: "not in the ledger",
  [DifferenceKind.LEDGER_ONLY]: "not in the counters",
  [DifferenceKind.SUM_DIFFERS]: "sum differs",
  [DifferenceKind.LEDGER_SUM_DIFFERS]: "ledger's sum differs",
  [DifferenceKind.HOLDER_GONE]: "holder is gone",
};

function differenceRow({ kind, pool, subject, counters, ledger, repaired }: QuotaDifference): readonly string[] {
  const what = DIFFERENCES[kind] ?? "differs";
  return [pool, what, String(counters ?? ""), String(ledger ?? ""), repaired ? "yes" : "no", subject];
}

const ACTIONS = ["RegisterResourceQuota", "ForceRelease", "ReconcileQuota"];

function registerAudit(registrar: Registrar): void {
  const command = registrar.program
    .command("audit")
    .description("list what admins did to pools and tokens, newest first")
    .addOption(new Option("--action <action>", "only this").choices(ACTIONS))
    .option("--actor <name>", "by this caller")
    .option("--subject <name>", "to this, e.g. a pool")
    .addOption(limitOption())
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples("gangway quota audit --action ForceRelease", "gangway quota audit --subject gpu/h100"),
    );
  type Options = Listed & { action?: string; actor?: string; subject?: string };
  onRun<Options>(registrar, command, async (run, _args, { output, limit, ...rest }) => {
    const { action = "", actor = "", subject = "" } = rest;
    const filter = { action, actor, subject };
    const entries = await allPages(run, { limit, what: "entries" }, async (page) => {
      const listed = await run.client.call(QueueService.method.listAuditEntries, { filter, ...page });
      return { items: listed.entries, next: listed.nextPageToken };
    });
    const message = create(ListAuditEntriesResponseSchema, { entries });
    const table = auditTable(entries, run.deps.clock.nowMs());
    show(run, output, { ...table, schema: ListAuditEntriesResponseSchema, message, none: "no entries" });
    return EXIT.ok;
  });
}

const AUDIT_COLUMNS: readonly Column[] = [
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
  return { columns: AUDIT_COLUMNS, rows, names: entries.map(({ action, subject }) => `${action}/${subject}`) };
}
