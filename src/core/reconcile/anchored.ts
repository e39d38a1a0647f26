import { LABEL } from "../job/labels.ts";
import type { ConfigMapView, ObjectView, ObservedCluster } from "./decision.ts";

/** The config maps of one admission. */
export type AnchoredMaps = {
  /** The one that owns everything else of the admission; one that is not on its way out comes first. */
  readonly anchor: ObjectView | null;
  /** Those that the kind made. */
  readonly parts: readonly ConfigMapView[];
};

/** Tells an admission's anchor from what its kind made: the label of parts is on the latter alone. */
export function anchoredMaps(seen: ObservedCluster | undefined, admission: number): AnchoredMaps {
  const maps = (seen?.configMaps ?? []).filter((map) => map.admission === admission);
  const anchors = maps.filter(({ labels }) => labels[LABEL.part] === undefined);
  const anchor = anchors.find(({ deleting }) => !deleting) ?? anchors[0] ?? null;
  const parts = maps.filter((map) => map.labels[LABEL.part] !== undefined && belongsTo(map, anchor));
  return { anchor, parts };
}

/**
 * True if an object belongs to an admission of the job. An object without a controller is taken for ours by its labels, and so is one whose
 * controller cannot be compared because the anchor is not seen.
 */
export function belongsTo(
  object: { readonly labels: Readonly<Record<string, string>>; readonly controllerUid: string | null },
  anchor: ObjectView | null,
): boolean {
  return anchor === null || object.controllerUid === null || object.controllerUid === anchor.uid;
}
