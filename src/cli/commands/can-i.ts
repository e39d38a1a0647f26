import { AccessService } from "../../gen/gangway/v1/access_service_pb.ts";
import { EXIT } from "../exit.ts";
import { printLines } from "../output/print.ts";
import { examples, onRun, type Registrar } from "../run-command.ts";
import { addScopeOptions, type ScopeOptions, scopeOf } from "./scope-options.ts";

/** `gangway can-i VERB RESOURCE`: whether the caller has a permission. Its exit status says it too. */
export function registerCanI(registrar: Registrar): void {
  const command = addScopeOptions(
    registrar.program
      .command("can-i")
      .summary("Tell whether you have a permission")
      .description("Tell whether you have a permission, such as to create jobs. Exits with 0 for yes and 1 for no.")
      .argument("<verb>", "what to do, such as create")
      .argument("<resource>", "to what, such as jobs"),
  ).addHelpText(
    "after",
    examples("gangway can-i create jobs --namespace nlp", "gangway can-i use queues --queue research"),
  );
  onRun<ScopeOptions>(registrar, command, async (run, [verb = "", resource = ""], options) => {
    const request = { permission: `${resource}.${verb}`, scope: scopeOf(run, options) };
    const { allowed } = await run.client.call(AccessService.method.checkAccess, request);
    printLines(run, [allowed ? "yes" : "no"]);
    return allowed ? EXIT.ok : EXIT.denied;
  });
}
