import type { JsonObject } from "../../../runtime/json.ts";
import type { Allowance } from "./allowances.ts";

/** The levels of Kubernetes' Pod Security Standards, from the one that allows most. */
export const POD_SECURITY_LEVELS = ["privileged", "baseline", "restricted"] as const;
export type PodSecurityLevel = (typeof POD_SECURITY_LEVELS)[number];

/** A need of a pod beyond a control, with its place and the allowance that grants it. */
export type PodNeed = {
  /** The path of the field, from the template. */
  readonly path: string;
  /** Says how the field breaks the control: `adds the capability SYS_ADMIN`. */
  readonly what: string;
  readonly needs: Allowance;
};

/** The parts of a pod that a control reads. */
export type JudgedPod = { readonly annotations: JsonObject; readonly spec: JsonObject };

/** A control finds what a pod needs beyond it. */
export type Control = {
  /** Its name in Kubernetes, which admission errors of clusters show too. Rules of Gangway have names of their own. */
  readonly id: string;
  /** The most permissive level that has the control. */
  readonly level: Exclude<PodSecurityLevel, "privileged">;
  /**
   * `set`: judges values that a template sets. `missing`: judges values that a template lacks; the platform can give
   * them.
   */
  readonly judges: "set" | "missing";
  readonly check: (pod: JudgedPod) => readonly PodNeed[];
};
