import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError, Option } from "commander";
import { AUDIT_ACTIONS } from "../../core/admin/audit.ts";
import {
  type AuditEntry,
  ListAuditEntriesResponseSchema,
  QueueService,
} from "../../gen/gangway/v1/queue_service_pb.ts";
import { parseDurationMs } from "../../runtime/duration.ts";
import { auditText } from "../output/audit-text.ts";
import { ageCell } from "../output/job-text.ts";
import { printResponse } from "../output/print.ts";
import type { Column } from "../output/table.ts";
import { allPages } from "../rpc/pages.ts";
import { examples, onRun, type Registrar } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";
import { limitOption, type OutputFormat, outputOption } from "../shell/options.ts";

/** `gangway audit`. */
export function registerAudit(registrar: Registrar): void {
  const program = registrar.program
    .command("audit")
    .description("Read the audit log: who changed what, and which calls were refused")
    .addHelpText("after", examples("gangway audit list --since 1d", "gangway audit list --action PermissionDenied"));
  registerAuditList({ ...registrar, program }, "list");
}

type AuditOptions = {
  readonly action?: string;
  readonly actor?: string;
  readonly subject?: string;
  readonly rpc?: string;
  readonly since?: TimeOption;
  readonly until?: TimeOption;
  readonly limit: number;
  readonly output: OutputFormat;
};

/** The listing, which `gangway quota audit` is as well. */
export function registerAuditList(registrar: Registrar, name: "list" | "audit"): void {
  const called = name === "list" ? "gangway audit list" : "gangway quota audit";
  const command = registrar.program
    .command(name)
    .aliases(name === "list" ? ["ls"] : [])
    .description("List changes, refused calls and reads of credentials, newest first")
    .addOption(new Option("--action <action>", "only this action").choices(AUDIT_ACTIONS))
    .option("--actor <name>", "only calls of this caller")
    .option("--subject <name>", "only calls about this object, e.g. a queue, a pool, or a job as NAMESPACE/NAME")
    .option("--rpc <name>", "only calls of this RPC, e.g. gangway.v1.QueueService/DeleteQueue; refused ones too")
    .addOption(timeOption("--since <time>", "only entries of this time or later: a time as in RFC 3339, or an age"))
    .addOption(timeOption("--until <time>", "only entries before this time"))
    .addOption(limitOption())
    .addOption(outputOption())
    .addHelpText("after", examples(`${called} --action ForceRelease --since 7d`, `${called} --subject gpu/h100`));
  onRun<AuditOptions>(registrar, command, async (run, _args, { output, limit, since, until, ...filters }) => {
    const nowMs = run.deps.clock.nowMs();
    const { action = "", actor = "", subject = "", rpc = "" } = filters;
    const filter = { action, actor, subject, rpc, ...timeIn("since", since, nowMs), ...timeIn("until", until, nowMs) };
    const entries = await allPages(run, { limit, plural: "entries" }, async (page) => {
      const response = await run.client.call(QueueService.method.listAuditEntries, { filter, ...page });
      return { items: response.entries, next: response.nextPageToken };
    });
    const message = create(ListAuditEntriesResponseSchema, { entries });
    const table = auditTable(entries, nowMs, output === "wide");
    printResponse(run, output, { ...table, schema: ListAuditEntriesResponseSchema, message, none: "no entries" });
    return EXIT.ok;
  });
}

/** A time, or how long ago it was. */
type TimeOption = { readonly atMs: number } | { readonly agoMs: number };

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

function timeOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser((text): TimeOption => {
    const agoMs = parseDurationMs(text);
    if (agoMs !== null) return { agoMs };
    const atMs = RFC_3339.test(text) ? Date.parse(text) : Number.NaN;
    if (!Number.isNaN(atMs)) return { atMs };
    throw new InvalidArgumentError("It must be a time, e.g. 2026-11-23T08:00:00Z, or an age, e.g. 90s, 10m or 7d.");
  });
}

function timeIn(name: "since" | "until", given: TimeOption | undefined, nowMs: number) {
  if (given === undefined) return {};
  return { [name]: timestampFromMs("atMs" in given ? given.atMs : nowMs - given.agoMs) };
}

const COLUMNS: readonly Column[] = [
  { title: "AGE", align: "right" },
  { title: "ACTOR" },
  { title: "ACTION" },
  { title: "SUBJECT" },
  { title: "REASON" },
  { title: "DETAILS" },
];
const WIDE: readonly Column[] = ["METHOD", "PEER", "RPC", "REQUEST", "OUTCOME"].map((title) => ({ title }));

function auditTable(entries: readonly AuditEntry[], nowMs: number, isWide: boolean) {
  const rows = entries.map((entry) => [
    ageCell(entry.time, nowMs),
    entry.actor,
    entry.action,
    entry.subject,
    entry.reason,
    auditText(entry.details),
    ...(isWide ? [entry.method, entry.peer, entry.rpc, entry.requestId, entry.outcome] : []),
  ]);
  return {
    columns: isWide ? [...COLUMNS, ...WIDE] : COLUMNS,
    rows,
    names: entries.map(({ action, subject }) => `${action}/${subject}`),
  };
}
