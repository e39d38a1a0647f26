import type { Db } from "../../src/adapters/store/db/db.ts";
import { planSnapshot } from "../../src/adapters/store/planning/plan-snapshot.ts";
import { refreshGangs } from "../../src/adapters/store/planning/refresh-gangs.ts";
import type { Registry } from "../../src/core/kinds/registry.ts";
import type { PlanSnapshot } from "../../src/core/plan/snapshot.ts";
import { OWN_KINDS } from "./kinds.ts";

/** Everything that a plan depends on, as the database has it now. */
export async function snapshotOf(db: Db, kinds: Registry = OWN_KINDS): Promise<PlanSnapshot> {
  await refreshGangs(db, kinds);
  return planSnapshot(db, { kinds, asks: new Map() });
}
