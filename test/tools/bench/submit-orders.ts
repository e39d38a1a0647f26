import type { SelfTime } from "./measure.ts";

/** The orders of the bench to its server, and the results. */
export type Order =
  /** The floors insert copies of this job's row from now on. */
  | { readonly kind: "row"; readonly name: string }
  | { readonly kind: "insert"; readonly rows: number; readonly perTransaction: number }
  /** Copies the row of a job so often. */
  | { readonly kind: "copy"; readonly name: string; readonly count: number; readonly prefix: string }
  | { readonly kind: "queue"; readonly name: string }
  /** Ends all jobs of the namespace. */
  | { readonly kind: "finish"; readonly namespace: string }
  | { readonly kind: "analyze" | "count" | "cpu" | "profile" | "profiled" | "end" };
export type Answer =
  | { readonly kind: "ready"; readonly api: string; readonly echo: string }
  | { readonly kind: "inserted"; readonly perSecond: number }
  /** The number of jobs. */
  | { readonly kind: "counted"; readonly jobs: number }
  /** CPU time so far. Null: the database is embedded, so its time is the service's. */
  | { readonly kind: "cpu"; readonly serviceMs: number; readonly postgresMs: number | null }
  | { readonly kind: "profile"; readonly times: readonly SelfTime[] }
  | { readonly kind: "done" };

export const ECHO = "/bench.Echo/Echo";
/** An echo that first inserts one row like that of the job, durably. */
export const INSERT = "/bench.Echo/Insert";
/** Answers so many bytes as the request's first four tell. */
export const SIZED = "/bench.Echo/Sized";
