import { timestampMs } from "@bufbuild/protobuf/wkt";
import { AccessService, type Identity, IdentitySchema } from "../../gen/gangway/v1/access_service_pb.ts";
import { printLines, printResponse } from "../output/print.ts";
import { examples, onRun, type Registrar } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";
import { isTable, type OutputFormat, outputOption } from "../shell/options.ts";

/** `gangway whoami`: the caller as the service sees it. */
export function registerWhoAmI(registrar: Registrar): void {
  const command = registrar.program
    .command("whoami")
    .description("Print who you are for the service: your subject and groups, and until when")
    .addOption(outputOption())
    .addHelpText("after", examples("gangway whoami", "gangway whoami --token-file robot.token -o json"));
  onRun<{ output: OutputFormat }>(registrar, command, async (run, _args, { output }) => {
    const { identity } = await run.client.call(AccessService.method.whoAmI, {});
    if (identity === undefined) throw new Error("the service told no identity");
    const printed = { schema: IdentitySchema, message: identity, names: [identity.subject] };
    if (isTable(output)) printLines(run, linesOf(identity));
    else printResponse(run, output, { ...printed, columns: [], rows: [], none: "" });
    return EXIT.ok;
  });
}

function linesOf({ subject, groups, method, issuer, expireTime }: Identity): readonly string[] {
  return [
    subject,
    ...(groups.length === 0 ? [] : [`groups: ${groups.join(", ")}`]),
    `authenticated by: ${method}${issuer === "" ? "" : ` of ${issuer}`}`,
    ...(expireTime === undefined ? [] : [`until: ${new Date(timestampMs(expireTime)).toISOString()}`]),
  ];
}
