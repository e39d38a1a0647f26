import { examples, type Registrar } from "../run/run-command.ts";
import type { MigrateRequest } from "../shell/deps.ts";
import { CommandFailure, EXIT } from "../shell/exit.ts";

/** `gangway migrate`: the schema of the database at DATABASE_URL. */
export function registerMigrate({ program, deps }: Registrar): void {
  program
    .command("migrate")
    .description("Update the schema of the PostgreSQL database at DATABASE_URL to the version of this program")
    .option("--offline", "also migrate from several versions behind; no other process may use the database meanwhile")
    .option("--restored", RESTORED)
    .option("--data <dir>", "with --restored: the folder of gangway up that was put back, instead of DATABASE_URL")
    .addHelpText("after", EXAMPLES)
    .action(async (options: { offline?: boolean; restored?: boolean; data?: string }) => {
      const request = requestOf(options);
      const outcome = await deps.migrate(request);
      switch (outcome.kind) {
        case "notConfigured":
          throw new CommandFailure(EXIT.usage, [
            "error: DATABASE_URL is not set: `gangway up` migrates the database in its folder itself; " +
              "for a folder that was put back from a copy, use --restored --data FOLDER",
          ]);
        case "refused":
          throw new CommandFailure(EXIT.refused, [`error: ${outcome.message}`]);
        case "unavailable":
          throw new CommandFailure(EXIT.unavailable, [`error: ${outcome.message}`]);
        case "migrated":
          for (const name of outcome.ran) deps.stdout(`ran ${name}\n`);
          deps.stdout(outcome.ran.length === 0 ? "the schema was up to date\n" : "the schema is up to date now\n");
          if (request.restored) deps.stdout("watches begin anew, and fences are above all that were given\n");
      }
    });
}

const RESTORED =
  "the database was restored from a back-up: lets watches begin anew and fences go on above all that were given; " +
  "no other process may use the database meanwhile";

const EXAMPLES = examples(
  "DATABASE_URL=postgres://gangway@db:5432/gangway gangway migrate",
  "DATABASE_URL=postgres://gangway@db:5432/gangway_restored gangway migrate --restored",
  "gangway migrate --restored --data .gangway",
);

function requestOf(options: { offline?: boolean; restored?: boolean; data?: string }): MigrateRequest {
  const { offline = false, restored = false, data = null } = options;
  if (data !== null && !restored) {
    throw new CommandFailure(EXIT.usage, ["error: --data needs --restored: `gangway up` migrates its folder itself"]);
  }
  return { offline, restored, data };
}
