import { CommandFailure, EXIT } from "../exit.ts";
import { examples, type Registrar } from "../run-command.ts";

/** `gangway migrate`: the schema of the database at DATABASE_URL. */
export function registerMigrate({ program, deps }: Registrar): void {
  program
    .command("migrate")
    .description("Update the schema of the PostgreSQL database at DATABASE_URL to the version of this program")
    .option("--offline", "also migrate from several versions behind; no other process may use the database meanwhile")
    .addHelpText("after", examples("DATABASE_URL=postgres://gangway@db:5432/gangway gangway migrate"))
    .action(async (options: { offline?: boolean }) => {
      const outcome = await deps.migrate({ offline: options.offline === true });
      switch (outcome.kind) {
        case "notConfigured":
          throw new CommandFailure(EXIT.usage, [
            "error: DATABASE_URL is not set: `gangway up` migrates the database in its folder itself",
          ]);
        case "refused":
          throw new CommandFailure(EXIT.refused, [`error: ${outcome.message}`]);
        case "unavailable":
          throw new CommandFailure(EXIT.unavailable, [`error: ${outcome.message}`]);
        case "migrated":
          for (const name of outcome.ran) deps.stdout(`ran ${name}\n`);
          deps.stdout(outcome.ran.length === 0 ? "the schema was up to date\n" : "the schema is up to date now\n");
      }
    });
}
