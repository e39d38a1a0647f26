import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { AuditAction } from "../../core/admin/audit.ts";
import type { ListAuditEntriesRequest } from "../../gen/gangway/v1/queue_service_pb.ts";
import {
  type ForceReleaseRequest,
  type ReconcileQuotaRequest,
  ReleaseOutcome,
} from "../../gen/gangway/v1/resource_manager_pb.ts";
import type { CallContext } from "../rpc/call.ts";
import { namespacePlace } from "../rpc/call-access.ts";
import { badPageToken, failedPrecondition } from "../rpc/rpc-error.ts";
import { toProtoAuditEntry, toProtoDifference } from "./convert-quota.ts";
import { tokenOf } from "./duplicate-tokens.ts";
import { pageOf } from "./pools.ts";
import { tokenName, unknownPool } from "./quota-errors.ts";
import type { TokenOperations } from "./quota-ports.ts";

/** Takes a token from its holder, unless that is the live admission of a job. */
export async function forceRelease(
  resources: TokenOperations,
  request: ForceReleaseRequest,
  { identity: { subject: actor }, access }: CallContext,
) {
  const ref = tokenOf(request);
  const answer = await resources.forceRelease({ ...ref, reason: request.reason, actor });
  switch (answer.kind) {
    case "released":
      return { outcome: ReleaseOutcome.RELEASED };
    case "notHeld":
      return { outcome: ReleaseOutcome.NOT_HELD };
    case "unknownPool":
      throw unknownPool(ref.pool);
    case "liveAdmission": {
      const [namespace = "", name = ""] = answer.job.split("/");
      const holder = access.may("jobs.get", namespacePlace(namespace))
        ? `job ${answer.job}: cancel the job instead: gangway cancel ${name} -n ${namespace}`
        : "another job: cancel the job instead";
      const description = `is held by the live admission of ${holder}`;
      throw failedPrecondition({ type: "LIVE_ADMISSION", subject: tokenName(ref), description });
    }
  }
}

export async function reconcileQuota(
  resources: TokenOperations,
  { pool, dryRun }: ReconcileQuotaRequest,
  { identity: { subject: actor } }: CallContext,
) {
  const answer = await resources.reconcile({ pool: pool || null, dryRun, actor });
  if ("kind" in answer) throw unknownPool(pool);
  const { differences, repaired, epoch } = answer;
  return { differences: differences.map(toProtoDifference), repaired, epoch: BigInt(epoch) };
}

export async function listAuditEntries(resources: TokenOperations, request: ListAuditEntriesRequest) {
  const { action = "", actor = "", subject = "", rpc = "", since, until } = request.filter ?? {};
  const filter = {
    action: (action || null) as AuditAction | null,
    actor: actor || null,
    subject: subject || null,
    rpc: rpc || null,
    sinceMs: since === undefined ? null : timestampMs(since),
    untilMs: until === undefined ? null : timestampMs(until),
  };
  const page = await resources.listAudit({ filter, ...pageOf(request) });
  if (page === "badCursor") throw badPageToken();
  return { entries: page.entries.map(toProtoAuditEntry), nextPageToken: page.next ?? "" };
}
