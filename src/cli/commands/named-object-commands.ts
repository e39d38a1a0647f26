/** Builds the commands that namespaces, queues and clusters have in common: each of these objects has a name. */
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Option } from "commander";
import { type PrintableResponse, printLines, printResponse, printTable } from "../output/print.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";
import { isTable, noHeadersOption, type OutputFormat, outputOption } from "../shell/options.ts";

type OutputOptions = { readonly output: OutputFormat } & FurtherOptions;
/** The values of the options that only some objects have. */
type FurtherOptions = Readonly<Record<string, unknown>>;
type ObjectTable = Pick<PrintableResponse<DescMessage>, "columns" | "rows" | "names">;

/** `gangway <noun> list`. */
export function registerListObjects<D extends DescMessage>(
  registrar: Registrar,
  listing: {
    /** As in `no queues`. */
    readonly plural: string;
    readonly description: string;
    readonly schema: D;
    /** Options that only this object has. Omitted: none. */
    readonly options?: readonly Option[];
    readonly list: (run: Run, options: FurtherOptions) => Promise<MessageShape<D>>;
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
  for (const option of listing.options ?? []) command.addOption(option);
  onRun<OutputOptions>(registrar, command, async (run, _args, { output, ...options }) => {
    const message = await listing.list(run, options);
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
    /** Options that only this object has. Omitted: none. */
    readonly options?: readonly Option[];
    readonly get: (run: Run, name: string, options: FurtherOptions) => Promise<MessageShape<D>>;
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
  for (const option of getting.options ?? []) command.addOption(option);
  onRun<OutputOptions>(registrar, command, async (run, args, { output, ...options }) => {
    const found: (ObjectTable & { readonly message: MessageShape<D> })[] = [];
    for (const name of new Set(args)) {
      const message = await getting.get(run, name, options);
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
    /** Options that only this object has. Omitted: none. */
    readonly options?: readonly Option[];
    readonly change: (run: Run, name: string, options: FurtherOptions) => Promise<unknown>;
    /** The object in the line of the result. Omitted: its name. */
    readonly shown?: (run: Run, name: string, options: FurtherOptions) => string;
  },
): void {
  const { program } = registrar;
  const noun = program.name();
  const command = program
    .command(verb)
    .description(action.description)
    .argument("<name>", `name of the ${noun}`)
    .addHelpText("after", examples(`gangway ${noun} ${verb} ${action.example}`));
  for (const option of action.options ?? []) command.addOption(option);
  onRun<FurtherOptions>(registrar, command, async (run, [name = ""], options) => {
    await action.change(run, name, options);
    printLines(run, [`${noun}/${action.shown?.(run, name, options) ?? name} ${action.done}`]);
    return EXIT.ok;
  });
}
