import type { JsonObject } from "../../../runtime/json.ts";
import type { SentSpec } from "../../job/request/sent.ts";
import type { SentMetadata } from "./sent-manifest.ts";
import type { SentReader } from "./sent-reader.ts";

/** What the reading of a manifest asks about the installation. */
export type ManifestFacts = {
  /** The spec of a training runtime. Null: there is none. */
  readonly runtimeOf: (ref: { readonly kind: string; readonly name: string }) => JsonObject | null;
};

/**
 * Reads the spec of a manifest in the kind's own form. Names every wrong member to the reader, sets no defaults, and
 * never throws. `sources`: by member of the spec in Gangway's form, such as `replicaSpecs.Worker.template`, the member
 * of the manifest that has its value, such as `spec.template`.
 */
export type ReadSpec = (
  reader: SentReader,
  spec: JsonObject,
  metadata: SentMetadata,
  known: ManifestFacts,
) => { readonly spec: Omit<SentSpec, "kind">; readonly sources: ReadonlyMap<string, string> };
