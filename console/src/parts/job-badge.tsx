/** The phase of a job, by its word and a colour. */
import { toneOf } from "./job-summary.ts";

export function PhaseBadge({ phase }: { readonly phase: string }) {
  return <span className={`phase tone-${toneOf(phase)}`}>{phase.toLowerCase()}</span>;
}
