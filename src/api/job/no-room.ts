import type { NoRoom, RoomLimit } from "../../core/job/tenant-limits.ts";
import { type RpcError, tooMany } from "../rpc/rpc-error.ts";

const SHOWN: Readonly<Record<RoomLimit, { readonly reason: string; readonly words: (of: NoRoom) => string }>> = {
  maxWaitingJobs: {
    reason: "TOO_MANY_WAITING_JOBS",
    words: ({ used, max }) => `has ${used} waiting ${used === 1 ? "job" : "jobs"}, and its max_waiting_jobs is ${max}`,
  },
  maxPods: {
    reason: "TOO_MANY_PODS",
    words: ({ used, asked, max }) =>
      `has jobs of ${used} pods, and its max_pods is ${max}: there is no room for ${asked}`,
  },
  maxTemplateBytes: {
    reason: "TOO_MANY_TEMPLATE_BYTES",
    words: ({ used, asked, max }) =>
      `has specs of ${used} bytes, and its max_template_bytes is ${max}: there is no room for ${asked}`,
  },
};

/** RESOURCE_EXHAUSTED for a job beyond a limit of its queue, its namespace or its project. */
export function noRoomError(noRoom: NoRoom): RpcError {
  const { scope, limit } = noRoom;
  const { reason, words } = SHOWN[limit];
  return tooMany(reason, { subject: `${scope.kind} ${scope.name}`, description: words(noRoom) });
}
