/** Freezes queues and pools: nothing more of them is granted, and nothing is taken. */

import { printLines } from "../output/print.ts";
import { examples, onRun, type Registrar, type Run } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";

/** `freeze` and `unfreeze` of a group of commands. */
export function registerFreeze(
  registrar: Registrar,
  of: {
    readonly noun: "queue" | "pool";
    readonly example: string;
    /** What is frozen. */
    readonly what: string;
    readonly freeze: (run: Run, name: string, reason: string) => Promise<unknown>;
    /** Returns words to add. */
    readonly unfreeze: (run: Run, name: string) => Promise<string>;
  },
): void {
  const { noun, example, what } = of;
  const { program } = registrar;
  const line = `gangway ${program.name()}`;
  const freeze = program
    .command("freeze")
    .summary(`Freeze ${what}`)
    .description(`Freeze ${what}: nothing more is granted to jobs and callers, and no job is preempted or undone`)
    .argument("<name>", `name of the ${noun}`)
    .option("--reason <text>", "why; explain shows it to those who wait", "")
    .addHelpText("after", examples(`${line} freeze ${example}`, `${line} freeze ${example} --reason "audit of use"`));
  onRun<{ reason: string }>(registrar, freeze, async (run, [name = ""], { reason }) => {
    await of.freeze(run, name, reason);
    printLines(run, [`${noun}/${name} frozen`]);
    return EXIT.ok;
  });
  const unfreeze = program
    .command("unfreeze")
    .description(`End the freeze of a ${noun}`)
    .argument("<name>", `name of the ${noun}`)
    .addHelpText("after", examples(`${line} unfreeze ${example}`));
  onRun(registrar, unfreeze, async (run, [name = ""]) => {
    printLines(run, [`${noun}/${name} unfrozen${await of.unfreeze(run, name)}`]);
    return EXIT.ok;
  });
}
