import { LABEL } from "../../job/labels.ts";
import type { ConfigMapView, ObjectView, ObservedCluster } from "../observed.ts";

/** The config maps of one admission. */
type AnchoredMaps = {
  /** The config map that owns all other objects of the admission. One that is not being deleted is preferred. */
  readonly anchor: ObjectView | null;
  /** The config maps that the kind made. */
  readonly parts: readonly ConfigMapView[];
};

/**
 * Separates an admission's anchor from the config maps that its kind made. Only the latter carry the label of parts.
 */
export function anchoredMaps(seen: ObservedCluster | undefined, admission: number): AnchoredMaps {
  const maps = (seen?.configMaps ?? []).filter((map) => map.admission === admission);
  const anchors = maps.filter(({ labels }) => labels[LABEL.part] === undefined);
  const anchor = anchors.find(({ deleting }) => !deleting) ?? anchors[0] ?? null;
  const parts = maps.filter((map) => map.labels[LABEL.part] !== undefined && belongsTo(map, anchor));
  return { anchor, parts };
}

/**
 * True if an object with the labels of an admission belongs to it. An object without a controller belongs to it, and so
 * does one whose controller cannot be compared because the anchor is not seen.
 */
export function belongsTo(
  object: { readonly labels: Readonly<Record<string, string>>; readonly controllerUid: string | null },
  anchor: ObjectView | null,
): boolean {
  return anchor === null || object.controllerUid === null || object.controllerUid === anchor.uid;
}
