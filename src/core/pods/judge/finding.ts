import { NOTES_MAX } from "../../job/request/notes.ts";
import type { PodPlace } from "./place.ts";

/** The kinds of errors that Kubernetes has for a field, and `type`: its decoder refuses the value. */
export type FindingKind =
  | "type"
  | "required"
  | "invalid"
  | "unsupported"
  | "duplicate"
  | "notFound"
  | "forbidden"
  | "tooLong"
  | "tooMany";

/** Something in a pod that an API server refuses. */
export type Finding = {
  readonly kind: FindingKind;
  readonly place: PodPlace;
  /** Where Kubernetes reports it. Omitted: at `place`. */
  readonly field?: PodPlace;
  /** The value that is refused. Omitted: it is missing, or it does not matter. */
  readonly value?: unknown;
  /** The type of the object that holds a value of a wrong type. */
  readonly holder?: string;
  /** Kubernetes' words for what is allowed. Of a `type`: the type, as in `kubernetes-types`. */
  readonly detail: string;
  /** Gangway's words for what is allowed, such as `must be at most the limit`. Omitted: `detail`. */
  readonly allowed?: string;
};

/** Where a rule tells what it finds. */
export type Findings = {
  readonly add: (finding: Finding) => void;
};

/** The first hundred findings, and how many more there are. */
export type PodFindings = { readonly kept: readonly Finding[]; readonly more: number };

/** Keeps the first findings and counts the others: a template may have a hundred thousand. */
export class FindingList implements Findings {
  readonly kept: Finding[] = [];
  more = 0;

  add(finding: Finding): void {
    if (this.kept.length < NOTES_MAX) this.kept.push(finding);
    else this.more += 1;
  }
}
