/** Rows like that of a job, in a table that has no index but its key: what a database at least writes for a job. */
import type { Db } from "../../../src/adapters/store/db/db.ts";

export type BareRows = {
  /** Inserts one row durably. */
  readonly insert: () => Promise<unknown>;
  /** Inserts so many rows in one transaction. */
  readonly insertMany: (count: number) => Promise<unknown>;
};

type Column = { readonly name: string; readonly type: string };

/** Makes the table. Its rows are those of the job of this name, with uids of their own. */
export async function bareRows(db: Db, job: string): Promise<BareRows> {
  await db.query("create table bench_rows (like jobs including defaults, primary key (uid))");
  const columns = await db.query<Column>(COLUMNS);
  const texts = columns.map(({ name }) => `${name}::text as ${name}`);
  const [row = {}] = await db.query<Record<string, string | null>>(
    `select ${texts.join(", ")} from jobs where name = $1`,
    [job],
  );
  const names = columns.map(({ name }) => name).join(", ");
  const casts = columns.map(({ type }, at) => `$${at + 1}::text::${type}`);
  const one = `insert into bench_rows (${names}) values (${casts.join(", ")})`;
  const arrays = columns.map((_, at) => `$${at + 1}::text[]`);
  const several = `
insert into bench_rows (${names})
select ${columns.map(({ name, type }) => `${name}::${type}`).join(", ")}
  from unnest(${arrays.join(", ")}) as r (${names})`;
  const values = () => columns.map(({ name }) => (name === "uid" ? crypto.randomUUID() : (row[name] ?? null)));
  return {
    insert: () => db.query(one, values()),
    insertMany: (count) => {
      const rows = Array.from({ length: count }, values);
      return db.tx((tx) =>
        tx.query(
          several,
          columns.map((_, at) => rows.map((each) => each[at])),
        ),
      );
    },
  };
}

const COLUMNS = `
select column_name as name, data_type as type from information_schema.columns
 where table_schema = current_schema() and table_name = 'bench_rows'
 order by ordinal_position`;
