/** Builds the commands that namespaces, queues and clusters have in common: each of these objects has a name. */
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { type PrintableResponse, printLines, printResponse, printTable } from "../output/print.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";
import { isTable, noHeadersOption, type OutputFormat, outputOption } from "../shell/options.ts";

type OutputOptions = { readonly output: OutputFormat };
type ObjectTable = Pick<PrintableResponse<DescMessage>, "columns" | "rows" | "names">;

/** `gangway <noun> list`. */
export function registerListObjects<D extends DescMessage>(
  registrar: Registrar,
  listing: {
    /** As in `no queues`. */
    readonly plural: string;
    readonly description: string;
    readonly schema: D;
    readonly list: (run: Run) => Promise<MessageShape<D>>;
    readonly table: (run: Run, message: MessageShape<D>, output: OutputFormat) => ObjectTable;
  },
): void {
  const { program } = registrar;
  const command = program
    .command("list")
    .alias("ls")
    .description(listing.description)
    .addOption(noHeadersOption())
    .addOption(outputOption())
    .addHelpText("after", examples(`gangway ${program.name()} list`));
  onRun<OutputOptions>(registrar, command, async (run, _args, { output }) => {
    const message = await listing.list(run);
    const { schema, plural } = listing;
    printResponse(run, output, { ...listing.table(run, message, output), schema, message, none: `no ${plural}` });
    return EXIT.ok;
  });
}

/** `gangway <noun> get NAME`. */
export function registerGetObject<D extends DescMessage>(
  registrar: Registrar,
  getting: {
    /** A name for the example. */
    readonly example: string;
    readonly schema: D;
    readonly get: (run: Run, name: string) => Promise<MessageShape<D>>;
    readonly table: (run: Run, message: MessageShape<D>, output: OutputFormat) => ObjectTable | Promise<ObjectTable>;
  },
): void {
  const { program } = registrar;
  const noun = program.name();
  const command = program
    .command("get")
    .alias("describe")
    .description(`Show a ${noun}`)
    .argument("<name...>", `name of the ${noun}, or several`)
    .addOption(noHeadersOption())
    .addOption(outputOption())
    .addHelpText("after", examples(`gangway ${noun} get ${getting.example} -o yaml`));
  onRun<OutputOptions>(registrar, command, async (run, args, { output }) => {
    const found: (ObjectTable & { readonly message: MessageShape<D> })[] = [];
    for (const name of new Set(args)) {
      const message = await getting.get(run, name);
      found.push({ ...(await getting.table(run, message, output)), message });
    }
    printObjects(run, output, { schema: getting.schema, found });
    return EXIT.ok;
  });
}

/** Prints objects as one table, or one after the other. */
function printObjects<D extends DescMessage>(
  run: Run,
  output: OutputFormat,
  of: { readonly schema: D; readonly found: readonly (ObjectTable & { readonly message: MessageShape<D> })[] },
): void {
  const { schema, found } = of;
  if (isTable(output)) {
    const rows = found.flatMap((one) => one.rows);
    printTable(run, found[0]?.columns ?? [], rows, output);
    return;
  }
  for (const [at, one] of found.entries()) {
    if (at > 0 && output === "yaml") run.deps.stdout("---\n");
    printResponse(run, output, { ...one, schema, none: "" });
  }
}

/** `gangway <noun> <verb> NAME`, which prints the verb's past participle: `queue/nlp deleted`. */
export function registerObjectVerb(
  registrar: Registrar,
  verb: string,
  action: {
    readonly description: string;
    readonly example: string;
    readonly done: string;
    readonly change: (run: Run, name: string) => Promise<unknown>;
  },
): void {
  const { program } = registrar;
  const noun = program.name();
  const command = program
    .command(verb)
    .description(action.description)
    .argument("<name>", `name of the ${noun}`)
    .addHelpText("after", examples(`gangway ${noun} ${verb} ${action.example}`));
  onRun<object>(registrar, command, async (run, [name = ""]) => {
    await action.change(run, name);
    printLines(run, [`${noun}/${name} ${action.done}`]);
    return EXIT.ok;
  });
}
