import { create } from "@bufbuild/protobuf";
import {
  type AccessRole,
  AccessRoleSchema,
  AccessService,
  AccessSource,
  ListRolesResponseSchema,
} from "../../gen/gangway/v1/access_service_pb.ts";
import { printLines } from "../output/print.ts";
import { allPages } from "../rpc/pages.ts";
import { examples, onRun, type Registrar } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";
import { repeated } from "../shell/options.ts";
import { registerGetObject, registerListObjects, registerObjectVerb } from "./named-object-commands.ts";

/** More roles than a person reads. */
const LIMIT = 10_000;

/** `gangway role` and its commands. */
export function registerRole(registrar: Registrar): void {
  const program = registrar.program
    .command("role")
    .description("List, create and delete roles, which are sets of permissions")
    .addHelpText("after", examples("gangway role list", "gangway role get submitter"));
  const group = { ...registrar, program };
  const { listRoles, getRole, deleteRole } = AccessService.method;
  registerListObjects(group, {
    description: "List roles, built-in ones included",
    plural: "roles",
    schema: ListRolesResponseSchema,
    list: async (run) => {
      const roles = await allPages(run, { limit: LIMIT, plural: "roles" }, async (page) => {
        const response = await run.client.call(listRoles, page);
        return { items: response.roles, next: response.nextPageToken };
      });
      return create(ListRolesResponseSchema, { roles });
    },
    table: (_run, { roles }) => rolesTable(roles),
  });
  registerGetObject(group, {
    example: "submitter",
    schema: AccessRoleSchema,
    get: async (run, name) => (await run.client.call(getRole, { name })).role ?? create(AccessRoleSchema, { name }),
    table: (_run, role) => rolesTable([role]),
  });
  registerCreate(group);
  registerObjectVerb(group, "delete", {
    description: "Delete a role that no binding has",
    example: "reader",
    done: "deleted",
    change: (run, name) => run.client.call(deleteRole, { name }),
  });
}

function registerCreate(registrar: Registrar): void {
  const command = registrar.program
    .command("create")
    .description("Create a role, of permissions that you have yourself")
    .argument("<name>", "name of the role")
    .requiredOption("--permission <permission>", "a permission such as jobs.get; may be repeated", repeated)
    .addHelpText("after", examples("gangway role create reader --permission jobs.get --permission jobs.logs"));
  onRun<{ permission: readonly string[] }>(registrar, command, async (run, [name = ""], { permission }) => {
    await run.client.call(AccessService.method.createRole, { role: { name, permissions: [...permission] } });
    printLines(run, [`role/${name} created`]);
    return EXIT.ok;
  });
}

function rolesTable(roles: readonly AccessRole[]) {
  return {
    columns: ["NAME", "SOURCE", "PERMISSIONS"].map((title) => ({ title })),
    rows: roles.map(({ name, source, permissions }) => [name, sourceText(source), permissions.join(", ")]),
    names: roles.map(({ name }) => `role/${name}`),
  };
}

/** Where a role or a binding comes from. */
export function sourceText(source: AccessSource): string {
  if (source === AccessSource.BUILT_IN) return "built-in";
  return source === AccessSource.FILE ? "file" : "call";
}
