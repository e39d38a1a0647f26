import { durationFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  AccessService,
  ListRobotTokensResponseSchema,
  type RobotToken as Robot,
} from "../../gen/gangway/v1/access_service_pb.ts";
import { ageCell } from "../output/job-text.ts";
import { printLines, printResponse } from "../output/print.ts";
import { allPages } from "../rpc/pages.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT, usageFailure } from "../shell/exit.ts";
import { durationOption, type OutputFormat, outputOption } from "../shell/options.ts";
import { registerObjectVerb } from "./named-object-commands.ts";
import {
  installationOption,
  noteContextScope,
  ROBOT_KINDS,
  type ScopeOptions,
  scopeOf,
  scopeText,
} from "./scope-options.ts";

/** More robots than a person reads. */
const LIMIT = 10_000;

/** `gangway robot` and its commands. */
export function registerRobot(registrar: Registrar): void {
  const program = registrar.program
    .command("robot")
    .description("Make, list and revoke the tokens of robots: callers that are programs")
    .addHelpText("after", examples("gangway robot create ci --to ci.token", "gangway robot list"));
  const group = { ...registrar, program };
  registerCreate(group);
  registerList(group);
  registerObjectVerb(group, "revoke", {
    description: "Revoke the token of a robot for ever; its name cannot be used again",
    example: "ci",
    done: "revoked",
    change: (run, name) => run.client.call(AccessService.method.revokeRobotToken, { name }),
  });
}

type CreateOptions = Pick<ScopeOptions, "project" | "installation"> & { readonly to: string; readonly ttl?: number };

function registerCreate(registrar: Registrar): void {
  const command = registrar.program
    .command("create")
    .summary("Make a robot with a token")
    .description(
      "Make a robot, and write its token to a new file that only you can read. It is not shown again. --namespace or " +
        "--project says where the robot belongs: who may see and revoke it, and which limits count it. Without them, " +
        "it belongs to the namespace of the context; if it has none, to the installation.",
    )
    .argument("<name>", "name of the robot")
    .requiredOption("--to <file>", "the file of the token, which must not exist yet")
    .addOption(durationOption("--ttl <duration>", "how long the token counts (default: 2160h, which is 90 days)"))
    .option("--project <name>", "the project that the robot belongs to")
    .addOption(installationOption())
    .addHelpText(
      "after",
      examples(
        "gangway robot create ci --to ci.token --ttl 720h",
        "gangway robot create nlp-ci --to ci.token --namespace nlp",
      ),
    );
  onRun<CreateOptions>(registrar, command, async (run, [name = ""], { to, ttl, ...flags }) => {
    const scope = scopeOf(run, flags, ROBOT_KINDS);
    noteContextScope(run, scope);
    // The secret is lost if it cannot be written: look first.
    if ((await run.deps.lookUp(to)) !== null) throw usageFailure(`${to} exists; give the name of a new file`);
    const lives = ttl === undefined ? {} : { ttl: durationFromMs(ttl) };
    const { secret } = await run.client.call(AccessService.method.createRobotToken, { name, scope, ...lives });
    await run.deps.writePrivateFile(to, `${secret}\n`).catch(async (error: unknown) => {
      await run.client.call(AccessService.method.revokeRobotToken, { name });
      throw error;
    });
    printLines(run, [`robot/${name} created; its token is in ${to}`]);
    return EXIT.ok;
  });
}

function registerList(registrar: Registrar): void {
  const command = registrar.program
    .command("list")
    .alias("ls")
    .description("List the robots that you may see, revoked ones included")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway robot list"));
  onRun<{ output: OutputFormat }>(registrar, command, async (run, _args, { output }) => {
    const robots = await allPages(run, { limit: LIMIT, plural: "robots" }, async (page) => {
      const answer = await run.client.call(AccessService.method.listRobotTokens, page);
      return { items: answer.robots, next: answer.nextPageToken };
    });
    const message = { $typeName: ListRobotTokensResponseSchema.typeName, robots, nextPageToken: "" };
    printResponse(run, output, {
      schema: ListRobotTokensResponseSchema,
      message,
      names: robots.map(({ name }) => `robot/${name}`),
      columns: ["NAME", "STATE", "SCOPE", "OWNER", "EXPIRES", "LAST USED"].map((title) => ({ title })),
      rows: robots.map((robot) => rowOf(run, robot)),
      none: "no robots",
    });
    return EXIT.ok;
  });
}

function rowOf({ deps }: Run, { name, scope, owner, expireTime, lastUseTime, revokeTime }: Robot): readonly string[] {
  const nowMs = deps.clock.nowMs();
  const expiresMs = expireTime === undefined ? Number.POSITIVE_INFINITY : timestampMs(expireTime);
  const state = revokeTime !== undefined ? "revoked" : expiresMs <= nowMs ? "expired" : "active";
  const expires = expireTime === undefined ? "" : new Date(expiresMs).toISOString();
  return [name, state, scopeText(scope), owner, expires, lastUseTime === undefined ? "" : ageCell(lastUseTime, nowMs)];
}
