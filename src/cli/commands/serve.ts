import { ROLES, type Role, type ServeOptions } from "../deps.ts";
import { usageFailure } from "../exit.ts";
import { examples, type Registrar } from "../shell.ts";

type Options = { roles: string; listen?: string; insecure?: boolean };

const LISTEN = /^(?:\[[0-9a-fA-F:.]+\]|[^:[\]/\s]+):\d{1,5}$/;

/** `gangway serve`: one of the processes of a service that runs on a PostgreSQL server. */
export function registerServe({ program, deps, finish }: Registrar): void {
  program
    .command("serve")
    .description("run one process of the service, on the database at DATABASE_URL; any number of them share the work")
    .option("--roles <roles>", `what this process does: ${ROLES.join(", ")}, or some of them`, ROLES.join(","))
    .option("--listen <host:port>", "where the API is served; port 0 takes any (default: 127.0.0.1:7443)")
    .option("--insecure", "allow an address that other machines reach, without encryption and authentication")
    .addHelpText(
      "after",
      examples(
        "DATABASE_URL=postgres://gangway@db:5432/gangway gangway serve",
        "gangway serve --roles api --listen 127.0.0.1:7443",
        "gangway serve --roles planner,worker",
      ),
    )
    .action(async (options: Options) => {
      if (options.listen !== undefined && !LISTEN.test(options.listen)) {
        throw usageFailure(`--listen must be HOST:PORT, not ${options.listen}`);
      }
      const wanted: ServeOptions = {
        roles: rolesOf(options.roles),
        listen: options.listen ?? null,
        insecure: options.insecure === true,
      };
      finish(await deps.serve(wanted));
    });
}

function rolesOf(text: string): readonly Role[] {
  const named = new Set(text.split(",").map((role) => role.trim()));
  for (const name of named) {
    if (!ROLES.some((role) => role === name)) throw usageFailure(`--roles takes ${ROLES.join(", ")}, not "${name}"`);
  }
  return ROLES.filter((role) => named.has(role));
}
