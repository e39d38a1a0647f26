/** What the query of the page's address asks of the list of jobs. */
import { JobPhase } from "../../../../src/gen/gangway/v1/job_pb.ts";

export type JobsSearch = {
  readonly phase: string;
  readonly queue: string;
  readonly namespace: string;
  readonly name: string;
  readonly sort: string;
};

export const PRESETS = [
  { label: "All", phase: "" },
  { label: "Waiting", phase: "waiting" },
  { label: "Starting", phase: "admitted,starting,restarting" },
  { label: "Running", phase: "running" },
  { label: "Failed", phase: "failed" },
] as const;

/** The orders that the service has, by the word in the address. */
export const ORDERS: Readonly<Record<string, { readonly label: string; readonly orderBy: string }>> = {
  "": { label: "Newest first", orderBy: "create_time desc" },
  oldest: { label: "Oldest first", orderBy: "create_time" },
  priority: { label: "Highest priority first", orderBy: "priority desc" },
  name: { label: "By name", orderBy: "name" },
};

export function readSearch(search: URLSearchParams): JobsSearch {
  const at = (name: string) => search.get(name) ?? "";
  return { phase: at("phase"), queue: at("queue"), namespace: at("namespace"), name: at("name"), sort: at("sort") };
}

/** The request for the jobs of a search. Throws an error that names a word which the service does not know. */
export function requestOf({ phase, queue, namespace, name, sort }: JobsSearch) {
  const order = ORDERS[sort];
  if (order === undefined)
    throw new Error(`there is no order ${sort}: use ${Object.keys(ORDERS).filter(Boolean).join(", ")}`);
  const names = name === "" ? [] : [name];
  const phases = phase === "" ? [] : phase.split(",").map(phaseOf);
  return { filter: { namespace, names, queue, phases }, orderBy: order.orderBy };
}

function phaseOf(word: string): JobPhase {
  const phase = JobPhase[word.toUpperCase() as keyof typeof JobPhase];
  if (phase !== undefined && phase !== JobPhase.UNSPECIFIED) return phase;
  const words = Object.keys(JobPhase).filter((name) => name !== "UNSPECIFIED" && Number.isNaN(Number(name)));
  throw new Error(`there is no phase ${word}: use ${words.join(", ").toLowerCase()}`);
}
