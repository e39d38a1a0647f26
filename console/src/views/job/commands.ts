/** Commands of the command line about one job. */
import type { JobName } from "../../router/path.ts";

export type JobCommand = { readonly does: string; readonly command: string };

export function commandsFor({ namespace, name }: JobName, hasEnded: boolean): readonly JobCommand[] {
  const of = (does: string, verb: string, flags = "") => {
    const place = namespace === "default" ? "" : ` -n ${namespace}`;
    return { does, command: `gangway ${verb} ${name}${place}${flags}` };
  };
  const shown = [
    of("Why it is so", "explain"),
    of("Its pods", "pods"),
    of("Its logs", "logs", hasEnded ? "" : " --follow"),
    of("What happened to it", "events"),
    of("All of it", "get", " -o yaml"),
  ];
  const whileItLives = [
    of("Each change of it", "watch"),
    of("Give back its GPUs, keep its record", "suspend"),
    of("Let it wait again", "resume"),
    of("End it", "cancel"),
  ];
  return hasEnded
    ? [...shown, of("Submit it again", "rerun"), of("Remove its record", "delete")]
    : [...shown, ...whileItLives];
}
