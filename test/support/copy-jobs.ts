/** Makes many jobs in a database, as copies of the rows that the service wrote for one. */
import type { Db } from "../../src/adapters/store/db/db.ts";
import { bucketOf } from "../../src/core/job/bucket.ts";

/** So many jobs go into one statement. */
const ROWS = 5_000;

/**
 * Copies a job so often, with its admissions. The copies have names of their own and were made one millisecond after
 * the other, before the job itself.
 */
export async function copyJobs(
  db: Db,
  of: { readonly uid: string; readonly count: number; readonly prefix: string },
): Promise<void> {
  const jobs = await copyStatement(db, "jobs", {
    uid: "r.uid",
    bucket: "r.bucket",
    name: "r.name",
    create_ms: "t.create_ms - r.ago",
  });
  const admissions = await copyStatement(db, "admissions", { job_uid: "r.uid" });
  for (let made = 0; made < of.count; made += ROWS) {
    const numbers = Array.from({ length: Math.min(ROWS, of.count - made) }, (_, at) => made + at);
    const uids = numbers.map(() => newUid());
    const params = [
      uids,
      uids.map(bucketOf),
      numbers.map((number) => `${of.prefix}-${number}`),
      numbers.map((number) => of.count - number),
      of.uid,
    ];
    await db.query(jobs, params);
    await db.query(admissions, params);
  }
}

let made = 0;

function newUid(): string {
  made += 1;
  return `01900000-0000-7000-9000-${made.toString(16).padStart(12, "0")}`;
}

/** A statement that copies the rows of one job in a table: all columns but those that are given. */
async function copyStatement(db: Db, table: string, given: Readonly<Record<string, string>>): Promise<string> {
  const columns = (await db.query<{ name: string }>(COLUMNS, [table])).map(({ name }) => name);
  const values = columns.map((name) => given[name] ?? `t.${name}`);
  const uid = table === "jobs" ? "uid" : "job_uid";
  return `
insert into ${table} (${columns.join(", ")})
select ${values.join(", ")}
  from unnest($1::uuid[], $2::smallint[], $3::text[], $4::bigint[]) as r (uid, bucket, name, ago)
 cross join ${table} t
 where t.${uid} = $5::uuid`;
}

const COLUMNS = `
select column_name as name from information_schema.columns
 where table_schema = current_schema() and table_name = $1 and is_generated = 'NEVER' and identity_generation is null`;
