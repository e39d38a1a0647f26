/** Compares the answer about a thing of the other tenant with that about a thing that does not exist. */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { RPC_TABLE } from "../../../../src/core/access/rpc-table.ts";
import { BatchCreateJobsResponseSchema } from "../../../../src/gen/gangway/v1/job_service_pb.ts";
import { StatusSchema } from "../../../../src/gen/google/rpc/status_pb.ts";
import type { Answer } from "../caller.ts";
import type { PlannedCall } from "../plan.ts";
import { shortName } from "../surface.ts";
import { codeOf } from "../verdict.ts";
import { ABSENT, THEIRS, type Uids, withAbsent, withoutAbsent } from "./names.ts";

/** The queue, the callers' own jobs and the clock move between two calls. */
const TRIES = 4;

/** The same request about things that do not exist. */
export function twinOf<Call extends PlannedCall>(call: Call, uids: Uids): Call {
  return { ...call, request: withAbsent(call.request, uids) };
}

/** How the answer to a call differs from that to its twin, each time; null if once it does not. */
export async function difference(
  call: PlannedCall,
  first: Answer,
  { uids, send }: { readonly uids: Uids; readonly send: (call: PlannedCall) => Promise<Answer> },
): Promise<string | null> {
  let answer = first;
  for (let tries = 1; ; tries += 1) {
    const twin = await send(twinOf(call, uids));
    const found = between(call, answer, twin, uids);
    if (found === null || tries === TRIES) return found;
    answer = await send(call);
  }
}

function between(call: PlannedCall, answer: Answer, twin: Answer, uids: Uids): string | null {
  const [theirs, absent] = [toldOf(call, answer), toldOf(call, twin)];
  if (theirs === null || absent === null) return null;
  const same = withoutAbsent(absent, uids);
  if (uncut(theirs) === uncut(same)) return null;
  return `of another's: ${shown(theirs)} | of nothing: ${shown(same)}`;
}

/** A long message may end within a name. */
const CUT = new RegExp(`(?:${beginningsOf(THEIRS)}|${beginningsOf(ABSENT)})…`, "g");

function beginningsOf(word: string): string {
  return Array.from(word, (_, at) => word.slice(0, word.length - at)).join("|");
}

function uncut(text: string): string {
  return text.replaceAll(CUT, "…");
}

function shown(text: string): string {
  return text.replaceAll(/[^ -~]+/g, " ").slice(0, 300);
}

/** What a caller learns that can be compared; null: nothing can. */
function toldOf(call: PlannedCall, answer: Answer): string | null {
  if (answer.status === null) return null;
  const head = [codeOf(answer), answer.message, answer.details?.toString("latin1") ?? ""];
  if (answer.status !== 0) return head.join("\n");
  const { method } = call;
  if (shortName(method) === "JobService.BatchCreateJobs") return refusedItems(answer);
  const entry = RPC_TABLE[`${method.parent.typeName}/${method.name}`];
  // A call that has changed something answers differently the second time.
  if (entry?.kind === "guarded" && entry.changes) return null;
  return [...head, ...answer.messages.map((message) => message.toString("latin1"))].join("\n");
}

/** The items of a batch that were refused. Those that were not are left out. */
function refusedItems({ messages: [message] }: Answer): string | null {
  if (message === undefined) return null;
  const { results } = fromBinary(BatchCreateJobsResponseSchema, message);
  const told = results.map(({ result }) =>
    result.case === "error" ? Buffer.from(toBinary(StatusSchema, result.value)).toString("latin1") : "",
  );
  return told.every((text) => text !== "") ? told.join("\n") : null;
}
