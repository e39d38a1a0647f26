import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ChangeOutcome } from "../../core/admin/change-outcome.ts";
import type {
  PriorityClassOutcome,
  PriorityClassRecord,
  PriorityClassSettings,
} from "../../core/admin/priority-class.ts";
import type { PreemptionPolicy } from "../../core/job/priority-class.ts";
import type { FieldNote } from "../../core/job/request/sent.ts";
import { PreemptionPolicy as SentPolicy } from "../../gen/gangway/v1/job_pb.ts";
import type {
  PriorityClass,
  PriorityClassSchema,
  PriorityClassService,
} from "../../gen/gangway/v1/priority_class_service_pb.ts";
import type { PriorityClasses } from "../ports.ts";
import { changedRecord, existingRecord } from "../rpc/admin-outcome.ts";
import type { ServiceHandlers } from "../rpc/handler.ts";
import { failedPrecondition, invalidFields } from "../rpc/rpc-error.ts";

const POLICY = {
  LOWER_PRIORITY: SentPolicy.LOWER_PRIORITY,
  NEVER: SentPolicy.NEVER,
} as const satisfies Readonly<Record<PreemptionPolicy, SentPolicy>>;

export function priorityClassService(classes: PriorityClasses): ServiceHandlers<typeof PriorityClassService> {
  return {
    createPriorityClass: async ({ priorityClass }, { identity }) => {
      const sent = sentClass(priorityClass);
      return { priorityClass: changed(await classes.create(sent, identity.subject), sent.name) };
    },
    getPriorityClass: async ({ name }) => ({
      priorityClass: toProtoClass(existingRecord(await classes.get(name), refOf(name))),
    }),
    listPriorityClasses: async () => ({ priorityClasses: (await classes.list()).map(toProtoClass) }),
    updatePriorityClass: async ({ priorityClass }, { identity }) => {
      const { name = "", description = "", globalDefault = false, resourceVersion = "" } = priorityClass ?? {};
      const change = {
        ...{ name, description, globalDefault, version: Number(resourceVersion) },
        value: priorityClass?.value ?? null,
        preemptionPolicy: policyOf(priorityClass?.preemptionPolicy),
      };
      return { priorityClass: changed(await classes.update(change, identity.subject), name) };
    },
    deletePriorityClass: async ({ name }, { identity }) => {
      changedRecord(await classes.remove(name, identity.subject), refOf(name));
      return {};
    },
  };
}

function refOf(name: string) {
  return { type: "priority class", name };
}

/** Unspecified: null. */
function policyOf(sent: SentPolicy | undefined): PreemptionPolicy | null {
  if (sent === SentPolicy.NEVER) return "NEVER";
  return sent === SentPolicy.LOWER_PRIORITY ? "LOWER_PRIORITY" : null;
}

function sentClass(sent: PriorityClass | undefined): PriorityClassSettings {
  const { name = "", value, description = "", globalDefault = false } = sent ?? {};
  if (value === undefined) throw invalidFields([{ field: "priority_class.value", message: "must be set" }]);
  return {
    name,
    value,
    description,
    globalDefault,
    preemptionPolicy: policyOf(sent?.preemptionPolicy) ?? "LOWER_PRIORITY",
  };
}

/** Returns the class after a change. Throws if it was refused. */
function changed(outcome: PriorityClassOutcome, name: string) {
  return toProtoClass(changedRecord(generalOutcome(outcome, name), refOf(name)));
}

/** Throws the outcomes that only priority classes have; returns the others. */
function generalOutcome(outcome: PriorityClassOutcome, name: string): ChangeOutcome<PriorityClassRecord> {
  if (outcome.kind === "otherDefault") {
    const description = `cannot be the default, because priority class ${outcome.name} is; update that one first`;
    throw failedPrecondition({ type: "DEFAULT_CLASS_EXISTS", subject: `priority class ${name}`, description });
  }
  if (outcome.kind === "fixed") throw invalidFields([fixedNote(outcome)]);
  return outcome;
}

function fixedNote({ field, is }: Extract<PriorityClassOutcome, { readonly kind: "fixed" }>): FieldNote {
  const name = field === "value" ? "value" : "preemption_policy";
  const message = `must be omitted or ${is}: it never changes, because jobs have copied it; make another class`;
  return { field: `priority_class.${name}`, message };
}

function toProtoClass(record: PriorityClassRecord): MessageInitShape<typeof PriorityClassSchema> {
  const { name, value, description, globalDefault } = record;
  return {
    ...{ name, value, description, globalDefault },
    preemptionPolicy: POLICY[record.preemptionPolicy],
    resourceVersion: String(record.version),
    createTime: timestampFromMs(record.createTimeMs),
    updateTime: timestampFromMs(record.updateTimeMs),
  };
}
