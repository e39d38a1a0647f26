import { create } from "@bufbuild/protobuf";
import {
  type AccessBinding,
  AccessService,
  ListBindingsResponseSchema,
} from "../../gen/gangway/v1/access_service_pb.ts";
import { printLines } from "../output/print.ts";
import { allPages } from "../rpc/pages.ts";
import { examples, onRun, type Registrar } from "../run/run-command.ts";
import { EXIT, usageFailure } from "../shell/exit.ts";
import { registerListObjects, registerObjectVerb } from "./named-object-commands.ts";
import { sourceText } from "./role.ts";
import { addScopeOptions, type ScopeOptions, scopeOf, scopeText } from "./scope-options.ts";

/** More bindings than a person reads. */
const LIMIT = 10_000;

/** `gangway binding` and its commands. */
export function registerBinding(registrar: Registrar): void {
  const program = registrar.program
    .command("binding")
    .description("List, create and delete bindings, which give roles to callers")
    .addHelpText("after", examples("gangway binding list"));
  const group = { ...registrar, program };
  registerListObjects(group, {
    description: "List the bindings that you may see",
    plural: "bindings",
    schema: ListBindingsResponseSchema,
    list: async (run) => {
      const bindings = await allPages(run, { limit: LIMIT, plural: "bindings" }, async (page) => {
        const response = await run.client.call(AccessService.method.listBindings, page);
        return { items: response.bindings, next: response.nextPageToken };
      });
      return create(ListBindingsResponseSchema, { bindings });
    },
    table: (_run, { bindings }) => ({
      columns: ["NAME", "ROLE", "TO", "SCOPE", "SOURCE"].map((title) => ({ title })),
      rows: bindings.map(rowOf),
      names: bindings.map(({ name }) => `binding/${name}`),
    }),
  });
  registerCreate(group);
  registerObjectVerb(group, "delete", {
    description: "Take a binding away",
    example: "nlp",
    done: "deleted",
    change: (run, name) => run.client.call(AccessService.method.deleteBinding, { name }),
  });
}

type CreateOptions = ScopeOptions & { readonly role: string; readonly subject?: string; readonly group?: string };

function registerCreate(registrar: Registrar): void {
  const command = addScopeOptions(
    registrar.program
      .command("create")
      .summary("Give a role to a caller or to a group")
      .description(
        "Give a role to a caller or to a group, at one scope. Without a scope: at the namespace of the context; if " +
          "it has none, at the whole installation.",
      )
      .argument("<name>", "name of the binding")
      .requiredOption("--role <name>", "the role")
      .option("--subject <subject>", "the caller, as `gangway whoami` prints it")
      .option("--group <group>", "the group"),
  ).addHelpText("after", examples("gangway binding create nlp --role submitter --group login:nlp --namespace nlp"));
  onRun<CreateOptions>(registrar, command, async (run, [name = ""], { role, subject, group, ...scope }) => {
    if ((subject === undefined) === (group === undefined)) throw usageFailure("give either --subject or --group");
    const to =
      group === undefined
        ? ({ case: "subject", value: subject ?? "" } as const)
        : ({ case: "group", value: group } as const);
    const at = scopeOf(run, scope);
    await run.client.call(AccessService.method.createBinding, { binding: { name, role, to, scope: at } });
    printLines(run, [`binding/${name} created at ${scopeText(at)}`]);
    return EXIT.ok;
  });
}

function rowOf({ name, role, to, scope, source }: AccessBinding): readonly string[] {
  return [name, role, `${to.case ?? ""}/${to.value ?? ""}`, scopeText(scope), sourceText(source)];
}
