import { type Executor, onlyRow } from "./db.ts";

/** Names this database in the labels of everything that it makes in clusters. */
export async function installationId(db: Executor): Promise<string> {
  const { id } = onlyRow(await db.query<{ id: string }>(SELECT));
  return id;
}

const SELECT = "select id::text from installation";
