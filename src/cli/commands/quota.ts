import { create } from "@bufbuild/protobuf";
import {
  ListPoolsResponseSchema,
  type Pool,
  PoolSchema,
  ResourceManager,
} from "../../gen/gangway/v1/resource_manager_pb.ts";
import { printResponse } from "../output/print.ts";
import { leaseCell, limitCell } from "../output/quota-text.ts";
import type { Column } from "../output/table.ts";
import { allPages } from "../rpc/pages.ts";
import { examples, onRun, type Registrar } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";
import { limitOption, type OutputFormat, outputOption } from "../shell/options.ts";
import { registerAuditList } from "./audit.ts";
import { registerFreeze } from "./freeze.ts";
import { registerAllocations } from "./quota/allocations.ts";
import { registerDeletePool } from "./quota/delete.ts";
import { registerGrants } from "./quota/grants.ts";
import { registerReconcileQuota } from "./quota/reconcile.ts";
import { registerRegisterPool } from "./quota/register.ts";
import { registerForceRelease } from "./quota/release.ts";

/** `gangway quota`: its commands are here and in the folder `quota`. */
export function registerQuota(registrar: Registrar): void {
  const program = registrar.program
    .command("quota")
    .description("Manage pools of tokens: their quotas, their holders, and the audit log")
    .addHelpText(
      "after",
      examples(
        "gangway quota register ex:warehouse --quota 20 --project-default 5",
        "gangway quota list",
        "gangway quota allocations --pool ex:warehouse --older-than 1h",
      ),
    );
  const group = { ...registrar, program };
  registerRegisterPool(group);
  registerGetPool(group);
  registerListPools(group);
  registerGrants(group);
  registerFreezePool(group);
  registerDeletePool(group);
  registerAllocations(group);
  registerForceRelease(group);
  registerReconcileQuota(group);
  registerAuditList(group, "audit");
}

function registerFreezePool(registrar: Registrar): void {
  const { freezePool, unfreezePool } = ResourceManager.method;
  registerFreeze(registrar, {
    noun: "pool",
    example: "ex:warehouse",
    what: "a pool",
    freeze: (run, name, reason) => run.client.call(freezePool, { name, reason }),
    unfreeze: async (run, name) => {
      await run.client.call(unfreezePool, { name });
      return "";
    },
  });
}

function registerGetPool(registrar: Registrar): void {
  const command = registrar.program
    .command("get")
    .alias("describe")
    .description("Show a pool and its use")
    .argument("<pool>", "name of the pool")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway quota get ex:warehouse -o yaml"));
  onRun<{ output: OutputFormat }>(registrar, command, async (run, [name = ""], { output }) => {
    const { pool } = await run.client.call(ResourceManager.method.getPool, { name });
    const message = pool ?? create(PoolSchema, { name });
    printResponse(run, output, { ...poolsTable([message]), schema: PoolSchema, message, none: "" });
    return EXIT.ok;
  });
}

function registerListPools(registrar: Registrar): void {
  const command = registrar.program
    .command("list")
    .alias("ls")
    .description("List pools and their use")
    .argument("[prefix]", "only pools whose names begin with this")
    .addOption(limitOption())
    .addOption(outputOption())
    .addHelpText("after", examples("gangway quota list", "gangway quota list ex: -o name"));
  type ListPoolsOptions = { limit: number; output: OutputFormat };
  onRun<ListPoolsOptions>(registrar, command, async (run, [prefix = ""], { output, limit }) => {
    const pools = await allPages(run, { limit, plural: "pools" }, async (page) => {
      const response = await run.client.call(ResourceManager.method.listPools, { prefix, ...page });
      return { items: response.pools, next: response.nextPageToken };
    });
    const message = create(ListPoolsResponseSchema, { pools });
    printResponse(run, output, { ...poolsTable(pools), schema: ListPoolsResponseSchema, message, none: "no pools" });
    return EXIT.ok;
  });
}

const COLUMNS: readonly Column[] = [
  { title: "POOL" },
  { title: "USED", align: "right" },
  { title: "QUOTA", align: "right" },
  { title: "TOKENS", align: "right" },
  { title: "WAITING", align: "right" },
  { title: "PER PROJECT", align: "right" },
  { title: "PER NAMESPACE", align: "right" },
  { title: "LEASE" },
  { title: "QUEUE" },
];

function poolsTable(pools: readonly Pool[]) {
  const rows = pools.map((pool) => [
    pool.name,
    String(pool.used),
    pool.freeze === undefined ? limitCell(pool.quota) : "frozen",
    String(pool.tokens),
    String(pool.waiters),
    limitCell(pool.projectDefault),
    limitCell(pool.namespaceDefault),
    leaseCell(pool.defaultLease),
    pool.queue,
  ]);
  return { columns: COLUMNS, rows, names: pools.map(({ name }) => `pool/${name}`) };
}
