import type { MessageInitShape } from "@bufbuild/protobuf";
import type { FieldNote } from "../../core/job/request/sent.ts";
import type { PodSecurityLevel as Level } from "../../core/pods/policy/control.ts";
import type { LimitKind, PodLimits } from "../../core/pods/policy/limits.ts";
import type { PodPolicy as Policy } from "../../core/pods/policy/pod-policy.ts";
import { readPolicy } from "../../core/pods/policy/read-policy.ts";
import {
  type PodLimit,
  type PodPolicy,
  type PodPolicySchema,
  PodSecurityLevel,
} from "../../gen/gangway/v1/namespace_service_pb.ts";
import { invalidFields } from "../rpc/rpc-error.ts";

const LEVELS = {
  privileged: PodSecurityLevel.PRIVILEGED,
  baseline: PodSecurityLevel.BASELINE,
  restricted: PodSecurityLevel.RESTRICTED,
} as const satisfies Readonly<Record<Level, PodSecurityLevel>>;

const LIMIT_FIELDS = {
  image: { member: "images", field: "images" },
  "service-account": { member: "serviceAccounts", field: "service_accounts" },
  toleration: { member: "tolerations", field: "tolerations" },
  "priority-class": { member: "priorityClasses", field: "priority_classes" },
  "node-selector": { member: "nodeSelectors", field: "node_selectors" },
} as const satisfies Readonly<Record<LimitKind, { readonly member: keyof PodPolicy; readonly field: string }>>;

const LIMIT_KINDS = Object.keys(LIMIT_FIELDS) as readonly LimitKind[];

/** The policy of a request. Throws INVALID_ARGUMENT that names every wrong entry. */
export function sentPodPolicy(message: PodPolicy): Policy {
  const level = (Object.keys(LEVELS) as readonly Level[]).find((name) => LEVELS[name] === message.level) ?? null;
  const outcome = readPolicy({ level, allow: message.allow, limits: sentLimits(message) });
  if (outcome.kind === "read") return outcome.policy;
  throw invalidFields(
    outcome.errors.map(({ path, message: text }): FieldNote => {
      const kind = LIMIT_KINDS.find((name) => path.startsWith(`${name}[`));
      const named = kind === undefined ? path : `${LIMIT_FIELDS[kind].field}.values${path.slice(kind.length)}`;
      return { field: `namespace.pod_policy.${named}`, message: text };
    }),
  );
}

function sentLimits(message: PodPolicy): PodLimits {
  const limits = LIMIT_KINDS.flatMap((kind) => {
    const limit: PodLimit | undefined = message[LIMIT_FIELDS[kind].member];
    return limit === undefined ? [] : [[kind, limit.values] as const];
  });
  return Object.fromEntries(limits);
}

export function toProtoPodPolicy({ level, allow, limits }: Policy): MessageInitShape<typeof PodPolicySchema> {
  const members = LIMIT_KINDS.flatMap((kind) => {
    const values = limits[kind];
    return values === undefined ? [] : [[LIMIT_FIELDS[kind].member, { values: [...values] }] as const];
  });
  return {
    level: level === null ? PodSecurityLevel.UNSPECIFIED : LEVELS[level],
    allow: [...allow],
    ...Object.fromEntries(members),
  };
}
