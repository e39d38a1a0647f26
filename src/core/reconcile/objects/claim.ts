import { hasLabels } from "../../job/labels.ts";
import type { ObjectView } from "../observed.ts";
import { hasFenceOf } from "./object-fences.ts";

/** The fields of an object that a claim reads. */
export type Claimable = Pick<ObjectView, "name" | "uid" | "labels" | "controllerUid" | "deleting">;

/** The claimant: an admission, represented by its anchor. */
export type Claimant = {
  readonly anchor: { readonly uid: string; readonly deleting: boolean };
  /** The labels of every object of the admission. The job's uid and the admission's number are among them. */
  readonly selector: Readonly<Record<string, string>>;
  /** The fence of the admission: an object that names one names this. Omitted: it has none. */
  readonly fence?: string | undefined;
};

/** True if the labels of an object are those of the claimant's objects. */
export function isSelected(object: Pick<Claimable, "labels">, claimant: Pick<Claimant, "selector" | "fence">): boolean {
  return hasLabels(object.labels, claimant.selector) && hasFenceOf(claimant, object);
}

/**
 * `owned`: it is ours. `adopt`: it has our labels and no controller. `release`: we control it, but its labels were
 * changed to take it out of the job. `leave`: it is not ours, or it is being deleted.
 */
export type ClaimVerdict = "owned" | "adopt" | "release" | "leave";

/** One change of an object's owner. Only the object with that uid is changed, never a later one of the same name. */
export type ClaimAction = {
  readonly cluster: string;
  readonly namespace: string;
  readonly kind: "adopt" | "release";
  readonly object: "pod" | "service";
  readonly name: string;
  readonly uid: string;
  readonly anchor: { readonly name: string; readonly uid: string };
};

/**
 * Whether an object belongs to an admission. The controller decides before the labels do. An anchor that is being
 * deleted neither adopts nor releases: an object that was taken out of the job is then deleted with the anchor. Source:
 * Kubernetes' `BaseControllerRefManager.ClaimObject`.
 */
export function claimVerdict(object: Claimable, claimant: Claimant): ClaimVerdict {
  const { anchor } = claimant;
  const matches = isSelected(object, claimant);
  if (object.controllerUid !== null) {
    if (object.controllerUid !== anchor.uid) return "leave";
    if (matches) return "owned";
    return anchor.deleting ? "leave" : "release";
  }
  return matches && !anchor.deleting && !object.deleting ? "adopt" : "leave";
}
