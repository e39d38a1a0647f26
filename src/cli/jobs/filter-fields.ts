/** Turns what a text selects into the API's filter. Pure, for the command line and the console. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { OWNER_ME, type TextFilter } from "../../core/job/request/filter-text.ts";
import { JobPhase } from "../../gen/gangway/v1/job_pb.ts";
import type { JobFilterSchema } from "../../gen/gangway/v1/job_service_pb.ts";

/** `me`: the name of the caller, for `owner:me`. */
export function filterFields(
  { createdSinceMs, createdBeforeMs, endedSinceMs, phases, createdBy, kinds, ...text }: TextFilter,
  me: string,
): MessageInitShape<typeof JobFilterSchema> {
  const { names, namespaces, reasons, queues, labels, ...single } = text;
  return {
    ...single,
    ...(names === undefined ? {} : { names: [...names] }),
    ...(namespaces === undefined ? {} : { namespaces: [...namespaces] }),
    ...(reasons === undefined ? {} : { reasons: [...reasons] }),
    ...(queues === undefined ? {} : { queues: [...queues] }),
    ...(labels === undefined ? {} : { labels }),
    ...(kinds === undefined ? {} : { kinds: [...kinds] }),
    ...(phases === undefined ? {} : { phases: phases.map((phase) => JobPhase[phase]) }),
    ...(createdBy === undefined ? {} : { createdBy: createdBy.map((owner) => (owner === OWNER_ME ? me : owner)) }),
    ...timesOf({ createdSinceMs, createdBeforeMs, endedSinceMs }),
  };
}

function timesOf({
  createdSinceMs,
  createdBeforeMs,
  endedSinceMs,
}: { readonly [Key in "createdSinceMs" | "createdBeforeMs" | "endedSinceMs"]: number | undefined }) {
  return {
    ...(createdSinceMs === undefined ? {} : { createdSince: timestampFromMs(createdSinceMs) }),
    ...(createdBeforeMs === undefined ? {} : { createdBefore: timestampFromMs(createdBeforeMs) }),
    ...(endedSinceMs === undefined ? {} : { endedSince: timestampFromMs(endedSinceMs) }),
  };
}
