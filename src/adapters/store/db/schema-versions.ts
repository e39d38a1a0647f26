/**
 * The versions of the schema, oldest first, and the migrations that each of them added.
 *
 * Admins need `gangway migrate` to work on every database that some release or development version has migrated.
 * Programs need to tell a schema's version, also one that a later program made. Hence these rules for a new migration;
 * `test/store/db/migration-files.test.ts` checks them:
 *
 * 1. The number of its file is one above the highest number so far. No two new files share a number.
 * 2. This table lists it: under the newest version if no release has that version yet, else under a new version.
 *    A version may have several migrations; its number says nothing about theirs.
 * 3. Its last statement records the version in the database, in the transaction of the migration:
 *    `comment on table migrations is 'schema version 4';`
 * 4. It only adds, since programs of the version before still run on the schema. See `schema.ts`.
 * 5. Once a release has it, it never changes.
 *
 * The migrations of versions 1 to 3 are older than these rules. They share numbers and record no version: a database
 * without a record has the version of the newest migration that this table knows. For a migration that the table does
 * not know, such a database has the version that the migration's number says. Programs that are older than these rules
 * read every version from that number.
 *
 * Several files with number 0003 were made in parallel, so databases exist that ran any part of them. These files do
 * not depend on each other. Hence the runner must not insist on the order of the files.
 */
import { maxOf } from "../../../runtime/lists.ts";
export const SCHEMA_VERSIONS: SchemaVersions = [
  ["0001_init"],
  ["0002_cluster_credentials", "0002_counters-holder", "0002_members", "0002_trace-parent"],
  [
    "0003_cached-results",
    "0003_gang-scheduler",
    "0003_resource-manager",
    "0003_shrunk-tokens",
    "0003_suspended",
    "0003_token-tombstones",
  ],
  ["0004_pod-policy", "0005_job-outlines"],
  [
    "0006_cluster-capacity",
    "0007_cluster-uids",
    "0008_asks",
    "0009_simulated-clusters",
    "0010_robot_tokens",
    "0011_refusals-in-line",
    "0012_queue-stop",
    "0013_running-jobs",
    "0014_queue-policy",
    "0015_priority-classes",
    "0016_token-heirs",
    "0017_access",
    "0018_waiting-jobs",
    "0019_freezes",
    "0020_audit",
    "0021_queue-preemptions",
    "0022_listed-jobs",
    "0023_quota-grants",
    "0024_tenant-limits",
    "0025_ended-holders",
    "0026_jobs-by-phase",
    "0027_flavor-labels",
    "0028_listed-statistics",
    "0029_audit-partitions",
    "0030_robot-scopes",
    "0031_pruning",
    "0032_decision-clock",
    "0033_log-incarnation",
    "0034_set-aside",
    "0035_admission-details",
    "0036_silent-clusters",
    "0037_failure_logs",
    "0038_placements",
    "0039_topology",
    "0040_unusable-clusters",
    "0041_admission-fences",
    "0042_lost-clusters",
    "0043_cluster-moves",
    "0044_queue-losses",
    "0045_cluster-adoption",
    "0046_training-runtimes",
    "0047_job-filters",
    "0048_console-sessions",
    "0049_session-claims",
  ],
];

/** The names of the migrations of version 1, of version 2, and so on. */
export type SchemaVersions = readonly (readonly string[])[];

/** The part of a database that tells the version of its schema. */
export type AppliedSchema = {
  /** The names of the migrations that ran, in their order; empty without a schema. */
  readonly applied: readonly string[];
  /** The version that the newest migration recorded; null if none recorded one. */
  readonly recordedVersion: number | null;
};

/** The version of a database's schema; 0 for an empty database. */
export function versionOf({ applied, recordedVersion }: AppliedSchema, versions: SchemaVersions): number {
  const known = new Map(versions.flatMap((names, at) => names.map((name) => [name, at + 1] as const)));
  const unknown = (name: string) => (recordedVersion === null ? Number.parseInt(name, 10) || 0 : 0);
  return maxOf(
    applied.map((name) => known.get(name) ?? unknown(name)),
    Math.max(0, recordedVersion ?? 0),
  );
}

/** The version in the comment on the table of migrations; null without one. */
export function readRecord(comment: string | null): number | null {
  const digits = /^schema version (\d+)$/.exec(comment ?? "")?.[1];
  return digits === undefined ? null : Number(digits);
}
