import type { Admission } from "../job/status.ts";
import { isService, type Kind } from "../kinds/kind.ts";
import { cleanUp, settleAll } from "./clean-up.ts";
import type { Draft, Inputs } from "./draft.ts";
import { follow } from "./follow.ts";
import { forceLost } from "./force.ts";
import { serviceRunner } from "./service.ts";

/**
 * The three verbs of a plugin, as a decision makes use of them. Each derives from the record and from what is seen all that is still to be
 * done, so that deciding again what was recorded and carried out changes nothing.
 */
export type Runner = {
  /** Brings a live admission on. */
  readonly handle: (draft: Draft, inputs: Inputs, admission: Admission) => void;
  /** Ends what runs of admissions that are live no longer. */
  readonly abort: (draft: Draft, inputs: Inputs) => void;
  /** Gives back the tokens of such admissions once nothing of them runs, and notes which are gone. */
  readonly finalize: (draft: Draft, inputs: Inputs) => void;
};

/** Kinds of pods: their plugin is the reconcile of a gang, and their kind says how the gang's pods look and what they come to. */
const gangRunner: Runner = {
  handle: follow,
  abort: cleanUp,
  finalize: (draft, inputs) => {
    settleAll(draft, inputs);
    forceLost(draft, inputs);
  },
};

export function runnerOf(kind: Kind): Runner {
  return isService(kind) ? serviceRunner : gangRunner;
}
