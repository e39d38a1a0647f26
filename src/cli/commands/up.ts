import { examples, type Registrar } from "../run/run-command.ts";
import type { UpOptions } from "../shell/deps.ts";
import { usageFailure } from "../shell/exit.ts";
import { isAddress } from "../shell/options.ts";

type Options = {
  exit?: boolean;
  examples: boolean;
  listen?: string;
  data?: string;
  insecure?: boolean;
  simulate?: boolean;
};

const PARTS = `
With DATABASE_URL, jobs are kept in that PostgreSQL database instead of the folder. The schema of the database is
migrated first: \`gangway serve\` never does that. With REDIS_URL, tokens are counted in that Redis. Simulated clusters
serve one process: beside \`gangway up\`, no other worker may use the same database.

The API is served over HTTP too, at 127.0.0.1:7480 if that is free. GANGWAY_CONSOLE_LISTEN names another address, or is
off.

Once a real cluster is registered, simulated clusters take no gangs and go away, and the examples do not run.`;

/** `gangway up`: the whole service in this process. */
export function registerUp({ program, deps, finish }: Registrar): void {
  program
    .command("up")
    .description("Start the whole service in this process; without a real cluster, simulate two and run the examples")
    .option("--exit", "end once the examples have ended; status 0 if each ended as expected")
    .option("--no-examples", "serve only")
    .option("--listen <host:port>", "where to serve; port 0 takes any free port (default: 127.0.0.1:7443)")
    .option("--data <dir>", "the folder of the simulated clusters, the database and the log (default: .gangway)")
    .option("--simulate", "simulate clusters also while real ones are registered; jobs may be placed on either")
    .option("--insecure", "allow an address that other machines reach, without encryption and authentication")
    .addHelpText("after", PARTS)
    .addHelpText("after", examples("gangway up", "gangway up --exit", "gangway up --no-examples --listen 127.0.0.1:0"))
    .action(async (options: Options) => {
      if (options.exit === true && !options.examples)
        throw usageFailure("--exit waits for the examples; leave out --no-examples");
      if (options.listen !== undefined && !isAddress(options.listen)) {
        throw usageFailure(`--listen must be HOST:PORT, not ${options.listen}`);
      }
      const wanted: UpOptions = {
        exit: options.exit === true,
        examples: options.examples,
        listen: options.listen ?? null,
        data: options.data ?? null,
        insecure: options.insecure === true,
        simulate: options.simulate === true,
      };
      finish(await deps.up(wanted));
    });
}
