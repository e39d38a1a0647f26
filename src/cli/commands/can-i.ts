import { AccessService } from "../../gen/gangway/v1/access_service_pb.ts";
import { printLines } from "../output/print.ts";
import { examples, onRun, type Registrar } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";
import { addScopeOptions, noteContextScope, type ScopeOptions, scopeOf } from "./scope-options.ts";

/** `gangway can-i VERB RESOURCE`: whether the caller has a permission. Its exit status says it too. */
export function registerCanI(registrar: Registrar): void {
  const command = addScopeOptions(
    registrar.program
      .command("can-i")
      .summary("Tell whether you have a permission")
      .description(
        "Tell whether you have a permission, such as to create jobs. Exits with 0 for yes and 1 for no.\n" +
          "Without a scope, asks for the namespace of the context; if it has none, for the whole installation.",
      )
      .argument("<verb>", "what to do, such as create")
      .argument("<resource>", "to what, such as jobs"),
  ).addHelpText(
    "after",
    examples("gangway can-i create jobs --namespace nlp", "gangway can-i use queues --queue research"),
  );
  onRun<ScopeOptions>(registrar, command, async (run, [verb = "", resource = ""], options) => {
    const scope = scopeOf(run, options);
    const request = { permission: `${resource}.${verb}`, scope };
    const { allowed } = await run.client.call(AccessService.method.checkAccess, request);
    noteContextScope(run, scope);
    printLines(run, [allowed ? "yes" : "no"]);
    return allowed ? EXIT.ok : EXIT.denied;
  });
}
