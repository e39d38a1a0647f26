/** Shows a survey of the fleet as gauges. */
import type { FleetSurvey } from "../core/admin/fleet-survey.ts";
import { boundedReadings } from "./bounded-labels.ts";
import type { GaugeReading, Meter, MetricKey } from "./metrics.ts";

/**
 * A gauge by queue and flavor, or by cluster and flavor, has so many series at most. Those beyond are summed by flavor:
 * there are at most `GANGWAY_POOLS_MAX` flavors.
 */
export const FLAVOR_SERIES_MAX = 2_000;
/** More than there are phases and reasons. */
const JOB_SERIES_MAX = 200;

type Rows = { readonly [Part in keyof FleetSurvey]: FleetSurvey[Part][number] };

/** Reads the survey at every scrape. Null: this process does not survey the fleet, and shows none of these gauges. */
export function showSurvey(meter: Pick<Meter, "read">, survey: () => FleetSurvey | null): void {
  const show = <Part extends keyof FleetSurvey>(
    part: Part,
    bound: { readonly label: string; readonly most: number },
    gauges: Partial<Record<MetricKey, (row: Rows[Part]) => GaugeReading>>,
  ) => {
    for (const [metric, reading] of Object.entries(gauges)) {
      meter.read(metric as MetricKey, () =>
        boundedReadings(((survey()?.[part] ?? []) as readonly Rows[Part][]).map(reading), bound),
      );
    }
  };
  const ofQueue = ({ queue, flavor }: Rows["queues"]) => ({ queue, flavor });
  show(
    "queues",
    { label: "queue", most: FLAVOR_SERIES_MAX },
    {
      queueUsed: (row) => ({ value: row.used, labels: ofQueue(row) }),
      queueNominal: (row) => ({ value: row.nominal, labels: ofQueue(row) }),
      queueBorrowed: (row) => ({ value: row.borrowed, labels: ofQueue(row) }),
    },
  );
  show(
    "clusters",
    { label: "cluster", most: FLAVOR_SERIES_MAX },
    { clusterState: ({ cluster, state, isIn }) => ({ value: isIn ? 1 : 0, labels: { cluster, state } }) },
  );
  const ofCluster = ({ cluster, flavor }: Rows["flavors"]) => ({ cluster, flavor });
  show(
    "flavors",
    { label: "cluster", most: FLAVOR_SERIES_MAX },
    {
      flavorAllocatable: (row) => ({ value: row.allocatable, labels: ofCluster(row) }),
      flavorFree: (row) => ({ value: row.free, labels: ofCluster(row) }),
    },
  );
  show(
    "jobs",
    { label: "reason", most: JOB_SERIES_MAX },
    {
      jobs: ({ phase, reason, jobs }) => ({ value: jobs, labels: { phase, reason } }),
    },
  );
}
