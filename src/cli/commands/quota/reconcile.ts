import {
  type QuotaDifference,
  QuotaDifference_Kind,
  ReconcileQuotaResponseSchema,
  ResourceManager,
} from "../../../gen/gangway/v1/resource_manager_pb.ts";
import { printResponse } from "../../output/print.ts";
import type { Column } from "../../output/table.ts";
import { examples, onRun, type Registrar } from "../../run/run-command.ts";
import { EXIT } from "../../shell/exit.ts";
import { type OutputFormat, outputOption } from "../../shell/options.ts";

export function registerReconcileQuota(registrar: Registrar): void {
  const command = registrar.program
    .command("reconcile")
    .summary("Compare and repair counters, ledger and holders")
    .description("Compare the counters, the ledger and the live holders of tokens, and repair the differences.")
    .argument("[pool]", "name of the pool (default: all pools)")
    .option("--dry-run", "only compare, repair nothing")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway quota reconcile --dry-run", "gangway quota reconcile gpu/h100"));
  type ReconcileOptions = { dryRun?: boolean; output: OutputFormat };
  onRun<ReconcileOptions>(registrar, command, async (run, [pool = ""], { output, dryRun = false }) => {
    const message = await run.client.call(ResourceManager.method.reconcileQuota, { pool, dryRun });
    const { differences } = message;
    printResponse(run, output, {
      schema: ReconcileQuotaResponseSchema,
      message,
      names: differences.map(({ subject }) => subject),
      columns: COLUMNS,
      rows: differences.map(differenceRow),
      none: "counters, ledger and holders agree",
    });
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
  [QuotaDifference_Kind.COUNTER_ONLY]: "not in the ledger",
  [QuotaDifference_Kind.LEDGER_ONLY]: "not in the counters",
  [QuotaDifference_Kind.SUM_DIFFERS]: "sum differs from the ledger",
  [QuotaDifference_Kind.LEDGER_SUM_DIFFERS]: "ledger's sum differs from its tokens",
  [QuotaDifference_Kind.HOLDER_GONE]: "holder is gone",
};

function differenceRow({ kind, pool, subject, counters, ledger, repaired }: QuotaDifference): readonly string[] {
  const text = DIFFERENCES[kind] ?? "differs";
  return [pool, text, String(counters ?? ""), String(ledger ?? ""), repaired ? "yes" : "no", subject];
}
