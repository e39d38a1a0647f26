/** What the query of the page's address asks of the list of jobs. */
import { filterFields } from "../../../../src/cli/jobs/filter-fields.ts";
import { OWNER_ME, readFilterText } from "../../../../src/core/job/request/filter-text.ts";

export type JobsSearch = {
  /** A filter as people write it, such as `phase:waiting queue:nlp+`. */
  readonly q: string;
  /** A word of `ORDERS`. */
  readonly sort: string;
};

export const PRESETS: readonly (JobsSearch & { readonly label: string })[] = [
  { label: "All", q: "", sort: "" },
  { label: "Mine", q: "owner:me", sort: "" },
  { label: "Waiting longest", q: "phase:waiting", sort: "waiting" },
  { label: "Starting", q: "phase:admitted,starting,restarting", sort: "" },
  { label: "Running", q: "phase:running", sort: "" },
  { label: "Failed 24 h", q: "phase:failed ended:<24h", sort: "ended" },
];

/** The orders that the service has, by the word in the address. */
export const ORDERS: Readonly<Record<string, { readonly label: string; readonly orderBy: string }>> = {
  "": { label: "Newest first", orderBy: "create_time desc" },
  oldest: { label: "Oldest first", orderBy: "create_time" },
  waiting: { label: "Waiting longest first", orderBy: "wait_since" },
  ended: { label: "Last ended first", orderBy: "complete_time desc" },
  priority: { label: "Highest priority first", orderBy: "priority desc" },
  held: { label: "Most GPUs first", orderBy: "held desc" },
  name: { label: "By name", orderBy: "name" },
};

export function readSearch(search: URLSearchParams): JobsSearch {
  return { q: search.get("q") ?? "", sort: search.get("sort") ?? "" };
}

/** True if the name of the caller must be known to make the request. */
export function needsOwnName({ q }: JobsSearch): boolean {
  const read = readFilterText(q, 0);
  return read.kind === "filter" && read.filter.createdBy?.includes(OWNER_ME) === true;
}

export type JobsRequest = {
  readonly filter: ReturnType<typeof filterFields>;
  readonly orderBy: string;
  /** The namespace of all jobs that can pass. Empty: there may be several. */
  readonly namespace: string;
};

/** The request for the jobs of a search, or what is wrong with the search. */
export function requestOf({ q, sort }: JobsSearch, nowMs: number, me: string): JobsRequest | string {
  const order = Object.hasOwn(ORDERS, sort) ? ORDERS[sort] : undefined;
  const orders = Object.keys(ORDERS).filter((word) => word !== "");
  if (order === undefined) return `there is no order ${sort}: use one of ${orders.join(", ")}`;
  const read = readFilterText(q, nowMs);
  if (read.kind === "wrong") return read.problem;
  const [namespace = "", ...others] = read.filter.namespaces ?? [];
  return {
    filter: filterFields(read.filter, me),
    orderBy: order.orderBy,
    namespace: others.length > 0 ? "" : namespace,
  };
}
