/** Finds the members of a manifest that Gangway does not use, and says where they belong. */

import type { FieldNote } from "../core/job/request/sent.ts";
import type { Kind } from "../core/kinds/kind.ts";
import { OWN_SPEC_FIELDS, RUN_POLICY_FIELDS } from "../core/kinds/manifest/from-manifest.ts";
import { nameHelp } from "../core/pods/nearest-name.ts";
import { type JsonObject, objectAt } from "../runtime/json.ts";

const MEMBERS = ["apiVersion", "kind", "metadata", "spec"];
const METADATA = ["name", "generateName", "namespace", "labels", "annotations"];
/** Members of a job, and of its metadata, that only the service sets. */
const RETURNED = ["status", "project", "uid", "resourceVersion", "createTime", "deleteTime", "createdBy"];
/** Of a name in a message. */
const NAME_SHOWN_MAX = 80;

/** The form of a manifest: Gangway's own, or that of a kind of another system. */
type ManifestForm = { readonly isForeign: boolean; readonly kind: Kind | undefined };

/**
 * Warns of members of a manifest and of its metadata that the job does not use, except those that the API returns:
 * `gangway get -o yaml` has them. Null is no value: kubectl writes `creationTimestamp: null` into manifests that it
 * makes. Members of the spec are read by `fromManifest`.
 */
export function ignoredMembers(document: JsonObject, form: ManifestForm): readonly FieldNote[] {
  const returned = form.isForeign ? [] : RETURNED;
  const help = nameHelp();
  const parts = [
    { path: "", object: document, known: MEMBERS },
    { path: "metadata", object: objectAt(document, "metadata"), known: METADATA },
  ];
  return parts.flatMap(({ path, object, known }) => {
    const others = Object.keys(object).filter(
      (name) => object[name] !== null && ![...known, ...returned].includes(name),
    );
    return others.map((name) => {
      const place = placeOf(name, form);
      const message =
        place === null || place === path ? misspelt(help(name, known)) : `is ignored: it belongs below ${place}`;
      const shown = name.slice(0, NAME_SHOWN_MAX);
      return { field: path === "" ? shown : `${path}.${shown}`, message };
    });
  });
}

function misspelt(meant: string | null): string {
  return meant === null ? "is ignored" : `is ignored: did you mean ${meant}?`;
}

/** The part of a manifest that has a member of this name. Null: none has. */
function placeOf(name: string, { isForeign, kind }: ManifestForm): string | null {
  const ofKind = Object.keys(objectAt(kind?.kindSpecSchema, "properties"));
  const ofSpec = isForeign ? [kind?.replicaSpecsField, "runPolicy", ...ofKind] : OWN_SPEC_FIELDS;
  if (name !== "kind" && ofSpec.includes(name)) return "spec";
  if (RUN_POLICY_FIELDS.includes(name)) return "spec.runPolicy";
  if (METADATA.includes(name)) return "metadata";
  return !isForeign && ofKind.includes(name) ? "spec.kindSpec" : null;
}
