import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError, Option } from "commander";
import {
  Durability,
  ListPoolsResponseSchema,
  type Pool,
  PoolSchema,
  type RegisterResourceQuotaRequestSchema,
  ResourceManager,
} from "../../gen/gangway/v1/resource_manager_pb.ts";
import { EXIT } from "../exit.ts";
import { show, showLine } from "../output.ts";
import { allPages, limitOption } from "../pages.ts";
import { leaseCell, limitCell } from "../quota-text.ts";
import {
  durationOption,
  examples,
  type OutputFormat,
  onRun,
  outputOption,
  parseCount,
  type Registrar,
} from "../shell.ts";
import type { Column } from "../table.ts";
import { registerQuotaTokens } from "./quota-tokens.ts";

type Output = { readonly output: OutputFormat };

const DURABILITIES = { ledger: Durability.LEDGER, redis: Durability.REDIS } as const;
const AMOUNT_MAX = 9_007_199_254_740_991n;

/** `gangway quota …`: pools, who holds their tokens, and what admins did. */
export function registerQuota(registrar: Registrar): void {
  const program = registrar.program
    .command("quota")
    .description("pools of tokens: what there is, who holds it, who changed it")
    .addHelpText(
      "after",
      examples(
        "gangway quota register ex:warehouse --quota 20 --project-default 5",
        "gangway quota list",
        "gangway quota allocations --pool ex:warehouse --older-than 1h",
      ),
    );
  const group = { ...registrar, program };
  registerRegister(group);
  registerGet(group);
  registerList(group);
  registerQuotaTokens(group);
}

type Settings = {
  readonly quota: bigint;
  readonly projectDefault?: bigint;
  readonly namespaceDefault?: bigint;
  readonly queue?: string;
  readonly domain?: string;
  readonly defaultLease?: number;
  readonly maxLease?: number;
  readonly durability?: keyof typeof DURABILITIES;
  readonly ifVersion?: bigint;
};

function registerRegister(registrar: Registrar): void {
  const command = registrar.program
    .command("register")
    .description("make a pool, or change one: what is not given stays")
    .argument("<pool>", "the pool, e.g. gpu/h100 or ex:warehouse")
    .requiredOption("--quota <count>", "what may be in use at once; needed for a change, too", parseCount)
    .option("--project-default <count>", "what one project may use of it, or none to lift that", parseLimit)
    .option("--namespace-default <count>", "what one namespace may use of it, or none to lift that", parseLimit)
    .option("--queue <name>", 'charged for requests that name none; "" for no queue')
    .option("--domain <name>", "the quota domain, fixed from now on (default: default)")
    .addOption(
      durationOption("--default-lease <duration>", "of tokens that ask for none, or never to lapse (default: 1h)", {
        never: 0,
      }),
    )
    .addOption(durationOption("--max-lease <duration>", "the longest that may be asked for, or any", { any: 0 }))
    .addOption(
      new Option("--durability <where>", "where grants are kept, fixed from now on (default: ledger)").choices(
        Object.keys(DURABILITIES),
      ),
    )
    .option("--if-version <version>", "only if the pool has this version still", parseCount)
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples(
        "gangway quota register ex:warehouse --quota 20 --project-default 5 --default-lease 10m --max-lease 2h",
        "gangway quota register ex:warehouse --quota 30",
        "gangway quota register ex:warehouse --quota 30 --project-default none",
      ),
    );
  onRun<Settings & Output>(registrar, command, async (run, [name = ""], { output, ...settings }) => {
    const request = toRequest(name, settings);
    const { pool } = await run.client.call(ResourceManager.method.registerResourceQuota, request);
    const message = pool ?? create(PoolSchema, { name });
    const line = `pool/${name} registered, version ${message.version}`;
    showLine(run, output, { line, names: [`pool/${name}`], schema: PoolSchema, message });
    return EXIT.ok;
  });
}

function toRequest(pool: string, settings: Settings): MessageInitShape<typeof RegisterResourceQuotaRequestSchema> {
  const { quota, projectDefault, namespaceDefault, queue, domain = "", defaultLease, maxLease } = settings;
  return {
    resourceNamespace: pool,
    quota,
    ...(projectDefault === undefined ? {} : { projectDefault }),
    ...(namespaceDefault === undefined ? {} : { namespaceDefault }),
    ...(queue === undefined ? {} : { queue }),
    domain,
    ...(defaultLease === undefined ? {} : { defaultLease: durationFromMs(defaultLease) }),
    ...(maxLease === undefined ? {} : { maxLease: durationFromMs(maxLease) }),
    durability: settings.durability === undefined ? Durability.UNSPECIFIED : DURABILITIES[settings.durability],
    version: settings.ifVersion ?? 0n,
  };
}

function registerGet(registrar: Registrar): void {
  const command = registrar.program
    .command("get")
    .description("show a pool and what is used of it")
    .argument("<pool>", "name of the pool")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway quota get ex:warehouse -o yaml"));
  onRun<Output>(registrar, command, async (run, [name = ""], { output }) => {
    const { pool } = await run.client.call(ResourceManager.method.getPool, { name });
    const message = pool ?? create(PoolSchema, { name });
    show(run, output, { ...poolsTable([message]), schema: PoolSchema, message, none: "" });
    return EXIT.ok;
  });
}

function registerList(registrar: Registrar): void {
  const command = registrar.program
    .command("list")
    .description("list pools with what is used of them")
    .argument("[prefix]", "only those whose names begin so")
    .addOption(limitOption())
    .addOption(outputOption())
    .addHelpText("after", examples("gangway quota list", "gangway quota list ex: -o name"));
  onRun<Output & { limit: number }>(registrar, command, async (run, [prefix = ""], { output, limit }) => {
    const pools = await allPages(run, { limit, what: "pools" }, async (page) => {
      const listed = await run.client.call(ResourceManager.method.listPools, { prefix, ...page });
      return { items: listed.pools, next: listed.nextPageToken };
    });
    const message = create(ListPoolsResponseSchema, { pools });
    show(run, output, { ...poolsTable(pools), schema: ListPoolsResponseSchema, message, none: "no pools" });
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
    limitCell(pool.quota),
    String(pool.tokens),
    String(pool.waiters),
    limitCell(pool.projectDefault),
    limitCell(pool.namespaceDefault),
    leaseCell(pool.defaultLease),
    pool.queue,
  ]);
  return { columns: COLUMNS, rows, names: pools.map(({ name }) => `pool/${name}`) };
}

function parseLimit(text: string): bigint {
  if (text === "none") return AMOUNT_MAX;
  if (!/^\d{1,16}$/.test(text)) throw new InvalidArgumentError("It must be a whole number, 0 or more, or none.");
  return BigInt(text);
}
