import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError, Option } from "commander";
import {
  Durability,
  PoolSchema,
  type RegisterResourceQuotaRequestSchema,
  ResourceManager,
} from "../../../gen/gangway/v1/resource_manager_pb.ts";
import { printChange } from "../../output/print.ts";
import { NO_LIMIT } from "../../output/quota-text.ts";
import { examples, onRun, type Registrar } from "../../run/run-command.ts";
import { EXIT } from "../../shell/exit.ts";
import { durationOption, type OutputFormat, outputOption, parseCount } from "../../shell/options.ts";

const DURABILITIES = { ledger: Durability.LEDGER, redis: Durability.REDIS } as const;

type RegisterPoolOptions = {
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

export function registerRegisterPool(registrar: Registrar): void {
  const command = registrar.program
    .command("register")
    .summary("Create or change a pool")
    .description("Create a pool, or change one. Omitted options change nothing.")
    .argument("<pool>", "name of the pool, e.g. gpu/h100 or ex:warehouse")
    .requiredOption(
      "--quota <count>",
      "amount that may be in use at once, or none to lift the limit; required for a change too",
      parseLimit,
    )
    .option("--project-default <count>", "limit for each project, or none", parseLimit)
    .option("--namespace-default <count>", "limit for each namespace, or none", parseLimit)
    .option("--queue <name>", 'queue to charge for requests that name no queue; "" for none')
    .option("--domain <name>", "quota domain of the pool; cannot change later (default: default)")
    .addOption(
      durationOption(
        "--default-lease <duration>",
        "lease of tokens whose request sets none, or never (default: 1h; never in a pool of which only --quota is set)",
        {
          never: 0,
        },
      ),
    )
    .addOption(
      durationOption("--max-lease <duration>", "longest lease that a request may set, or any (default: any)", {
        any: 0,
      }),
    )
    .addOption(
      new Option("--durability <where>", "where grants are kept; cannot change later (default: ledger)").choices(
        Object.keys(DURABILITIES),
      ),
    )
    .option("--if-version <version>", "change the pool only if it still has this version", parseCount)
    .addOption(outputOption())
    .addHelpText(
      "after",
      examples(
        "gangway quota register ex:warehouse --quota 20 --project-default 5 --default-lease 10m --max-lease 2h",
        "gangway quota register ex:warehouse --quota 30",
        "gangway quota register ex:warehouse --quota 30 --project-default none",
        "gangway quota register gpu/h100 --quota none",
      ),
    );
  type AllOptions = RegisterPoolOptions & { readonly output: OutputFormat };
  onRun<AllOptions>(registrar, command, async (run, [name = ""], { output, ...options }) => {
    const { pool } = await run.client.call(ResourceManager.method.registerResourceQuota, requestOf(name, options));
    const message = pool ?? create(PoolSchema, { name });
    const line = `pool/${name} registered, version ${message.version}`;
    printChange(run, output, { line, names: [`pool/${name}`], schema: PoolSchema, message });
    return EXIT.ok;
  });
}

function requestOf(
  pool: string,
  options: RegisterPoolOptions,
): MessageInitShape<typeof RegisterResourceQuotaRequestSchema> {
  const { quota, projectDefault, namespaceDefault, queue, domain = "", defaultLease, maxLease } = options;
  return {
    resourceNamespace: pool,
    quota,
    ...(projectDefault === undefined ? {} : { projectDefault }),
    ...(namespaceDefault === undefined ? {} : { namespaceDefault }),
    ...(queue === undefined ? {} : { queue }),
    domain,
    ...(defaultLease === undefined ? {} : { defaultLease: durationFromMs(defaultLease) }),
    ...(maxLease === undefined ? {} : { maxLease: durationFromMs(maxLease) }),
    durability: options.durability === undefined ? Durability.UNSPECIFIED : DURABILITIES[options.durability],
    version: options.ifVersion ?? 0n,
  };
}

function parseLimit(text: string): bigint {
  if (text === "none") return NO_LIMIT;
  if (!/^\d{1,16}$/.test(text)) throw new InvalidArgumentError('It must be a whole number, 0 or more, or "none".');
  return BigInt(text);
}
