import { examples, type Registrar } from "../run/run-command.ts";
import { ROLES, type Role, type ServeOptions } from "../shell/deps.ts";
import { usageFailure } from "../shell/exit.ts";
import { isAddress } from "../shell/options.ts";

type Options = { roles: string; listen?: string; insecure?: boolean };

/** `gangway serve`: one process of a service that runs on a PostgreSQL server. */
export function registerServe({ program, deps, finish }: Registrar): void {
  program
    .command("serve")
    .description("Run one process of the service on the database at DATABASE_URL; processes share the work")
    .option("--roles <roles>", `what this process does: ${ROLES.join(", ")}, or some of them`, ROLES.join(","))
    .option("--listen <host:port>", "where to serve the API; port 0 takes any free port (default: 127.0.0.1:7443)")
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
      if (options.listen !== undefined && !isAddress(options.listen)) {
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
