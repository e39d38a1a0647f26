import type { CapacityReport } from "../../src/adapters/cluster/capacity-observer.ts";
import { type CapacityEntry, capacityOf, entryKeyText } from "../../src/core/plan/model/capacity-entry.ts";
import type { ClusterCapacity } from "../../src/core/plan/model/snapshot.ts";

/** A report, and the whole capacity after it. Null: none was reported yet. */
export type BookedReport = {
  readonly reachable: boolean;
  readonly capacity: ClusterCapacity | null;
  /** Why it cannot be used. Omitted: it is reachable. */
  readonly unusable?: string | null;
};

/** Takes the reports of one cluster, as the store does. */
export class CapacityBook {
  readonly reports: BookedReport[] = [];
  /** How many entries each report of a reachable cluster held. */
  readonly sizes: number[] = [];
  #epoch = 0;
  #entries: Map<string, CapacityEntry> | null = null;

  /** Returns the epoch of the complete report; null for changes that do not follow it. */
  async take(report: CapacityReport): Promise<number | null> {
    if (report.reachable) {
      if (report.since !== null && report.since !== this.#epoch) return null;
      if (report.since === null) this.#epoch += 1;
      const entries = report.since === null ? new Map<string, CapacityEntry>() : new Map(this.#entries);
      for (const { key, entry } of report.changes) {
        if (entry === null) entries.delete(entryKeyText(key));
        else entries.set(entryKeyText(key), entry);
      }
      this.#entries = entries;
      this.sizes.push(report.changes.length);
    }
    const capacity = this.#entries === null ? null : capacityOf(this.#entries.values());
    const unusable = report.reachable ? {} : { unusable: report.unusable };
    this.reports.push({ reachable: report.reachable, capacity, ...unusable });
    return this.#epoch;
  }
}
