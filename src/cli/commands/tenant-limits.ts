import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  ListTenantLimitsResponseSchema,
  NamespaceService,
  type TenantLimits,
  TenantLimitsSchema,
} from "../../gen/gangway/v1/namespace_service_pb.ts";
import { printLines } from "../output/print.ts";
import type { Column } from "../output/table.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT, usageFailure } from "../shell/exit.ts";
import { registerListObjects } from "./named-object-commands.ts";

/** `gangway limits` and its commands. */
export function registerTenantLimits(registrar: Registrar): void {
  const program = registrar.program
    .command("limits")
    .description("List and set how much the jobs of a namespace or a project may take together, and how many robots")
    .addHelpText("after", examples("gangway limits list", "gangway limits set namespace/nlp --max-waiting-jobs 500"));
  const group = { ...registrar, program };
  registerListObjects(group, {
    description: "List the limits of namespaces and projects, and what is used of them",
    plural: "limits",
    schema: ListTenantLimitsResponseSchema,
    list: (run) => run.client.call(NamespaceService.method.listTenantLimits, {}),
    table: (_run, { limits }) => limitsTable(limits),
  });
  registerSet(group);
}

const FLAGS = {
  maxWaitingJobs: { flag: "--max-waiting-jobs", help: "the most jobs that wait or are suspended" },
  maxRunningJobs: { flag: "--max-running-jobs", help: "the most jobs that are admitted at the same time" },
  maxPods: { flag: "--max-pods", help: "the most pods that jobs ask for, those that wait included" },
  maxTemplateBytes: { flag: "--max-template-bytes", help: "the most bytes of the jobs' specs with their templates" },
  maxRobotTokens: { flag: "--max-robot-tokens", help: "the most robots whose tokens count" },
} as const;

type LimitName = keyof typeof FLAGS;
type LimitOptions = { readonly [Name in LimitName]?: string };
const NAMES = Object.keys(FLAGS) as readonly LimitName[];

function registerSet(registrar: Registrar): void {
  const command = registrar.program
    .command("set")
    .summary("Set limits of a namespace or a project")
    .description("Set limits of a namespace or a project. Omitted options change nothing; 0 takes a limit away.")
    .argument("<tenant>", "namespace/NAME or project/NAME");
  for (const name of NAMES) command.option(`${FLAGS[name].flag} <count>`, FLAGS[name].help);
  command.addHelpText(
    "after",
    examples(
      "gangway limits set namespace/nlp --max-waiting-jobs 500 --max-running-jobs 20",
      "gangway limits set project/ml --max-pods 10000 --max-template-bytes 0",
    ),
  );
  onRun<LimitOptions>(registrar, command, async (run, [text = ""], options) => {
    const tenant = tenantOf(text);
    const sent = NAMES.flatMap((name) =>
      options[name] === undefined ? [] : [[name, countOf(name, options)] as const],
    );
    if (sent.length === 0) {
      throw usageFailure(`there is nothing to set; give ${NAMES.map((name) => FLAGS[name].flag).join(", ")}`);
    }
    const limits = await limitsNow(run, tenant);
    for (const [name, count] of sent) {
      if (name === "maxTemplateBytes") limits.maxTemplateBytes = BigInt(count);
      else limits[name] = count;
    }
    await run.client.call(NamespaceService.method.setTenantLimits, { limits });
    printLines(run, [`limits of ${text} set`]);
    return EXIT.ok;
  });
}

type Tenant = NonNullable<MessageInitShape<typeof TenantLimitsSchema>["tenant"]> & { readonly value: string };

function tenantOf(text: string): Tenant {
  const [, kind, value = ""] = /^(namespace|project)\/(.+)$/.exec(text) ?? [];
  if (kind === "namespace" || kind === "project") return { case: kind, value };
  throw usageFailure(`the tenant must be namespace/NAME or project/NAME, not ${text}`);
}

function countOf(name: LimitName, options: LimitOptions): number {
  const text = options[name] ?? "";
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw usageFailure(`${FLAGS[name].flag} must be a number from 0 up to 999999999, not ${text}`);
}

/** The limits that a tenant has now, or none. */
async function limitsNow(run: Run, tenant: Tenant): Promise<TenantLimits> {
  const { limits } = await run.client.call(NamespaceService.method.listTenantLimits, {});
  const found = limits.find(({ tenant: of }) => of.case === tenant.case && of.value === tenant.value);
  return found ?? create(TenantLimitsSchema, { tenant });
}

const COLUMNS: readonly Column[] = [
  { title: "TENANT" },
  { title: "WAITING", align: "right" },
  { title: "RUNNING", align: "right" },
  { title: "PODS", align: "right" },
  { title: "TEMPLATE BYTES", align: "right" },
  { title: "ROBOTS", align: "right" },
];

function limitsTable(limits: readonly TenantLimits[]) {
  const rows = limits.map(({ tenant, use, ...of }) => [
    `${tenant.case}/${tenant.value}`,
    cell(use?.waitingJobs, of.maxWaitingJobs),
    cell(use?.runningJobs, of.maxRunningJobs),
    cell(use?.pods, of.maxPods),
    cell(use?.templateBytes, of.maxTemplateBytes),
    cell(use?.robotTokens, of.maxRobotTokens),
  ]);
  return { columns: COLUMNS, rows, names: rows.map(([name = ""]) => name) };
}

/** `2/10`: two of ten. `2`: two, without a limit. */
function cell(use: number | bigint = 0, max: number | bigint): string {
  return Number(max) === 0 ? String(use) : `${use}/${max}`;
}
