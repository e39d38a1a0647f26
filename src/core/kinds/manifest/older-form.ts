/** Reads manifests in the form of an earlier operator. It serves users who keep manifests of retired kinds. */
import { canonicalJson, isJsonObject, type Json, type JsonObject, objectAt } from "../../../runtime/json.ts";
import type { Kind, OlderForm } from "../kind.ts";
import type { SentReader } from "./sent-reader.ts";

/**
 * The spec in the kind's form of today. The only replica type gets its name, and members of the kind spec their present
 * names. Pods restart as their template says, since that operator had no policy of its own.
 */
export function inTodaysForm(
  reader: SentReader,
  spec: JsonObject,
  { older, kind }: { readonly older: OlderForm; readonly kind: Pick<Kind, "replicaSpecsField"> },
): JsonObject {
  const { replicaSpecField, role, defaults } = older;
  const { [replicaSpecField]: sent, ...rest } = spec;
  const replica =
    reader.object(sent, `spec.${replicaSpecField}`) ?? reader.fail(`spec.${replicaSpecField}`, "is required");
  return {
    ...defaults,
    ...spelledAsToday(reader, rest, older),
    [kind.replicaSpecsField]: { [role]: withRestartPolicy(isJsonObject(replica) ? replica : {}) },
  };
}

function withRestartPolicy(replica: JsonObject): JsonObject {
  const { restartPolicy } = objectAt(objectAt(replica, "template"), "spec");
  return restartPolicy === undefined ? replica : { restartPolicy, ...replica };
}

/** The members of a kind spec under their present names. Fails if two spellings of one have different values. */
function spelledAsToday(reader: SentReader, spec: JsonObject, { spellings }: OlderForm): JsonObject {
  const spelled: Record<string, Json | undefined> = {};
  for (const [member, value] of Object.entries(spec)) {
    const today = spellings[member] ?? member;
    const present = spelled[today];
    if (present !== undefined && canonicalJson(present) !== canonicalJson(value)) {
      reader.fail(`spec.${member}`, `must be omitted, or equal to the other spelling of ${today}`);
    }
    spelled[today] = value;
  }
  return spelled;
}
