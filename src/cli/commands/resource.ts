/** Commands that namespaces, queues and clusters have alike: each of these is kept under a name. */
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { EXIT } from "../exit.ts";
import { printLines, type Shown, show } from "../output.ts";
import { examples, type OutputFormat, onRun, outputOption, type Registrar, type Run } from "../shell.ts";

type Output = { readonly output: OutputFormat };
type Table = Pick<Shown<DescMessage>, "columns" | "rows" | "names">;

/** `list`: all of them, as one answer of the service has them. */
export function registerList<D extends DescMessage>(
  registrar: Registrar,
  of: {
    /** What is listed, as in `no queues`. */
    readonly plural: string;
    readonly description: string;
    readonly schema: D;
    readonly list: (run: Run) => Promise<MessageShape<D>>;
    readonly table: (run: Run, message: MessageShape<D>) => Table;
  },
): void {
  const { program } = registrar;
  const command = program
    .command("list")
    .description(of.description)
    .addOption(outputOption())
    .addHelpText("after", examples(`gangway ${program.name()} list`));
  onRun<Output>(registrar, command, async (run, _args, { output }) => {
    const message = await of.list(run);
    show(run, output, { ...of.table(run, message), schema: of.schema, message, none: `no ${of.plural}` });
    return EXIT.ok;
  });
}

/** `get <name>`: one of them. */
export function registerGet<D extends DescMessage>(
  registrar: Registrar,
  of: {
    /** A name to show in the example. */
    readonly example: string;
    readonly schema: D;
    readonly get: (run: Run, name: string) => Promise<MessageShape<D>>;
    readonly table: (run: Run, message: MessageShape<D>) => Table;
  },
): void {
  const { program } = registrar;
  const noun = program.name();
  const command = program
    .command("get")
    .description(`show a ${noun}`)
    .argument("<name>", `name of the ${noun}`)
    .addOption(outputOption())
    .addHelpText("after", examples(`gangway ${noun} get ${of.example} -o yaml`));
  onRun<Output>(registrar, command, async (run, [name = ""], { output }) => {
    const message = await of.get(run, name);
    show(run, output, { ...of.table(run, message), schema: of.schema, message, none: "" });
    return EXIT.ok;
  });
}

/** `<verb> <name>`: does one thing to one of them, and says that it is done: `queue/nlp deleted`. */
export function registerVerb(
  registrar: Registrar,
  verb: string,
  of: {
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
    .description(of.description)
    .argument("<name>", `name of the ${noun}`)
    .addHelpText("after", examples(`gangway ${noun} ${verb} ${of.example}`));
  onRun<object>(registrar, command, async (run, [name = ""]) => {
    await of.change(run, name);
    printLines(run, [`${noun}/${name} ${of.done}`]);
    return EXIT.ok;
  });
}
