import { type Executor, onlyRow } from "./db.ts";

/** The id of this database. Every object that Gangway creates in a cluster has it as a label. */
export async function installationId(db: Executor): Promise<string> {
  const { id } = onlyRow(await db.query<{ id: string }>(SELECT));
  return id;
}

const SELECT = "select id::text from installation";
