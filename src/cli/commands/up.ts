import type { UpOptions } from "../deps.ts";
import { usageFailure } from "../exit.ts";
import { examples, isAddress, type Registrar } from "../shell.ts";

type Options = { exit?: boolean; examples: boolean; listen?: string; data?: string; insecure?: boolean };

/** `gangway up`: the service itself, in this process. */
export function registerUp({ program, deps, finish }: Registrar): void {
  program
    .command("up")
    .description("start the service with everything it needs in this process, and run the examples")
    .option("--exit", "end once the examples have ended; status 0 if each ended as expected")
    .option("--no-examples", "serve only")
    .option("--listen <host:port>", "where to serve; port 0 takes any (default: 127.0.0.1:7443)")
    .option("--data <dir>", "where jobs and simulated clusters are kept (default: .gangway)")
    .option("--insecure", "allow an address that other machines reach, without encryption and authentication")
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
      };
      finish(await deps.up(wanted));
    });
}
