/** Completes command lines for shells: `gangway __complete WORDS… LAST` prints what the last word can be. */
import type { Command, Option } from "commander";
import type { CliDeps } from "../shell/deps.ts";
import { isListOption, type ValueLine, valuesOfArgument, valuesOfOption } from "./complete-values.ts";
import type { GlobalOptions } from "./run-command.ts";

/** Returns the words that begin with the last one. Names come from the service; without an answer there are none. */
export async function completions(
  program: Command,
  words: readonly string[],
  deps: CliDeps,
): Promise<readonly string[]> {
  const last = words.at(-1) ?? "";
  const placed = place(program, words.slice(0, -1));
  const { awaited, command } = placed;
  const line = { deps, program, options: placed.options };
  // `--phase=ru` is one word: everything before the value stays.
  const [, inline = "", value = ""] = /^(--[\w-]+=)(.*)$/s.exec(last) ?? [];
  const option = awaited ?? (inline === "" ? null : awaitedBy(inline.slice(0, -1), [command, program]));
  if (option !== null) return valuesFor(option, { before: inline, typed: inline === "" ? last : value }, line);
  return begun(await wordsFor(placed, last, line), last);
}

/** The command that words lead to, its arguments so far, global options, and the option that waits for its value. */
type Placed = {
  readonly command: Command;
  readonly options: GlobalOptions;
  readonly awaited: Option | null;
  readonly argumentsBefore: number;
};

function place(program: Command, words: readonly string[]): Placed {
  let command = program;
  let awaited: Option | null = null;
  let argumentsBefore = 0;
  const options: Record<string, string> = {};
  for (const word of words) {
    if (awaited !== null) {
      options[awaited.attributeName()] = word;
      awaited = null;
    } else if (word.startsWith("-")) awaited = awaitedBy(word, [command, program]);
    else {
      const below = command.commands.find((one) => [one.name(), ...one.aliases()].includes(word));
      if (below === undefined) argumentsBefore += 1;
      command = below ?? command;
    }
  }
  return { command, options: options as GlobalOptions, awaited, argumentsBefore };
}

function awaitedBy(word: string, commands: readonly Command[]): Option | null {
  const option = commands.flatMap(({ options }) => options).find(({ long, short }) => word === long || word === short);
  return option?.required === true ? option : null;
}

/** The values of an option. In a list with commas, the last part is completed. */
async function valuesFor(
  option: Option,
  { before, typed }: { readonly before: string; readonly typed: string },
  line: ValueLine,
): Promise<readonly string[]> {
  const values = option.argChoices ?? (await valuesOfOption(option, line));
  const comma = isListOption(option) ? typed.lastIndexOf(",") + 1 : 0;
  const [kept, part] = [typed.slice(0, comma), typed.slice(comma)];
  const given = kept.split(",");
  return begun(
    values.filter((value) => !given.includes(value)),
    part,
  ).map((value) => before + kept + value);
}

function begun(words: readonly string[], start: string): readonly string[] {
  return [...new Set(words)].filter((word) => word.startsWith(start)).sort();
}

async function wordsFor(placed: Placed, last: string, line: ValueLine): Promise<readonly string[]> {
  const { command, argumentsBefore } = placed;
  if (last.startsWith("-")) {
    return [command, line.program].flatMap(({ options }) => options.flatMap(({ long }) => long ?? []));
  }
  if (command.commands.length > 0) return command.commands.flatMap((one) => [one.name(), ...one.aliases()]);
  const all = command.registeredArguments;
  const argument = all[argumentsBefore] ?? (all.at(-1)?.variadic === true ? all.at(-1) : undefined);
  return argument === undefined ? [] : (argument.argChoices ?? valuesOfArgument(argument.description, line));
}
