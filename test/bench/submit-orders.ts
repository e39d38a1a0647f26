import type { SelfTime } from "./measure.ts";

/** The orders of the bench to its server, and the results. */
export type Order =
  | { readonly kind: "insert"; readonly rows: number; readonly bytes: number; readonly perTransaction: number }
  | { readonly kind: "profile" | "profiled" | "end" };
export type Answer =
  | { readonly kind: "ready"; readonly api: string; readonly echo: string }
  | { readonly kind: "inserted"; readonly perSecond: number }
  | { readonly kind: "profile"; readonly times: readonly SelfTime[] }
  | { readonly kind: "done" };

export const ECHO = "/bench.Echo/Echo";
/** An echo that first inserts one row as large as the message, durably. */
export const INSERT = "/bench.Echo/Insert";
