/** `--filter` and `--since`: filters as people write them, for commands that read jobs. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { OWNER_ME, readFilterText, type TextFilter } from "../../core/job/request/filter-text.ts";
import type { JobFilterSchema } from "../../gen/gangway/v1/job_service_pb.ts";
import type { Run } from "../run/run-command.ts";
import { usageFailure } from "../shell/exit.ts";
import { durationOption } from "../shell/options.ts";
import { filterFields } from "./filter-fields.ts";
import { kindOfOption } from "./kind-words.ts";
import { ownName } from "./own-name.ts";

export type FilterTextOptions = {
  readonly filter?: string;
  /** In milliseconds. */
  readonly since?: number;
};

export function addFilterTextOptions(command: Command): Command {
  return command
    .option("--filter <text>", "only jobs with these terms, e.g. 'phase:waiting queue:nlp+ owner:me age:>1d'")
    .addOption(durationOption("--since <duration>", "only jobs that were created within this time, e.g. 90m or 1d"));
}

/** What the options select. Throws for a text that is wrong. */
export function textFilterOf({ deps }: Pick<Run, "deps">, { filter, since }: FilterTextOptions): TextFilter {
  const nowMs = deps.clock.nowMs();
  const read = readFilterText(filter ?? "", nowMs);
  if (read.kind === "wrong") throw usageFailure(`--filter: ${read.problem}`);
  if (since === undefined) return read.filter;
  const createdSinceMs = Math.max(0, nowMs - since, read.filter.createdSinceMs ?? 0);
  return { ...read.filter, createdSinceMs };
}

/** The fields of the API's filter that a text sets. */
export async function fieldsOf(run: Run, text: TextFilter): Promise<MessageInitShape<typeof JobFilterSchema>> {
  const kinds: string[] = [];
  for (const kind of text.kinds ?? []) kinds.push(await kindOfOption(run, kind));
  const me = text.createdBy?.includes(OWNER_ME) ? await ownName(run) : "";
  return filterFields({ ...text, ...(text.kinds === undefined ? {} : { kinds }) }, me);
}
