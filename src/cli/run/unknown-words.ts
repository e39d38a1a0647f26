/**
 * Suggestions for an unknown command or option. A suggestion is a text: it runs nothing. It is a command
 * that is one slip of a finger away, and a command that changes something only if none that reads is as close.
 */
import type { Command } from "commander";
import { CommandFailure, EXIT } from "../shell/exit.ts";

/** Commands that change nothing. Groups are among them: alone they print their help. */
const READS: readonly string[] = [
  ...["get", "list", "ls", "watch", "wait", "explain", "describe", "events", "pods", "pod", "top", "logs", "kinds"],
  ...["nodes", "node", "jobs", "job"],
  ...["can-run", "can-i", "whoami", "version", "completion", "help", "audit", "tree", "capacity", "check"],
  ...["allocations", "grants", "queue", "priority-class", "namespace", "limits", "quota", "cluster", "keys"],
  "runtime",
  ...["robot", "role", "binding", "context"],
];

/** Options that confirm a change, or make it harder to take back. */
const CONFIRMING: readonly string[] = ["--yes", "--force", "--forget", "--confirm", "--replace"];

/** A word that is shorter is too close to too many others. */
const CHANGE_CHARS_MIN = 5;

/** Words of kubectl and of other command lines, and what to write in their place. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  label: 'labels of jobs change with "gangway update JOB --label KEY=VALUE"',
  annotate: "annotations cannot change after a job was submitted",
  patch: 'jobs change with "gangway update", "gangway scale" and "gangway edit"',
  set: 'jobs change with "gangway update", "gangway scale" and "gangway edit"',
  rm: 'jobs are deleted with "gangway delete"',
  kill: 'jobs are ended with "gangway cancel"',
  stop: 'jobs are ended with "gangway cancel", and paused with "gangway suspend"',
  run: 'jobs are submitted with "gangway submit"; "gangway kinds --example KIND" prints a manifest',
  ps: 'jobs are listed with "gangway list", and the pods of a job with "gangway pods"',
  status: '"gangway explain JOB" says what a job waits for, or where it runs',
  jobs: 'jobs are listed with "gangway list"',
  job: 'jobs are listed with "gangway list"',
  queues: 'queues are listed with "gangway queue list"',
  clusters: 'clusters are listed with "gangway cluster list"',
  namespaces: 'namespaces are listed with "gangway namespace list"',
  runtimes: 'training runtimes are listed with "gangway runtime list"',
  ns: 'namespaces are listed with "gangway namespace list"',
  config: 'services are chosen with "gangway context"',
  auth: 'permissions are asked for with "gangway can-i VERB RESOURCE"',
  "api-resources": 'the kinds of jobs are listed with "gangway kinds"',
  cordon: 'clusters are cordoned with "gangway cluster cordon NAME", and nodes with kubectl',
  uncordon: 'clusters are uncordoned with "gangway cluster uncordon NAME", and nodes with kubectl',
  drain: 'nodes are drained with kubectl; "gangway nodes NAME" shows the jobs that hold a node',
  exec: "Gangway runs nothing in pods; kubectl does, on the cluster of the job",
};

/** The words of groups for what others call delete. */
const DELETES: readonly string[] = ["delete", "remove", "revoke", "rm"];

/** Refuses an unknown command of the program or of a group. */
export function refuseUnknownCommand(group: Command, word: string): never {
  const isProgram = group.parent === null;
  const help = (isProgram ? ELSEWHERE[word] : undefined) ?? nearText(group, word);
  const see = `(use "gangway ${isProgram ? "" : `${group.name()} `}--help" to see the commands)`;
  throw new CommandFailure(EXIT.usage, [`error: unknown command '${word}'${help === null ? "" : `; ${help}`}`, see]);
}

function nearText(group: Command, word: string): string | null {
  const names = group.commands.flatMap((command) => [command.name(), ...command.aliases()]);
  const path = group.parent === null ? "gangway" : `gangway ${group.name()}`;
  const near = nearCommand(word, names) ?? (DELETES.includes(word) ? names.find((one) => DELETES.includes(one)) : null);
  return near == null ? null : `did you mean "${path} ${near}"?`;
}

/** The command that is one slip away. Null: there is none. */
export function nearCommand(word: string, names: readonly string[]): string | null {
  const near = names.filter((name) => isOneSlip(word, name));
  const read = near.find((name) => READS.includes(name));
  return read ?? near.find((name) => name.length >= CHANGE_CHARS_MIN) ?? null;
}

/** The option of a command that an unknown one is one slip away from. Null: there is none. */
export function nearOption(flag: string, command: Command, program: Command): string | null {
  const flags = [...command.options, ...program.options].flatMap(({ long }) => long ?? []);
  const [name = ""] = flag.split("=");
  return flags.find((one) => !CONFIRMING.includes(one) && isOneSlip(name, one)) ?? null;
}

/** True if one letter was added, left out or replaced, or two neighbours were swapped. */
function isOneSlip(typed: string, word: string): boolean {
  if (typed === word || Math.abs(typed.length - word.length) > 1) return false;
  let before = 0;
  while (before < typed.length && typed[before] === word[before]) before += 1;
  const [one, other] = [typed.slice(before), word.slice(before)];
  const isSwap = one[0] === other[1] && one[1] === other[0] && one.slice(2) === other.slice(2) && one.length > 1;
  return isSwap || one.slice(1) === other.slice(1) || one.slice(1) === other || one === other.slice(1);
}
