import type { ObjectView } from "./decision.ts";

/** What a claim reads of an object. */
export type Claimable = Pick<ObjectView, "name" | "uid" | "labels" | "controllerUid" | "deleting">;

/** Who claims: an admission by its anchor. */
export type Claimant = {
  readonly anchor: { readonly uid: string; readonly deleting: boolean };
  /** The labels that whatever belongs to the admission carries: its job's uid and its number are among them. */
  readonly selector: Readonly<Record<string, string>>;
};

/**
 * `owned`: ours. `adopt`: ours for the taking. `release`: controlled by us, and its labels say that somebody has taken it out.
 * `leave`: not ours, or on its way out.
 */
export type ClaimVerdict = "owned" | "adopt" | "release" | "leave";

/** One change of an object's owner. Only the object of that uid is changed, never its successor of the same name. */
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
 * Whether an object belongs to an admission. A controller decides before labels do, and an anchor that is being deleted neither takes nor
 * gives: what was taken out of it is left to go with it. Source: Kubernetes' `BaseControllerRefManager.ClaimObject`.
 */
export function claimVerdict(object: Claimable, { anchor, selector }: Claimant): ClaimVerdict {
  const matches = Object.entries(selector).every(([label, value]) => object.labels[label] === value);
  if (object.controllerUid !== null) {
    if (object.controllerUid !== anchor.uid) return "leave";
    if (matches) return "owned";
    return anchor.deleting ? "leave" : "release";
  }
  return matches && !anchor.deleting && !object.deleting ? "adopt" : "leave";
}
