/** The audit log: who changed what, which calls were refused, and who read of credentials. */
import type { PageRequest } from "../quota/admin.ts";

/** The RPCs that leave an entry when they have changed something, or have told of credentials; and refused calls. */
export const AUDIT_ACTIONS = [
  "CreateJob",
  "UpdateJob",
  "CancelJob",
  "DeleteJob",
  "CreateNamespace",
  "UpdateNamespace",
  "DeleteNamespace",
  "SetTenantLimits",
  "CreateQueue",
  "UpdateQueue",
  "DeleteQueue",
  "FreezeQueue",
  "UnfreezeQueue",
  "GrantQuota",
  "RevokeQuotaGrant",
  /** No RPC: the time of a grant has come, and the service ends it. */
  "EndQuotaGrant",
  "CreatePriorityClass",
  "UpdatePriorityClass",
  "DeletePriorityClass",
  "CreateRuntime",
  "UpdateRuntime",
  "DeleteRuntime",
  "RegisterResourceQuota",
  "DeletePool",
  "FreezePool",
  "UnfreezePool",
  "ForceRelease",
  "ReconcileQuota",
  "RegisterCluster",
  "UpdateCluster",
  "CordonCluster",
  "UncordonCluster",
  "DeleteCluster",
  "DeclareClusterLost",
  "AdoptCluster",
  /** No RPC: a cluster has not answered for so long that it counts as lost. */
  "LoseCluster",
  "RotateCredentialKeys",
  "ListCredentialKeys",
  "CreateRobotToken",
  "ListRobotTokens",
  "RevokeRobotToken",
  "CreateRole",
  "DeleteRole",
  "CreateBinding",
  "DeleteBinding",
  "PermissionDenied",
  /** No RPC: the settings of a file count from now on. */
  "ReadSettings",
] as const;

export type AuditAction = (typeof AUDIT_ACTIONS)[number];

export type AuditEntry = {
  readonly timeMs: number;
  /** The caller, or `system:gangway` for the service itself. */
  readonly actor: string;
  readonly action: AuditAction;
  /** The thing that was changed, as `NAMESPACE/NAME`, `POOL/TOKEN` or a name. Empty: all pools, robots or keys. */
  readonly subject: string;
  /** What the caller gave. Empty: none. */
  readonly reason: string;
  /** The difference that it made. Never a secret. */
  readonly details: Readonly<Record<string, unknown>>;
  /** How the caller was known; empty for changes of the service itself. */
  readonly method: string;
  /** ADDRESS:PORT of the other end of the caller's connection. */
  readonly peer: string;
  /** `package.Service/Method`. */
  readonly rpc: string;
  readonly requestId: string;
  /** The name of a status of gRPC. */
  readonly outcome: string;
};

/** Tells a change to the audit log. What it leaves out is known of the call that makes the change. */
export type AuditNote = Pick<AuditEntry, "timeMs" | "action" | "subject" | "details"> & Partial<AuditEntry>;

export type AuditQuery = PageRequest & {
  /** Members that are null or omitted filter nothing. */
  readonly filter: {
    readonly actor: string | null;
    readonly action: AuditAction | null;
    readonly subject: string | null;
    readonly rpc?: string | null;
    /** From this time on. */
    readonly sinceMs?: number | null;
    /** Before this time. */
    readonly untilMs?: number | null;
  };
};

/** The newest entries come first. */
export type AuditPage = { readonly entries: readonly AuditEntry[]; readonly next: string | null };
