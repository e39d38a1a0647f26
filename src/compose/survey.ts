/** Surveys the whole fleet for the metrics of one process: see `core/admin/fleet-survey`. */
import { SURVEY_LEASE } from "../adapters/store/fleet/leases.ts";
import { type FleetSurvey, surveyOf } from "../core/admin/fleet-survey.ts";
import { linkedController } from "../runtime/linked-controller.ts";
import { type Base, runLoops } from "./base.ts";

/** In a fleet of usual size a survey is at most this old. */
const SURVEY_MS = 5_000;
/** After a survey that took long, the database has so many times as long without one. */
const REST_TIMES = 20;

/**
 * Surveys the fleet while this process holds the lease for it. Of the processes that keep metrics one does so: the
 * others show no such gauges, and neither does one that has lost the lease or does not reach the database.
 */
export function startSurvey({ clock, store, telemetry, instrumentation, member, parts }: Base): void {
  const { showSurvey } = instrumentation;
  if (showSurvey === null) return;
  let wake = () => {};
  const lease = member.lease(SURVEY_LEASE, () => wake());
  let latest: { readonly epoch: number; readonly survey: FleetSurvey } | null = null;
  showSurvey(() => (latest !== null && latest.epoch === lease.epoch() ? latest.survey : null));

  async function look(): Promise<void> {
    const epoch = lease.epoch();
    if (epoch === null) return;
    const { queues, clusters, jobs } = store.survey;
    latest = { epoch, survey: surveyOf({ queues: await queues(), clusters: await clusters(), jobs: await jobs() }) };
  }

  runLoops(parts, async (signal) => {
    while (!signal.aborted) {
      using pause = linkedController(signal);
      wake = () => pause.abort("taken");
      const startedMs = clock.monotonicMs();
      await look().catch((error: unknown) => {
        latest = null;
        telemetry.loopFailed({ loop: "survey", error });
      });
      const tookMs = clock.monotonicMs() - startedMs;
      await clock.sleep(Math.max(SURVEY_MS, REST_TIMES * tookMs), pause.signal);
    }
  });
}
