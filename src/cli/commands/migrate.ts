import { CommandFailure, EXIT } from "../exit.ts";
import { examples, type Registrar } from "../shell.ts";

/** `gangway migrate`: the schema of the database at DATABASE_URL. */
export function registerMigrate({ program, deps }: Registrar): void {
  program
    .command("migrate")
    .description("bring the schema of the PostgreSQL database at DATABASE_URL up to this program's")
    .option("--offline", "nothing else runs on the database: migrate it also from several versions behind")
    .addHelpText("after", examples("DATABASE_URL=postgres://gangway@db:5432/gangway gangway migrate"))
    .action(async (options: { offline?: boolean }) => {
      const outcome = await deps.migrate({ offline: options.offline === true });
      switch (outcome.kind) {
        case "notConfigured":
          throw new CommandFailure(EXIT.usage, [
            "error: DATABASE_URL is not set; the database of `gangway up` without it migrates itself",
          ]);
        case "refused":
          throw new CommandFailure(EXIT.refused, [`error: ${outcome.message}`]);
        case "unavailable":
          throw new CommandFailure(EXIT.unavailable, [`error: ${outcome.message}`]);
        case "migrated":
          for (const name of outcome.ran) deps.stdout(`ran ${name}\n`);
          deps.stdout(outcome.ran.length === 0 ? "the schema was current\n" : "the schema is current now\n");
      }
    });
}
