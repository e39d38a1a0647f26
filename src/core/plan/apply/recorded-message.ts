import type { Refusal } from "../model/plan-types.ts";

/** Where a message lists the jobs that are preempted, up to its end. */
const VICTIMS = /(preempted for it have ended): .*$/s;

/**
 * The message of a refusal as a job's record keeps it. The record changes when the reason does, and holders come and go
 * meanwhile: so it names none of them. Explanations name those of their own moment.
 */
export function recordedMessage({ message, quotas }: Pick<Refusal, "message" | "quotas">): string {
  const moving = quotas.flatMap(({ heldBy }): [string, string][] => {
    const names = heldBy.join(", ");
    return names === ""
      ? []
      : [
          [` (held by ${names})`, ""],
          [` for ${names}`, " for others"],
        ];
  });
  return moving.reduce((text, [from, to]) => text.replaceAll(from, () => to), message).replace(VICTIMS, "$1");
}
