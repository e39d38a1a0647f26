import type { SentJob } from "../../../../src/core/job/request/sent.ts";
import { fromManifest } from "../../../../src/core/kinds/manifest/from-manifest.ts";
import type { ManifestFacts } from "../../../../src/core/kinds/manifest/read-spec.ts";
import { checkSpec } from "../../../../src/intake/check-spec.ts";
import { readManifest } from "../../../../src/manifest/read-manifest.ts";
import type { JsonObject } from "../../../../src/runtime/json.ts";
import { objectAt } from "../../../../src/runtime/json.ts";
import { OWN_KINDS } from "../../../support/kinds.ts";

type Submitted =
  | { readonly kind: "accepted"; readonly sent: SentJob }
  | { readonly kind: "refused"; readonly fields: readonly string[] };

/** Submits a manifest. A suspended one stays so, as the controllers of the cases knew no queues. */
export function submit(
  manifest: JsonObject,
  namespace: string,
  runtimeOf: ManifestFacts["runtimeOf"] = () => null,
): Submitted {
  const suspended = objectAt(manifest, "spec")["suspend"] === true;
  const options = { kinds: OWN_KINDS, namespace: { name: namespace, isExplicit: false }, suspended, runtimeOf };
  const read = readManifest(manifest, options);
  if (read.kind === "invalid") return { kind: "refused", fields: read.errors.map(({ field }) => field) };
  const outcome = fromManifest(manifest, OWN_KINDS, { suspended, runtimeOf });
  if (outcome.kind === "refused") return { kind: "refused", fields: outcome.errors.map(({ path }) => path) };
  const { metadata, spec } = outcome.manifest;
  const { name = "", generateName = "", labels = {}, annotations = {} } = metadata;
  const sent: SentJob = { namespace, name, generateName, labels, annotations, spec };
  const notes = checkSpec(sent, OWN_KINDS);
  if (notes.length === 0) return { kind: "accepted", sent };
  return { kind: "refused", fields: notes.map(({ field }) => read.spelled(field)) };
}
