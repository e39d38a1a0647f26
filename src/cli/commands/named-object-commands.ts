/** Builds the commands that namespaces, queues and clusters have in common: each of these objects has a name. */
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { EXIT } from "../exit.ts";
import { type OutputFormat, outputOption } from "../options.ts";
import { type PrintableResponse, printLines, printResponse } from "../output/print.ts";
import { examples, onRun, type Registrar, type Run } from "../run-command.ts";

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
    .description(listing.description)
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
    .description(`Show a ${noun}`)
    .argument("<name>", `name of the ${noun}`)
    .addOption(outputOption())
    .addHelpText("after", examples(`gangway ${noun} get ${getting.example} -o yaml`));
  onRun<OutputOptions>(registrar, command, async (run, [name = ""], { output }) => {
    const message = await getting.get(run, name);
    const table = await getting.table(run, message, output);
    printResponse(run, output, { ...table, schema: getting.schema, message, none: "" });
    return EXIT.ok;
  });
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
