/**
 * The reason of an event or a condition of a job, such as `PyTorchJobRunning`. Reasons are words in CamelCase, so that
 * the version and the group in the name of a kind stay out: those of `Job.v1.batch` begin with `Job`.
 */
export function reasonFor(kind: string, what: string): string {
  const dot = kind.indexOf(".");
  return `${dot < 0 ? kind : kind.slice(0, dot)}${what}`;
}
